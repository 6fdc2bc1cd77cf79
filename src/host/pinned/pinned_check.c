/* SPDX-License-Identifier: Apache-2.0 */

/* Checks every invariant of pinned_state.h by a walk over all cells. */

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "host/pinned/pinned_arena.h"
#include "host/pinned/pinned_heap.h"
#include "host/pinned/pinned_state.h"
#include "host/pinned/pinned_thread_cache.h"

#define NONE DRYI_PINNED_NONE

/* Sums counted by the walk, to compare with the statistics. */
struct sums {
    uint64_t pinned, active, requested, pending, kept, idle, requests;
    uint64_t free_blocks, kept_blocks, uses_left;
};

static enum dry_status
broken(struct dry_error *err, const char *invariant, uint64_t address)
{
    return dryi_fail(err, DRY_ERR_FORMAT, "%s at 0x%llx", invariant,
                     (unsigned long long)address);
}

static enum dryi_pinned_state
state_at(const struct dryi_pinned_cell *cell)
{
    return dryi_pinned_cell_get_state(dryi_pinned_tag(cell));
}

/* --- blocks --------------------------------------------------------------------------------- */

static bool
is_in_its_list(const struct dry_pinned *p, const struct dryi_pinned_arena *a,
               const struct dryi_pinned_cell *cell)
{
    const struct dryi_pinned_heap *heap = &p->heaps[a->heap];
    uint32_t bin = dryi_pinned_bin(heap, cell->size), id = dryi_pinned_id(a, cell);
    if (cell->previous == NONE ? heap->heads[bin] != id
                               : dryi_pinned_cell(p, cell->previous)->next != id)
        return false;
    if (cell->next != NONE && dryi_pinned_cell(p, cell->next)->previous != id)
        return false;
    return heap->words[bin / 64] >> bin % 64 & 1 && heap->summary >> bin / 64 & 1;
}

static void
add_block(struct sums *sums, const struct dryi_pinned_arena *a,
          const struct dryi_pinned_cell *cell)
{
    uint64_t bytes = dryi_pinned_block_bytes(a, cell);
    enum dryi_pinned_state state = state_at(cell);
    if (state == DRYI_PINNED_FREE) {
        sums->free_blocks++;
    } else if (state == DRYI_PINNED_KEPT) {
        sums->kept += bytes;
        sums->kept_blocks++;
    } else {
        sums->active += bytes;
        sums->requested += bytes - cell->waste;
        sums->requests++;
        if (state == DRYI_PINNED_PENDING) {
            sums->pending += bytes;
            sums->uses_left += cell->uses_left;
        }
    }
}

static bool
has_marks_inside(const struct dryi_pinned_cell *cell)
{
    bool is_free = state_at(cell) == DRYI_PINNED_FREE;
    for (uint32_t i = 1; i < cell->size; i++) {
        bool is_foot = is_free && i == cell->size - 1;
        if (state_at(&cell[i]) != (is_foot ? DRYI_PINNED_FOOT : DRYI_PINNED_INSIDE) ||
            (is_foot && cell[i].size != cell->size))
            return true;
    }
    return false;
}

static enum dry_status
check_block(const struct dry_pinned *p, const struct dryi_pinned_arena *a,
            const struct dryi_pinned_cell *cell, struct dry_error *err)
{
    uint32_t at = (uint32_t)(cell - a->cells);
    uint64_t address = dryi_pinned_block_address(a, cell);
    bool is_buddy = p->heaps[a->heap].is_buddy;
    bool is_free = state_at(cell) == DRYI_PINNED_FREE;
    if (state_at(cell) == DRYI_PINNED_INSIDE || state_at(cell) == DRYI_PINNED_FOOT ||
        cell->size == 0 || cell->size > a->count - at || has_marks_inside(cell))
        return broken(err, "H1 blocks tile their arena", address);
    if (is_buddy && (!dryi_is_power_of_two(cell->size) || at % cell->size))
        return broken(err, "H2 buddies are powers of two", address);
    if (!is_free)
        return DRY_OK;
    const struct dryi_pinned_cell *next = cell + cell->size;
    if (!is_buddy && at + cell->size < a->count && state_at(next) == DRYI_PINNED_FREE)
        return broken(err, "H2 free neighbours are joined", address);
    const struct dryi_pinned_cell *half = &a->cells[at ^ cell->size];
    if (is_buddy && cell->size < a->count && state_at(half) == DRYI_PINNED_FREE &&
        half->size == cell->size)
        return broken(err, "H2 free halves are joined", address);
    if (!is_in_its_list(p, a, cell))
        return broken(err, "H3 a free block is in its list", address);
    return DRY_OK;
}

static enum dry_status
check_arena(const struct dry_pinned *p, const struct dryi_pinned_arena *a,
            struct sums *sums, struct dry_error *err)
{
    uint32_t used = 0;
    uint64_t begin = a->range.address, end = begin + a->range.bytes;
    for (uint32_t at = 0; at < a->count; at += a->cells[at].size) {
        const struct dryi_pinned_cell *cell = &a->cells[at];
        enum dry_status status = check_block(p, a, cell, err);
        if (status != DRY_OK)
            return status;
        add_block(sums, a, cell);
        used += state_at(cell) == DRYI_PINNED_FREE ? 0 : cell->size;
    }
    sums->pinned += a->range.bytes;
    sums->idle += a->used == 0 ? a->range.bytes : 0;
    if (used != a->used)
        return broken(err, "H4 used granules", begin);
    if (dryi_pinned_arena_at(p, begin) != a || dryi_pinned_arena_at(p, end - 1) != a ||
        dryi_pinned_arena_at(p, begin + (end - begin) / 2) != a ||
        dryi_pinned_arena_at(p, begin - 1) == a || dryi_pinned_arena_at(p, end) == a)
        return broken(err, "H8 the directory", begin);
    return DRY_OK;
}

/* --- lists ---------------------------------------------------------------------------------- */

static uint64_t
count_lists(const struct dry_pinned *p)
{
    uint64_t count = 0;
    for (uint32_t h = 0; h < DRYI_PINNED_HEAP_COUNT; h++) {
        const struct dryi_pinned_heap *heap = &p->heaps[h];
        for (uint32_t bin = 0; bin < DRYI_PINNED_BINS; bin++)
            for (uint32_t id = heap->heads[bin]; id != NONE;
                 id = dryi_pinned_cell(p, id)->next)
                count++;
    }
    return count;
}

static bool
bits_are_right(const struct dryi_pinned_heap *heap)
{
    for (uint32_t bin = 0; bin < DRYI_PINNED_BINS; bin++) {
        bool has_bit = heap->words[bin / 64] >> bin % 64 & 1;
        if (has_bit != (heap->heads[bin] != NONE))
            return false;
    }
    for (uint32_t word = 0; word < DRYI_PINNED_BIN_WORDS; word++)
        if ((heap->summary >> word & 1) != (heap->words[word] != 0))
            return false;
    return true;
}

static enum dry_status
check_thread_caches(const struct dry_pinned *p, const struct sums *sums,
                    struct dry_error *err)
{
    uint64_t blocks = 0, bytes = 0;
    for (uint32_t i = 0; p->thread_caches && i < DRYI_PINNED_THREAD_CACHES; i++) {
        const struct dryi_pinned_thread_cache *t = &p->thread_caches[i];
        bytes += (uint64_t)t->kept_bytes;
        for (uint32_t j = 0; t->stacks && j < DRYI_PINNED_STACKS; j++) {
            const struct dryi_pinned_stack *stack = &t->stacks[j];
            blocks += stack->count;
            for (uint32_t k = 0; k < stack->count; k++) {
                struct dryi_pinned_arena *a = NULL;
                const struct dryi_pinned_entry *e = &stack->entries[k];
                if (dryi_pinned_find(p, e->address, &a) != e->cell ||
                    state_at(e->cell) != DRYI_PINNED_KEPT ||
                    dryi_pinned_block_bytes(a, e->cell) != stack->bytes)
                    return broken(err, "H5 a thread cache's block is kept", e->address);
            }
        }
    }
    if (blocks != sums->kept_blocks || bytes != sums->kept)
        return broken(err, "H5 kept blocks are in thread caches", 0);
    return DRY_OK;
}

static uint64_t
count_uses(const struct dry_pinned *p, uint32_t first)
{
    uint64_t count = 0;
    for (uint32_t u = first; u != NONE; u = p->streams.uses[u].next)
        count += state_at(dryi_pinned_cell(p, p->streams.uses[u].block)) ==
                 DRYI_PINNED_PENDING;
    return count;
}

static enum dry_status
check_streams(const struct dry_pinned *p, const struct sums *sums, struct dry_error *err)
{
    uint64_t uses = 0;
    for (uint32_t i = 0; i < p->streams.count; i++) {
        const struct dryi_pinned_stream *s = &p->streams.list[i];
        if (s->use_count == 0)
            continue;
        uses += count_uses(p, s->open_first) + count_uses(p, s->closing_first);
        for (uint32_t u = s->first_batch; u != NONE; u = p->streams.uses[u].next_batch)
            uses += count_uses(p, u);
    }
    if (uses != sums->uses_left)
        return broken(err, "H6 uses of pending blocks are in lists", 0);
    return DRY_OK;
}

/* --- all ------------------------------------------------------------------------------------ */

static enum dry_status
check_sums(const struct dry_pinned *p, const struct sums *sums, struct dry_error *err)
{
    const struct dry_pinned_stats *s = &p->stats;
    if (sums->pinned != (uint64_t)s->allocated_bytes.current ||
        p->arena_count != s->allocations.current ||
        sums->active != (uint64_t)s->active_bytes.current ||
        sums->requests != (uint64_t)s->active_requests.current ||
        sums->requested != (uint64_t)s->requested_bytes.current ||
        sums->pending != (uint64_t)s->pending_bytes || sums->idle != p->idle_bytes)
        return dryi_fail(
            err, DRY_ERR_FORMAT,
            "H7 sums: pinned %llu, active %llu, requested %llu, pending "
            "%llu, idle %llu were counted",
            (unsigned long long)sums->pinned, (unsigned long long)sums->active,
            (unsigned long long)sums->requested, (unsigned long long)sums->pending,
            (unsigned long long)sums->idle);
    return DRY_OK;
}

static enum dry_status
check_all(const struct dry_pinned *p, struct dry_error *err)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    struct sums sums = {0};
    enum dry_status status = DRY_OK;
    for (uint32_t i = 0; status == DRY_OK && i < p->arena_count; i++)
        status = check_arena(p, p->arenas[i], &sums, err);
    if (status == DRY_OK && count_lists(p) != sums.free_blocks)
        status = broken(err, "H3 lists hold free blocks", 0);
    for (uint32_t i = 0; status == DRY_OK && i < DRYI_PINNED_HEAP_COUNT; i++)
        if (!bits_are_right(&p->heaps[i]))
            status = broken(err, "H3 bits of bins", i);
    if (status == DRY_OK)
        status = check_thread_caches(p, &sums, err);
    if (status == DRY_OK)
        status = check_streams(p, &sums, err);
    if (status == DRY_OK)
        status = check_sums(p, &sums, err);
    return status;
}

enum dry_status
dry_pinned_check(struct dry_pinned *pinned, struct dry_error *err)
{
    if (dryi_fork_mark_is_child(&pinned->fork))
        return dryi_fail(err, DRY_ERR_UNSUPPORTED, "the cache is the parent's");
    dryi_pinned_lock_all(pinned);
    enum dry_status status = check_all(pinned, err);
    dryi_pinned_unlock_all(pinned);
    return status;
}
