/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_LIVE_STATE_H
#define DRYI_LIVE_STATE_H

/*
 * The program's side of a page, for its files:
 *
 *     live         its life, its sources, its thread
 *     live_put     figures into the page
 *     live_detail  what a walk over a pool's blocks finds
 *     live_wish    what readers wish
 *
 * `mutex` is held by whoever writes into the page or changes the sources. The page itself is
 * written under sequences, for readers take no lock.
 */

#include <pthread.h>

#include <drystone/live.h>

#include "os/fork.h"
#include "os/shared_file.h"
#include "os/thread.h"

struct dryi_live_origin {
    struct dry_pool *pool;
    struct dry_pinned *pinned; /* both NULL: figures are put */
    uint64_t detail_due_ns;
};

struct dry_live {
    struct dry_memory memory;
    char *path;       /* the file's */
    size_t path_room; /* of `path` */
    const char *name; /* its end */
    uint32_t detail_rest;
    struct dryi_fork_mark fork;
    struct dryi_shared_file file;

    pthread_mutex_t mutex;
    struct dryi_live_origin origins[DRY_LIVE_SOURCES_MAX];
    uint32_t origin_count;
    struct dry_live_detail *detail; /* what is being made */

    /* The thread of ours: `wakes` is signalled with the mutex held. */
    struct dryi_thread thread;
    pthread_cond_t wakes;
    uint64_t interval_us;
    bool is_running, is_stopping;
};

static inline struct dry_live_page *
dryi_live_page(const struct dry_live *live)
{
    return live->file.memory;
}

#endif
