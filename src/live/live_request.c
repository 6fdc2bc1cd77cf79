/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Serve a reader's request for a snapshot. The reader writes the path, then the number. So read
 * the number, the path, and the number again. If it changed, another request is being written, and
 * the next call serves it.
 */
#include <string.h>

#include "live/live_put.h"

static uint64_t
load(const uint64_t *number)
{
    return __atomic_load_n(number, __ATOMIC_ACQUIRE);
}

bool
dry_live_get_request(struct dry_live *live, uint64_t *number, char *path, size_t capacity)
{
    if (dryi_fork_mark_is_child(&live->fork) || capacity == 0)
        return false;
    const struct dry_live_page *page = dryi_live_page(live);
    uint64_t requested = load(&page->request.number);
    if (requested == load(&page->answer.number))
        return false;
    char text[DRY_LIVE_PATH_BYTES];
    memcpy(text, page->request.path, sizeof text);
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
    if (load(&page->request.number) != requested)
        return false;
    text[sizeof text - 1] = '\0';
    dryi_live_copy_text(path, capacity, text);
    *number = requested;
    return true;
}

void
dry_live_answer(struct dry_live *live, uint64_t number, int64_t result, const char *text)
{
    if (dryi_fork_mark_is_child(&live->fork))
        return;
    pthread_mutex_lock(&live->mutex);
    struct dry_live_answer *answer = &dryi_live_page(live)->answer;
    answer->result = result;
    dryi_live_copy_text(answer->text, sizeof answer->text, text);
    __atomic_store_n(&answer->number, number, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&live->mutex);
}
