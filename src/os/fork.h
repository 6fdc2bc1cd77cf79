/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_FORK_H
#define DRYI_OS_FORK_H

/*
 * A mark tells whether this process made an object, or is a child forked from its maker.
 *
 * A device belongs to the process that opened it; a child has copies of the records, but
 * no access to the device. The mark is a 32-bit flag in a page of its own. The kernel
 * wipes that page in a child (MADV_WIPEONFORK, Linux 4.14), so asking costs one load and
 * no system call. On an older kernel each query compares process ids, which costs one
 * system call. Grandchildren are children too. A vfork or a clone that shares memory is
 * not a fork.
 *
 *     dryi_fork_mark_init(&mark);
 *     if (dryi_fork_mark_is_child(&mark)) ...
 *     dryi_fork_mark_finish(&mark);       in the child too
 *
 * Threads    After init, any thread may query the mark.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/inline.h"

struct dryi_fork_mark {
    const volatile uint32_t *word; /* 0 in a child, 1 in its parent */
    uint32_t unknown;              /* value of *word without such a page: 2, compare
                                      `owner` with getpid() */
    size_t page_bytes;
    pid_t owner;
};

/* Mark an object as made by this process. Cannot fail: without a page, queries compare
   process ids. The caller must not move the mark, for `word` may point into it. */
void dryi_fork_mark_init(struct dryi_fork_mark *mark);
/* Release the mark's page. Accepts a zeroed mark, and one finished before. */
void dryi_fork_mark_finish(struct dryi_fork_mark *mark);

/* Decide for a mark whose flag is not 1. Without a page, compare getpid() with the
   owner. */
DRYI_NOINLINE bool dryi_fork_mark_is_other_process(const struct dryi_fork_mark *mark);

static inline bool
dryi_fork_mark_is_child(const struct dryi_fork_mark *mark)
{
    return *mark->word != 1 && dryi_fork_mark_is_other_process(mark);
}

#endif
