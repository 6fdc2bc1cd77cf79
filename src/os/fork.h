/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_OS_FORK_H
#define DRYI_OS_FORK_H

/*
 * A mark tells whether this process made an object, or is a child forked from its maker.
 *
 * A device belongs to the process that opened it; a child has copies of our records, but
 * not the device. The mark is a word in a page of its own. The kernel wipes that page in a
 * child (MADV_WIPEONFORK, Linux 4.14), so asking costs one load and no system call. If the
 * kernel does not know that, the process id is compared, a system call a question.
 * Grandchildren are children too. A vfork or a clone that shares memory is not a fork.
 *
 *     dryi_fork_mark_init(&mark);
 *     if (dryi_fork_mark_is_child(&mark)) ...
 *     dryi_fork_mark_finish(&mark);       in the child too
 *
 * Threads    After init, any may ask.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/inline.h"

struct dryi_fork_mark {
    const volatile uint32_t *word; /* 0 in a child, 1 in its parent */
    uint32_t unknown;              /* where there is no such word: 2, compare owner */
    size_t page_bytes;
    pid_t owner;
};

/* Cannot fail: without a page the slower way is taken. The mark stays where it is. */
void dryi_fork_mark_init(struct dryi_fork_mark *mark);
/* Accepts a zeroed mark, and one finished before. */
void dryi_fork_mark_finish(struct dryi_fork_mark *mark);

/* Requires that the word is not 1. Without a page, compare getpid(), the slower way. */
DRYI_NOINLINE bool dryi_fork_mark_is_other_process(const struct dryi_fork_mark *mark);

static inline bool
dryi_fork_mark_is_child(const struct dryi_fork_mark *mark)
{
    return *mark->word != 1 && dryi_fork_mark_is_other_process(mark);
}

#endif
