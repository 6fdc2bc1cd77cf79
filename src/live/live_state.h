/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_LIVE_STATE_H
#define DRYI_LIVE_STATE_H

/*
 * The program's side of a page, for these files:
 *
 * live_page    creation, sources, the thread
 *     live_put     writes figures into the page
 *     live_detail  sums up a walk over a pool's blocks
 *     live_request    serves readers' requests for snapshots
 *
 * Whoever writes to the page or changes the sources holds `mutex`. Readers take no lock: sequence
 * numbers protect the page's contents.
 */

#include <pthread.h>

#include <drystone/live.h>

#include "os/fork.h"
#include "os/shared_file.h"
#include "os/thread.h"

struct dryi_live_origin {
    struct dry_pool *pool;
    struct dry_pinned *pinned; /* both NULL: the caller puts the figures */
    uint64_t detail_due_ns;
};

struct dry_live {
    struct dry_memory memory;
    char *path;           /* path of the page's file; owned */
    size_t path_capacity; /* bytes allocated for `path` */
    const char *name;     /* the file name at the end of `path` */
    uint32_t detail_rest;
    struct dryi_fork_mark fork;
    struct dryi_shared_file file;

    pthread_mutex_t mutex;
    struct dryi_live_origin origins[DRY_LIVE_SOURCES_MAX];
    uint32_t origin_count;
    struct dry_live_detail *detail; /* scratch for the next detail; owned */

    /* The updating thread. `wakes` is signalled with the mutex held. */
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
