/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_CGROUP_TEXT_H
#define DRYI_HOST_CGROUP_TEXT_H

/*
 * Finds the folder of this process's control group. /proc/self/cgroup names the group.
 * /proc/self/mountinfo has the mount point of the hierarchy and the group mounted there,
 * which is not the root group in containers without a cgroup namespace. Formats: proc(5)
 * and cgroups(7).
 *
 * Two versions may be mounted at once: in version 1 each controller has its own
 * hierarchy, version 2 has a single hierarchy.
 *
 * Errors     false: no such group, or the text is malformed or too long.
 */

#include <stdbool.h>
#include <stddef.h>

#define DRYI_CGROUP_PATH_MAX 1024

struct dryi_cgroup {
    int version;                     /* 1 or 2; 0: none */
    char path[DRYI_CGROUP_PATH_MAX]; /* the folder of the group, as mounted */
    size_t top_length; /* the first top_length bytes of `path` are the mount point */
};

/* Find the folder of this process's group that has `controller` ("memory", "hugetlb").
   Version 1 is searched first; a controller belongs to only one version at a time. */
bool dryi_cgroup_find(const char *groups, size_t groups_length, const char *mounts,
                      size_t mounts_length, const char *controller,
                      struct dryi_cgroup *found);
/* Move to the parent group; false at the top. */
bool dryi_cgroup_up(struct dryi_cgroup *group);

#endif
