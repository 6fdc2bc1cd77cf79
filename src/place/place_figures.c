/* SPDX-License-Identifier: Apache-2.0 */
/* Figures by pool: see place_figures.h. */
#include "place/place_figures.h"

#include "base/assert.h"
#include "base/memory.h"

bool
dryi_place_figures_reserve(struct dryi_place_figures *figures,
                           const struct dry_memory *memory)
{
    if (figures->gone_count >= DRYI_PLACE_FIGURES_GONE)
        return true;
    return figures->count < UINT32_MAX &&
           dryi_memory_grow(memory, &figures->list, &figures->capacity,
                            figures->count + 1, sizeof *figures->list);
}

uint32_t
dryi_place_figures_add(struct dryi_place_figures *figures, struct dryi_pool_id id)
{
    uint32_t index;
    if (figures->gone_count >= DRYI_PLACE_FIGURES_GONE) {
        index = figures->first_gone;
        figures->first_gone = figures->list[index].next_gone;
        figures->gone_count--;
        DRYI_ASSERT(figures->list[index].reserved.all.current == 0);
    } else {
        DRYI_ASSERT(figures->count < figures->capacity);
        index = (uint32_t)figures->count++;
    }
    figures->list[index] = (struct dryi_place_figure){.id = id};
    return index;
}

void
dryi_place_figures_end(struct dryi_place_figures *figures, uint32_t index)
{
    if (figures->gone_count++ == 0)
        figures->first_gone = index;
    else
        figures->list[figures->last_gone].next_gone = index;
    figures->last_gone = index;
}

static void
change(struct dry_stat *stat, int64_t bytes)
{
    stat->current += bytes;
    if (stat->peak < stat->current)
        stat->peak = stat->current;
    if (bytes > 0)
        stat->allocated += bytes;
    else
        stat->freed -= bytes;
}

void
dryi_place_figures_change(struct dryi_place_figures *figures, uint32_t index,
                          bool is_small, int64_t bytes)
{
    struct dryi_place_figure *figure = &figures->list[index];
    figure->is_touched = true;
    change(&figure->reserved.all, bytes);
    change(is_small ? &figure->reserved.small_pool : &figure->reserved.large_pool, bytes);
}

int64_t
dryi_place_figures_sum(const struct dryi_place_figures *figures, bool is_small)
{
    int64_t sum = 0;
    for (size_t i = 0; i < figures->count; i++) {
        const struct dry_stat_array *reserved = &figures->list[i].reserved;
        sum += is_small ? reserved->small_pool.current : reserved->large_pool.current;
    }
    return sum;
}

void
dryi_stat_reset(struct dry_stat *stat, bool peaks, bool accumulated)
{
    if (peaks)
        stat->peak = stat->current;
    if (accumulated)
        stat->allocated = stat->freed = 0;
}

void
dryi_stat_array_reset(struct dry_stat_array *stats, bool peaks, bool accumulated)
{
    dryi_stat_reset(&stats->all, peaks, accumulated);
    dryi_stat_reset(&stats->small_pool, peaks, accumulated);
    dryi_stat_reset(&stats->large_pool, peaks, accumulated);
}

void
dryi_place_figures_reset(struct dryi_place_figures *figures, bool peaks, bool accumulated)
{
    for (size_t i = 0; i < figures->count; i++)
        dryi_stat_array_reset(&figures->list[i].reserved, peaks, accumulated);
}

void
dryi_place_figures_visit(const struct dryi_place_figures *figures,
                         dryi_figure_visit *visit, void *self)
{
    for (size_t i = 1; i < figures->count; i++) {
        if (figures->list[i].is_touched)
            visit(self, figures->list[i].id, &figures->list[i].reserved);
    }
}

void
dryi_place_figures_finish(struct dryi_place_figures *figures,
                          const struct dry_memory *memory)
{
    dryi_memory_free(memory, figures->list, figures->capacity, sizeof *figures->list);
}
