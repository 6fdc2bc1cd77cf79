/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_CGROUP_TEXT_H
#define DRYI_HOST_CGROUP_TEXT_H

/*
 * The folder of this process's control group. /proc/self/cgroup says which group it is. Its
 * neighbour /proc/self/mountinfo says where the hierarchy is mounted and which group its top
 * is (not the root in containers without a cgroup namespace). Both are described by proc(5)
 * and cgroups(7).
 *
 * There are two versions, both of which may be mounted at once: in version 1 each controller
 * has a hierarchy of its own, version 2 has one for all.
 *
 * Errors     false: there is none, or the text is not of this form, or too long for us.
 */

#include <stdbool.h>
#include <stddef.h>

#define DRYI_CGROUP_PATH_MAX 1024

struct dryi_cgroup {
    int version;                     /* 1 or 2; 0: none */
    char path[DRYI_CGROUP_PATH_MAX]; /* the folder of the group, as mounted */
    size_t top_length;               /* path's first so many bytes: that of the mount */
};

/*
 * The folder of this process's group that has a `controller` ("memory", "hugetlb"). Version 1
 * is looked for first: a controller is of one version at a time.
 */
bool dryi_cgroup_find(const char *groups, size_t groups_length, const char *mounts,
                      size_t mounts_length, const char *controller,
                      struct dryi_cgroup *found);
/* Go to the group above; false at the top. */
bool dryi_cgroup_up(struct dryi_cgroup *group);

#endif
