/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_FIGURES_H
#define DRYI_PLACE_FIGURES_H

/*
 * Reserved bytes per pool of a place, for PyTorch's reserved_bytes_by_private_pools.
 *
 * Each pool has one figure. The figure outlives its pool, as in PyTorch, so past allocations and
 * frees remain visible. PyTorch keeps all figures; this table keeps those of the last
 * DRYI_PLACE_FIGURES_GONE destroyed pools, which bounds its memory.
 *
 * Cost  O(1) per change; 144 bytes per pool.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>
#include <drystone/stats.h>

#include "place/place_info.h"

#define DRYI_PLACE_FIGURES_GONE 64u

struct dryi_place_figure {
    struct dryi_pool_id id;
    bool is_touched;    /* The pool has had memory; only such figures are visited */
    uint32_t next_gone; /* If destroyed: the pool destroyed next after this pool */
    struct dry_stat_array reserved;
};

struct dryi_place_figures {
    struct dryi_place_figure *list; /* list[0] is the default pool's */
    size_t capacity, count;
    uint32_t first_gone, last_gone, gone_count;
};

typedef void dryi_figure_visit(void *self, struct dryi_pool_id id,
                               const struct dry_stat_array *reserved);

/* Reserve memory for one more figure. False: out of memory. */
bool dryi_place_figures_reserve(struct dryi_place_figures *figures,
                                const struct dry_memory *memory);
/* Add the figure of a pool and return its index. Requires a preceding reserve. */
uint32_t dryi_place_figures_add(struct dryi_place_figures *figures,
                                struct dryi_pool_id id);
/* Mark the pool as destroyed. Its figure may change until the next add, which can reuse it. */
void dryi_place_figures_end(struct dryi_place_figures *figures, uint32_t index);
/* Add `bytes` to the reserved bytes of a pool; negative: bytes were given back. */
void dryi_place_figures_change(struct dryi_place_figures *figures, uint32_t index,
                               bool is_small, int64_t bytes);
/* Return the reserved bytes of all pools, in small or in large memory. Used by invariant checks. */
int64_t dryi_place_figures_sum(const struct dryi_place_figures *figures, bool is_small);
/* See `reset_stats` in place.h. */
void dryi_stat_reset(struct dry_stat *stat, bool peaks, bool accumulated);
void dryi_stat_array_reset(struct dry_stat_array *stats, bool peaks, bool accumulated);
void dryi_place_figures_reset(struct dryi_place_figures *figures, bool peaks,
                              bool accumulated);
/* Visit the figures of private pools that have had memory, in no particular order. */
void dryi_place_figures_visit(const struct dryi_place_figures *figures,
                              dryi_figure_visit *visit, void *self);
void dryi_place_figures_finish(struct dryi_place_figures *figures,
                               const struct dry_memory *memory);

#endif
