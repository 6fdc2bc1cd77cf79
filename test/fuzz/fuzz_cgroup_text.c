/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as /proc/self/cgroup, a zero, and /proc/self/mountinfo. What is found lies in a
 * mount that was named, has no "..", and going up ends at the mount.
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "host/facts/cgroup_text.h"

static void
require(int condition)
{
    if (!condition)
        abort();
}

static void
check_found(struct dryi_cgroup *found, const char *mounts, size_t length)
{
    require(found->version == 1 || found->version == 2);
    size_t path_length = strlen(found->path);
    require(path_length < DRYI_CGROUP_PATH_MAX && found->path[0] == '/');
    require(found->top_length >= 1 && found->top_length <= path_length);
    require(memmem(mounts, length, found->path, found->top_length) != NULL);
    require(strstr(found->path + found->top_length, "/../") == NULL);
    size_t steps = 0;
    for (; dryi_cgroup_up(found); steps++) {
        size_t shorter = strlen(found->path);
        require(shorter < path_length && shorter >= found->top_length);
        path_length = shorter;
    }
    require(path_length == found->top_length && steps < DRYI_CGROUP_PATH_MAX);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const controllers[] = {"memory", "hugetlb"};
    const char *groups = (const char *)data;
    const char *zero = size ? memchr(groups, '\0', size) : NULL;
    size_t length = zero ? (size_t)(zero - groups) : size;
    const char *mounts = zero ? zero + 1 : groups + size;
    size_t mounts_length = size - length - (zero != NULL);
    for (size_t i = 0; i < 2; i++) {
        struct dryi_cgroup found;
        if (dryi_cgroup_find(groups, length, mounts, mounts_length, controllers[i],
                             &found))
            check_found(&found, mounts, mounts_length);
    }
    return 0;
}
