/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Arenas: their cells, cell ids, and the look-up of addresses. Ids are assigned in rows
 * of 2^18 cells. The directory is a table of leaves, each allocated when an arena first
 * touches it. A look-up takes constant time, without a lock.
 */

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "host/pinned/pinned_arena.h"
#include "host/pinned/pinned_count.h"
#include "host/pinned/pinned_heap.h"
#include "host/pinned/pinned_state.h"

enum dry_status
dryi_pinned_arenas_init(struct dry_pinned *p, struct dry_error *err)
{
    p->leaves = dryi_memory_zalloc(&p->memory, DRYI_PINNED_LEAVES, sizeof *p->leaves);
    return p->leaves ? DRY_OK : dryi_fail_memory(err, "the directory of arenas");
}

static void
free_arena(struct dry_pinned *p, struct dryi_pinned_arena *a)
{
    dryi_memory_free(&p->memory, a->cells, a->count, sizeof *a->cells);
    dryi_memory_free(&p->memory, a, 1, sizeof *a);
}

void
dryi_pinned_arenas_finish(struct dry_pinned *p, bool is_child)
{
    for (uint32_t i = 0; i < p->arena_count; i++) {
        if (!is_child)
            p->pin.give(p->pin.self, &p->arenas[i]->range);
        free_arena(p, p->arenas[i]);
    }
    for (size_t i = 0; p->leaves && i < DRYI_PINNED_LEAVES; i++)
        dryi_memory_free(&p->memory, atomic_load(&p->leaves[i]), 1,
                         sizeof(struct dryi_pinned_leaf));
    void *leaves = p->leaves;
    dryi_memory_free(&p->memory, leaves, DRYI_PINNED_LEAVES, sizeof *p->leaves);
    dryi_memory_free(&p->memory, p->rows, p->row_capacity, sizeof *p->rows);
    dryi_memory_free(&p->memory, (void *)p->arenas, p->arena_capacity,
                     sizeof(struct dryi_pinned_arena *));
}

/* --- the directory -------------------------------------------------------------------------- */

/* Return the leaf of a square; NULL: no arena has ever touched the leaf. */
static struct dryi_pinned_leaf *
leaf_at(const struct dry_pinned *p, uint64_t square)
{
    DRYI_ASSERT_SLOW(square >> DRYI_PINNED_LEAF_SHIFT < DRYI_PINNED_LEAVES);
    return atomic_load_explicit(&p->leaves[square >> DRYI_PINNED_LEAF_SHIFT],
                                memory_order_acquire);
}

static struct dryi_pinned_square *
square_in(struct dryi_pinned_leaf *leaf, uint64_t square)
{
    return &leaf->squares[square & (DRYI_PINNED_LEAF_SQUARES - 1)];
}

struct dryi_pinned_arena *
dryi_pinned_arena_at(const struct dry_pinned *p, uint64_t address)
{
    if (address >> DRYI_PINNED_ADDRESS_BITS)
        return NULL;
    uint64_t square = address >> DRYI_PINNED_SQUARE_SHIFT;
    struct dryi_pinned_leaf *leaf = leaf_at(p, square);
    if (!leaf)
        return NULL;
    const struct dryi_pinned_square *s = square_in(leaf, square);
    if (address < atomic_load_explicit(&s->lower_end, memory_order_acquire))
        return atomic_load_explicit(&s->lower, memory_order_acquire);
    uint64_t begin = atomic_load_explicit(&s->upper_begin, memory_order_acquire);
    return begin && address >= begin
               ? atomic_load_explicit(&s->upper, memory_order_acquire)
               : NULL;
}

struct dryi_pinned_cell *
dryi_pinned_find(const struct dry_pinned *p, uint64_t address,
                 struct dryi_pinned_arena **arena)
{
    struct dryi_pinned_arena *a = dryi_pinned_arena_at(p, address);
    if (!a)
        return NULL;
    uint64_t offset = address - a->range.address;
    uint64_t index = offset >> a->granule_shift;
    if (index << a->granule_shift != offset || index >= a->count)
        return NULL;
    *arena = a;
    return &a->cells[index];
}

static enum dry_status
make_leaves(struct dry_pinned *p, uint64_t first, uint64_t last)
{
    DRYI_ASSERT_SLOW(first <= last);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    for (uint64_t i = first >> DRYI_PINNED_LEAF_SHIFT;
         i <= last >> DRYI_PINNED_LEAF_SHIFT; i++) {
        if (atomic_load_explicit(&p->leaves[i], memory_order_relaxed))
            continue;
        struct dryi_pinned_leaf *leaf = dryi_memory_zalloc(&p->memory, 1, sizeof *leaf);
        if (!leaf)
            return DRY_ERR_MEMORY;
        atomic_store_explicit(&p->leaves[i], leaf, memory_order_release);
    }
    return DRY_OK;
}

/* Enter the arena into each square that it touches, or remove it from them. */
static void
set_squares(struct dry_pinned *p, struct dryi_pinned_arena *a, bool is_added)
{
    uint64_t begin = a->range.address, end = begin + a->range.bytes;
    uint64_t first = begin >> DRYI_PINNED_SQUARE_SHIFT;
    uint64_t last = (end - 1) >> DRYI_PINNED_SQUARE_SHIFT;
    DRYI_ASSERT_SLOW(leaf_at(p, first) && leaf_at(p, last));
    struct dryi_pinned_arena *to = is_added ? a : NULL;
    if (begin % DRYI_PINNED_SQUARE != 0) {
        struct dryi_pinned_square *s = square_in(leaf_at(p, first), first);
        first++;
        atomic_store_explicit(&s->upper, to, memory_order_release);
        atomic_store_explicit(&s->upper_begin, is_added ? begin : 0,
                              memory_order_release);
    }
    for (uint64_t i = first; i <= last; i++) {
        struct dryi_pinned_square *s = square_in(leaf_at(p, i), i);
        atomic_store_explicit(&s->lower, to, memory_order_release);
        atomic_store_explicit(&s->lower_end, is_added ? end : 0, memory_order_release);
    }
}

/* --- rows ----------------------------------------------------------------------------------- */

/* Return the first of `count` consecutive free rows; ROWS_MAX: there are none. */
static uint32_t
find_rows(const struct dry_pinned *p, uint32_t count)
{
    DRYI_ASSERT_SLOW(count > 0);
    uint32_t run = 0;
    for (uint32_t i = 0; i < DRYI_PINNED_ROWS_MAX; i++) {
        run = i >= p->row_capacity || !p->rows[i].arena ? run + 1 : 0;
        if (run == count)
            return i + 1 - count;
    }
    return DRYI_PINNED_ROWS_MAX;
}

static enum dry_status
take_rows(struct dry_pinned *p, struct dryi_pinned_arena *a)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    uint32_t first = find_rows(p, a->row_count);
    if (first == DRYI_PINNED_ROWS_MAX)
        return DRY_ERR_NO_SPACE;
    size_t before = p->row_capacity;
    if (!dryi_memory_grow(&p->memory, (void **)&p->rows, &p->row_capacity,
                          first + a->row_count, sizeof *p->rows))
        return DRY_ERR_MEMORY;
    memset(p->rows + before, 0, (p->row_capacity - before) * sizeof *p->rows);
    for (uint32_t i = 0; i < a->row_count; i++)
        p->rows[first + i] =
            (struct dryi_pinned_row){a->cells + (size_t)i * DRYI_PINNED_ROW_CELLS, a};
    a->first_id = first << DRYI_PINNED_ROW_SHIFT;
    return DRY_OK;
}

/* --- life ----------------------------------------------------------------------------------- */

static enum dry_status
make_arena(struct dry_pinned *p, const struct dryi_pin_range *range, uint32_t heap,
           struct dryi_pinned_arena **arena)
{
    DRYI_ASSERT_SLOW(heap < DRYI_PINNED_HEAP_COUNT);
    unsigned shift = p->heaps[heap].granule_shift;
    uint64_t count = range->bytes >> shift;
    if (p->heaps[heap].is_buddy && count)
        count = UINT64_C(1) << dryi_log2_floor(count);
    if (range->bytes < DRYI_PINNED_SQUARE || count >= UINT32_MAX ||
        range->address >> DRYI_PINNED_ADDRESS_BITS ||
        (range->address + range->bytes) >> DRYI_PINNED_ADDRESS_BITS)
        return DRY_ERR_SYSTEM;
    struct dryi_pinned_arena *a = dryi_memory_zalloc(&p->memory, 1, sizeof *a);
    if (!a)
        return DRY_ERR_MEMORY;
    *a = (struct dryi_pinned_arena){
        .range = *range,
        .count = (uint32_t)count,
        .heap = heap,
        .granule_shift = shift,
        .row_count =
            (uint32_t)((count + DRYI_PINNED_ROW_CELLS - 1) >> DRYI_PINNED_ROW_SHIFT),
        .cells = dryi_memory_zalloc(&p->memory, (size_t)count, sizeof *a->cells),
    };
    if (!a->cells) {
        dryi_memory_free(&p->memory, a, 1, sizeof *a);
        return DRY_ERR_MEMORY;
    }
    *arena = a;
    return DRY_OK;
}

static void
count_pinned(struct dry_pinned *p, struct dryi_pinned_arena *a, bool is_added)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    int64_t bytes = (int64_t)a->range.bytes, sign = is_added ? 1 : -1;
    dryi_pinned_stat_add(&p->stats.allocations, sign);
    dryi_pinned_stat_add(&p->stats.allocated_bytes, sign * bytes);
    p->heaps[a->heap].pinned_bytes += (uint64_t)(sign * bytes);
    DRYI_ASSERT_SLOW(p->stats.allocated_bytes.current >= 0);
    uint64_t sum = (uint64_t)p->stats.allocated_bytes.current;
    atomic_store_explicit(&p->pinned_bytes, sum, memory_order_relaxed);
    uint64_t slack = sum / 256 > DRYI_MIB ? sum / 256 : DRYI_MIB;
    atomic_store_explicit(&p->slack_bytes, (int64_t)slack, memory_order_relaxed);
}

enum dry_status
dryi_pinned_arena_add(struct dry_pinned *p, const struct dryi_pin_range *range,
                      uint32_t heap)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->pinner.lock));
    struct dryi_pinned_arena *a = NULL;
    enum dry_status status = make_arena(p, range, heap, &a);
    if (status != DRY_OK)
        return status;
    if (!dryi_memory_grow(&p->memory, (void **)&p->arenas, &p->arena_capacity,
                          p->arena_count + 1, sizeof(struct dryi_pinned_arena *)))
        status = DRY_ERR_MEMORY;
    if (status == DRY_OK)
        status =
            make_leaves(p, range->address >> DRYI_PINNED_SQUARE_SHIFT,
                        (range->address + range->bytes - 1) >> DRYI_PINNED_SQUARE_SHIFT);
    if (status == DRY_OK)
        status = take_rows(p, a);
    if (status != DRY_OK) {
        free_arena(p, a);
        return status;
    }
    a->index = p->arena_count++;
    p->arenas[a->index] = a;
    dryi_pinned_heap_add(p, a);
    set_squares(p, a, true);
    count_pinned(p, a, true);
    return DRY_OK;
}

void
dryi_pinned_arena_remove(struct dry_pinned *p, struct dryi_pinned_arena *a,
                         struct dryi_pin_range *range)
{
    DRYI_ASSERT_SLOW(p->arenas[a->index] == a &&
                     dryi_pinned_arena_get(p, a->first_id) == a);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    *range = a->range;
    dryi_pinned_heap_remove(p, a);
    set_squares(p, a, false);
    for (uint32_t i = 0; i < a->row_count; i++)
        p->rows[(a->first_id >> DRYI_PINNED_ROW_SHIFT) + i] = (struct dryi_pinned_row){0};
    p->arenas[a->index] = p->arenas[--p->arena_count];
    p->arenas[a->index]->index = a->index;
    count_pinned(p, a, false);
    free_arena(p, a);
}
