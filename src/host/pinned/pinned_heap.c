/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A heap chooses a block within its arenas. Fit: free blocks are in bins, 32 per power of
 * two. Requests are rounded up to a bin's smallest size, so any block of the lowest
 * non-empty bin fits, and a freed block fits the next equal request exactly. (Masmano et
 * al., TLSF, ECRTS 2004, with more lists per level and all records outside the memory.)
 * Buddy: bins are powers of two. Offsets are relative to the arena, so that halves of
 * different arenas are never merged.
 */
#include "host/pinned/pinned_heap.h"
#include "base/assert.h"
#include "base/bits.h"
#include "host/pinned/pinned_state.h"

#define STEPS_LOG2 5 /* 32 bins per power of two */

void
dryi_pinned_heap_init(struct dryi_pinned_heap *heap, uint32_t name,
                      unsigned granule_shift, bool is_buddy)
{
    *heap = (struct dryi_pinned_heap){
        .is_buddy = is_buddy, .granule_shift = granule_shift, .name = name};
    for (uint32_t i = 0; i < DRYI_PINNED_BINS; i++)
        heap->heads[i] = DRYI_PINNED_NONE;
}

/* Return how many powers of two `granules` is above the range where each size has its own
   bin. */
static inline unsigned
get_octave(uint32_t granules)
{
    return dryi_log2_floor(granules | 1u << STEPS_LOG2) - STEPS_LOG2;
}

static inline uint32_t
bin_in(unsigned octave, uint32_t granules)
{
    return (octave << STEPS_LOG2) + (granules >> octave);
}

uint32_t
dryi_pinned_bin(const struct dryi_pinned_heap *heap, uint32_t granules)
{
    DRYI_ASSERT_SLOW(granules > 0);
    return heap->is_buddy ? dryi_log2_floor(granules)
                          : bin_in(get_octave(granules), granules);
}

static inline enum dryi_pinned_heap_name
choose_heap(const struct dry_pinned *p, uint64_t bytes)
{
    if (bytes <= p->options.threshold_bytes)
        return DRYI_PINNED_SMALL;
    if (p->heaps[DRYI_PINNED_LARGE].is_buddy && bytes > p->options.block_bytes)
        return DRYI_PINNED_OWN;
    return DRYI_PINNED_LARGE;
}

/* Round up to the smallest size of a bin. Bin 32 of an octave is bin 0 of the next, which
   has twice the step. */
void
dryi_pinned_request_init(const struct dry_pinned *p, uint64_t bytes,
                         struct dryi_pinned_request *request)
{
    DRYI_ASSERT_SLOW(bytes > 0 && bytes <= DRYI_PINNED_BYTES_MAX);
    uint32_t name = choose_heap(p, bytes), bin;
    const struct dryi_pinned_heap *heap = &p->heaps[name];
    unsigned shift = heap->granule_shift;
    uint32_t granules = (uint32_t)((bytes + (UINT64_C(1) << shift) - 1) >> shift);
    if (heap->is_buddy) {
        bin = granules < 2 ? 0 : dryi_log2_floor(granules - 1) + 1;
        granules = UINT32_C(1) << bin;
    } else {
        unsigned octave = get_octave(granules);
        uint32_t step = (UINT32_C(1) << octave) - 1;
        granules = (granules + step) & ~step;
        bin = bin_in(octave, granules);
    }
    request->granules = granules;
    request->class_id = name << DRYI_PINNED_HEAP_SHIFT | bin;
    request->heap = name;
    request->bytes = (uint64_t)granules << shift;
    /* A cell has 32 bits for the waste; rounding a request above 256 GiB may exceed
       them. */
    uint64_t waste = request->bytes - bytes;
    request->requested = waste <= UINT32_MAX ? bytes : request->bytes - UINT32_MAX;
}

/* --- lists ---------------------------------------------------------------------------------- */

static void
link_block(struct dry_pinned *p, struct dryi_pinned_arena *a,
           struct dryi_pinned_cell *cell, uint32_t size)
{
    DRYI_ASSERT_SLOW(size > 0 && size <= a->count - (uint32_t)(cell - a->cells));
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    struct dryi_pinned_heap *heap = &p->heaps[a->heap];
    uint32_t bin = dryi_pinned_bin(heap, size), id = dryi_pinned_id(a, cell);
    cell->size = size;
    cell->previous = DRYI_PINNED_NONE;
    cell->next = heap->heads[bin];
    dryi_pinned_set_tag(cell, DRYI_PINNED_FREE, 0);
    if (size > 1) {
        cell[size - 1].size = size;
        dryi_pinned_set_tag(&cell[size - 1], DRYI_PINNED_FOOT, 0);
    }
    if (cell->next != DRYI_PINNED_NONE)
        dryi_pinned_cell(p, cell->next)->previous = id;
    heap->heads[bin] = id;
    heap->words[bin / 64] |= UINT64_C(1) << bin % 64;
    heap->summary |= UINT32_C(1) << bin / 64;
}

/* Take a free block out of its list and mark its cells INSIDE. */
static void
unlink_block(struct dry_pinned *p, struct dryi_pinned_heap *heap,
             struct dryi_pinned_cell *cell)
{
    DRYI_ASSERT_SLOW(dryi_pinned_cell_get_state(dryi_pinned_tag(cell)) ==
                     DRYI_PINNED_FREE);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    uint32_t bin = dryi_pinned_bin(heap, cell->size);
    DRYI_ASSERT_SLOW(heap->words[bin / 64] >> bin % 64 & 1);
    if (cell->next != DRYI_PINNED_NONE)
        dryi_pinned_cell(p, cell->next)->previous = cell->previous;
    if (cell->previous != DRYI_PINNED_NONE) {
        dryi_pinned_cell(p, cell->previous)->next = cell->next;
    } else {
        DRYI_ASSERT_SLOW(dryi_pinned_cell(p, heap->heads[bin]) == cell);
        heap->heads[bin] = cell->next;
        if (cell->next == DRYI_PINNED_NONE) {
            heap->words[bin / 64] &= ~(UINT64_C(1) << bin % 64);
            if (heap->words[bin / 64] == 0)
                heap->summary &= ~(UINT32_C(1) << bin / 64);
        }
    }
    dryi_pinned_set_tag(&cell[cell->size - 1], DRYI_PINNED_INSIDE, 0);
    dryi_pinned_set_tag(cell, DRYI_PINNED_INSIDE, 0);
}

/* Return the first block of the lowest non-empty bin from `bin` on; NONE: all are
   empty. */
static uint32_t
find_block(const struct dryi_pinned_heap *heap, uint32_t bin)
{
    uint32_t word = bin / 64;
    uint64_t bits = heap->words[word] & UINT64_MAX << bin % 64;
    if (bits == 0) {
        uint32_t above = heap->summary & (UINT32_MAX << word) << 1;
        if (above == 0)
            return DRYI_PINNED_NONE;
        word = (uint32_t)__builtin_ctz(above);
        bits = heap->words[word];
    }
    return heap->heads[word * 64 + (uint32_t)__builtin_ctzll(bits)];
}

/* --- take and give -------------------------------------------------------------------------- */

struct dryi_pinned_cell *
dryi_pinned_heap_take(struct dry_pinned *p, const struct dryi_pinned_request *request,
                      uint64_t *address)
{
    DRYI_ASSERT_SLOW(request->class_id >> DRYI_PINNED_HEAP_SHIFT == request->heap);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    struct dryi_pinned_heap *heap = &p->heaps[request->heap];
    uint32_t bin = request->class_id & ((1u << DRYI_PINNED_HEAP_SHIFT) - 1);
    uint32_t id = find_block(heap, bin);
    if (id == DRYI_PINNED_NONE)
        return NULL;
    struct dryi_pinned_cell *cell = dryi_pinned_cell(p, id);
    struct dryi_pinned_arena *a = dryi_pinned_arena_get(p, id);
    uint32_t size = cell->size;
    DRYI_ASSERT(dryi_pinned_cell_get_state(dryi_pinned_tag(cell)) == DRYI_PINNED_FREE);
    DRYI_ASSERT(size >= request->granules);
    unlink_block(p, heap, cell);
    while (heap->is_buddy && size > request->granules) {
        size /= 2;
        link_block(p, a, cell + size, size);
    }
    if (size > request->granules)
        link_block(p, a, cell + request->granules, size - request->granules);
    cell->size = request->granules;
    if (a->used == 0)
        p->idle_bytes -= a->range.bytes;
    a->used += request->granules;
    a->is_unwanted = false;
    dryi_pinned_mark_used(cell, request->class_id,
                          (uint32_t)(request->bytes - request->requested));
    *address = dryi_pinned_block_address(a, cell);
    return cell;
}

static bool
is_free(const struct dryi_pinned_cell *cell)
{
    return dryi_pinned_cell_get_state(dryi_pinned_tag(cell)) == DRYI_PINNED_FREE;
}

static void
give_fit(struct dry_pinned *p, struct dryi_pinned_arena *a, struct dryi_pinned_cell *cell)
{
    DRYI_ASSERT_SLOW(cell->size <= a->count - (uint32_t)(cell - a->cells));
    struct dryi_pinned_heap *heap = &p->heaps[a->heap];
    uint32_t size = cell->size;
    struct dryi_pinned_cell *behind = cell + size;
    if (behind < a->cells + a->count && is_free(behind)) {
        size += behind->size;
        unlink_block(p, heap, behind);
    }
    if (cell > a->cells) {
        struct dryi_pinned_cell *before = cell - 1;
        if (dryi_pinned_cell_get_state(dryi_pinned_tag(before)) == DRYI_PINNED_FOOT)
            before -= before->size - 1;
        if (is_free(before)) {
            size += before->size;
            unlink_block(p, heap, before);
            cell = before;
        }
    }
    link_block(p, a, cell, size);
}

static void
give_buddy(struct dry_pinned *p, struct dryi_pinned_arena *a,
           struct dryi_pinned_cell *cell)
{
    uint32_t at = (uint32_t)(cell - a->cells), size = cell->size;
    DRYI_ASSERT_SLOW(dryi_is_power_of_two(size) && at % size == 0);
    while (size < a->count) {
        struct dryi_pinned_cell *other = a->cells + (at ^ size);
        if (!is_free(other) || other->size != size)
            break;
        unlink_block(p, &p->heaps[a->heap], other);
        at &= ~size;
        size *= 2;
    }
    link_block(p, a, a->cells + at, size);
}

void
dryi_pinned_heap_give(struct dry_pinned *p, struct dryi_pinned_arena *a,
                      struct dryi_pinned_cell *cell)
{
    DRYI_ASSERT_SLOW(dryi_pinned_cell_get_state(dryi_pinned_tag(cell)) >=
                     DRYI_PINNED_USED);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    DRYI_ASSERT(a->used >= cell->size);
    a->used -= cell->size;
    if (a->used == 0) {
        p->idle_bytes += a->range.bytes;
        a->is_unwanted = dryi_pinned_block_bytes(a, cell) > p->options.keep_max_bytes;
        p->has_unwanted |= a->is_unwanted;
    }
    dryi_pinned_set_tag(cell, DRYI_PINNED_INSIDE, 0);
    if (p->heaps[a->heap].is_buddy)
        give_buddy(p, a, cell);
    else
        give_fit(p, a, cell);
}

void
dryi_pinned_heap_add(struct dry_pinned *p, struct dryi_pinned_arena *a)
{
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    p->idle_bytes += a->range.bytes;
    link_block(p, a, a->cells, a->count);
}

void
dryi_pinned_heap_remove(struct dry_pinned *p, struct dryi_pinned_arena *a)
{
    DRYI_ASSERT_SLOW(p->idle_bytes >= a->range.bytes);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    DRYI_ASSERT(a->used == 0 && a->cells->size == a->count);
    p->idle_bytes -= a->range.bytes;
    unlink_block(p, &p->heaps[a->heap], a->cells);
}

uint64_t
dryi_pinned_heap_largest(const struct dry_pinned *p, uint32_t name)
{
    DRYI_ASSERT_SLOW(name < DRYI_PINNED_HEAP_COUNT);
    DRYI_ASSERT_SLOW(dryi_lock_is_taken(&p->lock));
    const struct dryi_pinned_heap *heap = &p->heaps[name];
    if (heap->summary == 0)
        return 0;
    uint32_t word = dryi_log2_floor(heap->summary);
    uint32_t bin = word * 64 + dryi_log2_floor(heap->words[word]);
    uint32_t size = dryi_pinned_cell(p, heap->heads[bin])->size;
    if (!heap->is_buddy) {
        unsigned octave = get_octave(size);
        size = size >> octave << octave;
    }
    return (uint64_t)size << heap->granule_shift;
}
