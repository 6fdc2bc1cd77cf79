/* SPDX-License-Identifier: Apache-2.0 */

/* A mark without a page points at its own field `unknown`. See fork.h. */
#include "os/fork.h"

#include <sys/mman.h>
#include <unistd.h>

#define UNKNOWN 2

static void
go_by_owner(struct dryi_fork_mark *mark)
{
    mark->unknown = UNKNOWN;
    mark->word = &mark->unknown;
    mark->page_bytes = 0;
}

void
dryi_fork_mark_init(struct dryi_fork_mark *mark)
{
    mark->owner = getpid();
    go_by_owner(mark);
#ifdef MADV_WIPEONFORK
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    void *page =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return;
    if (madvise(page, bytes, MADV_WIPEONFORK) != 0) {
        munmap(page, bytes);
        return;
    }
    *(volatile uint32_t *)page = 1;
    mark->word = page;
    mark->page_bytes = bytes;
#endif
}

void
dryi_fork_mark_finish(struct dryi_fork_mark *mark)
{
    if (mark->page_bytes > 0)
        munmap((void *)(uintptr_t)mark->word, mark->page_bytes);
    go_by_owner(mark);
}

bool
dryi_fork_mark_is_other_process(const struct dryi_fork_mark *mark)
{
    return *mark->word != UNKNOWN || getpid() != mark->owner;
}
