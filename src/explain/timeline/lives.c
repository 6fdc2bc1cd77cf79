/* SPDX-License-Identifier: Apache-2.0 */

/* A 16-ary tree of the latest ends; lives.h has the idea and the cost. */
#include "explain/timeline/lives.h"

#include "base/memory.h"

#define FAN_BITS 4u
#define FAN (1u << FAN_BITS)

static uint32_t
get_end(const struct dryi_lives *l, unsigned level, uint32_t i)
{
    return level == 0 ? l->ends[i * l->step] : l->maxima[level - 1][i];
}

static bool
index_level(struct dryi_lives *l, unsigned level, uint32_t below_count)
{
    uint32_t count = below_count / FAN + (below_count % FAN != 0);
    l->maxima[level] = dryi_memory_zalloc(&l->memory, count, sizeof(uint32_t));
    if (!l->maxima[level])
        return false;
    l->maxima_count[level] = count;
    l->level_count = level + 1;
    for (uint32_t i = 0; i < below_count; i++) {
        uint32_t end = get_end(l, level, i);
        uint32_t *max = &l->maxima[level][i >> FAN_BITS];
        *max = end > *max ? end : *max;
    }
    return true;
}

bool
dryi_lives_index(struct dryi_lives *l)
{
    uint32_t count = l->count;
    l->level_count = 0;
    for (unsigned level = 0; level < DRYI_LIVES_LEVELS && count > 1; level++) {
        if (!index_level(l, level, count))
            return false;
        count = l->maxima_count[level];
    }
    return true;
}

void
dryi_lives_finish(struct dryi_lives *l)
{
    for (unsigned level = 0; level < l->level_count; level++)
        dryi_memory_free(&l->memory, l->maxima[level], l->maxima_count[level],
                         sizeof(uint32_t));
    l->level_count = 0;
}

/* Return how many lives from `i` on are known to have ended: a power of 16, or 0. */
static uint64_t
ended_from(const struct dryi_lives *l, uint32_t moment, uint32_t i)
{
    uint64_t ended = 0;
    for (unsigned level = 0; level < l->level_count; level++) {
        unsigned bits = FAN_BITS * (level + 1);
        if ((i & ((UINT64_C(1) << bits) - 1)) != 0 ||
            l->maxima[level][(uint64_t)i >> bits] > moment)
            break;
        ended = UINT64_C(1) << bits;
    }
    return ended;
}

uint32_t
dryi_lives_begun(const struct dryi_lives *l, uint32_t moment)
{
    uint32_t low = 0, high = l->sorted_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (l->begins[middle * l->step] <= moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static uint32_t
next_before(const struct dryi_lives *l, uint32_t moment, uint32_t from, uint32_t limit)
{
    for (uint64_t i = from; i < limit;) {
        uint64_t ended = ended_from(l, moment, (uint32_t)i);
        size_t at = (size_t)i * l->step;
        if (ended == 0 && l->begins[at] <= moment && moment < l->ends[at])
            return (uint32_t)i;
        i += ended ? ended : 1;
    }
    return DRYI_LIVES_NONE;
}

uint32_t
dryi_lives_next_sorted(const struct dryi_lives *l, uint32_t moment, uint32_t from,
                       uint32_t begun)
{
    return next_before(l, moment, from, begun);
}

uint32_t
dryi_lives_next(const struct dryi_lives *l, uint32_t moment, uint32_t from)
{
    uint32_t found = DRYI_LIVES_NONE;
    if (from < l->sorted_count) {
        /* Most calls continue a scan: the next life is near, and has begun. */
        if (l->begins[from * l->step] <= moment)
            found = next_before(l, moment, from, dryi_lives_begun(l, moment));
        from = l->sorted_count;
    }
    if (found == DRYI_LIVES_NONE)
        found = next_before(l, moment, from, l->count);
    return found;
}
