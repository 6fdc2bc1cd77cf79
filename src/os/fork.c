/* SPDX-License-Identifier: Apache-2.0 */
#include "os/fork.h"

#include <sys/mman.h>
#include <unistd.h>

void
dryi_fork_mark_init(struct dryi_fork_mark *mark)
{
    *mark = (struct dryi_fork_mark){.owner = getpid()};
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
    if (mark->word)
        munmap((void *)(uintptr_t)mark->word, mark->page_bytes);
    mark->word = NULL;
}

bool
dryi_fork_mark_is_other_process(const struct dryi_fork_mark *mark)
{
    return getpid() != mark->owner;
}
