/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Shelves: free blocks by size, in 32 octaves of 32 bins, two words of bits leading to the
 * first that holds any (Masmano, Ripoll, Crespo and Real, "TLSF", ECRTS 2004). Unlike there a
 * request is not rounded up to the next bin: its own is scanned for the best fit, over a
 * bounded number of blocks, which places like an exact best fit at a bounded cost.
 */

#include "base/assert.h"
#include "base/memory.h"
#include "place/paged_inside.h"

uint32_t
dryi_paged_bin_at_most(const struct shelf *s, uint32_t bin)
{
    uint32_t octave = bin / 32;
    uint32_t bits = s->bins[octave] & (UINT32_MAX >> (31 - bin % 32));
    if (bits == 0) {
        uint32_t octaves = s->octaves & ((UINT32_C(1) << octave) - 1);
        if (octaves == 0)
            return NONE;
        octave = 31 - (uint32_t)__builtin_clz(octaves);
        bits = s->bins[octave];
    }
    return octave * 32 + 31 - (uint32_t)__builtin_clz(bits);
}

/*
 * Whether a list ends here is as often so as not, and a branch foretold wrongly costs more than
 * all of this: so nothing is asked, and what has no neighbour there writes to a record that is no
 * block's. Each shelf has its own: other threads are at other shelves.
 */
void
dryi_paged_shelf_insert(struct dryi_paged *p, uint32_t block)
{
    struct block *b = &p->blocks[block];
    struct shelf *s = p->shelves[b->shelf];
    uint32_t bin = bin_of(b->size);
    uint32_t head = s->heads[bin];
    b->bin_prev = s->end;
    b->bin_next = head;
    p->blocks[head].bin_prev = block;
    s->heads[bin] = block;
    s->bins[bin / 32] |= UINT32_C(1) << (bin % 32);
    s->octaves |= UINT32_C(1) << (bin / 32);
}

void
dryi_paged_shelf_remove(struct dryi_paged *p, uint32_t block)
{
    const struct block *b = &p->blocks[block];
    struct shelf *s = p->shelves[b->shelf];
    uint32_t bin = bin_of(b->size), octave = bin / 32;
    uint32_t next = b->bin_next, prev = b->bin_prev;
    uint32_t end = s->end;
    p->blocks[next].bin_prev = prev;
    p->blocks[prev].bin_next = next;
    uint32_t is_first = -(uint32_t)(prev == end);
    uint32_t head = s->heads[bin] = (next & is_first) | (s->heads[bin] & ~is_first);
    s->bins[octave] &= ~((uint32_t)(head == end) << (bin % 32));
    s->octaves &= ~((uint32_t)(s->bins[octave] == 0) << octave);
}

/* The smallest of the first blocks that are large enough, then the lowest. */
static uint32_t
scan_bin(const struct dryi_paged *p, const struct shelf *s, uint32_t bin, uint64_t size)
{
    uint32_t at = s->heads[bin], best = NONE, end = s->end;
    if (p->blocks[at].bin_next == end) /* mostly there is one alone */
        return p->blocks[at].size >= size ? at : NONE;
    uint64_t best_size = UINT64_MAX, best_addr = UINT64_MAX;
    for (unsigned i = 0; at != end && i < SCAN_MAX; i++) {
        const struct block *b = &p->blocks[at];
        bool is_smaller = b->size < best_size;
        bool is_lower = (b->size == best_size) & (b->addr < best_addr);
        bool is_better = (b->size >= size) & (is_smaller | is_lower);
        best = is_better ? at : best;
        best_size = is_better ? b->size : best_size;
        best_addr = is_better ? b->addr : best_addr;
        at = b->bin_next;
    }
    return best;
}

uint32_t
dryi_paged_shelf_find(const struct dryi_paged *p, const struct shelf *s, uint64_t size)
{
    uint32_t own = bin_of(size);
    uint32_t bin = bin_at_least(s, own);
    if (bin == NONE)
        return NONE;
    uint32_t best = scan_bin(p, s, bin, size);
    if (best != NONE || bin != own || own + 1 == BIN_COUNT)
        return best;
    bin = bin_at_least(s, own + 1);
    return bin == NONE ? NONE : scan_bin(p, s, bin, size);
}

uint32_t
dryi_paged_shelf_find_any(const struct dryi_paged *p, const struct shelf *s,
                          uint64_t size)
{
    uint32_t at = s->heads[bin_of(size)];
    while (at != s->end && p->blocks[at].size < size)
        at = p->blocks[at].bin_next;
    return at == s->end ? NONE : at;
}

#define OLD_SCAN_MAX 64

uint32_t
dryi_paged_shelf_find_old(const struct dryi_paged *p, const struct shelf *s,
                          uint64_t size, uint64_t epoch)
{
    unsigned looked = 0;
    uint32_t bin = bin_at_least(s, bin_of(size));
    while (bin != NONE && looked < OLD_SCAN_MAX) {
        for (uint32_t at = s->heads[bin]; at != s->end && looked < OLD_SCAN_MAX;
             looked++) {
            const struct block *b = &p->blocks[at];
            if (b->size >= size && b->epoch <= epoch)
                return at;
            at = b->bin_next;
        }
        bin = bin + 1 == BIN_COUNT ? NONE : bin_at_least(s, bin + 1);
    }
    return NONE;
}

/* Records for one are reserved. */
static struct shelf *
make_shelf(struct dryi_paged *p, uint32_t arena)
{
    struct shelf *s = dryi_memory_zalloc(&p->memory, 1, sizeof *s);
    if (!s)
        return NULL;
    s->arena = arena;
    s->is_small = arena_is_small(arena);
    s->next = s->next_of_stream = s->dead.first = NONE;
    s->end = dryi_paged_record_take(p);
    for (uint32_t bin = 0; bin < BIN_COUNT; bin++)
        s->heads[bin] = s->end;
    return s;
}

uint32_t
dryi_paged_shelf_make(struct dryi_paged *p, uint32_t arena, enum shelf_kind kind,
                      uint32_t stream)
{
    if (!dryi_memory_grow(&p->memory, &p->shelves, &p->shelf_capacity,
                          (size_t)p->shelf_count + 1, sizeof(struct shelf *)) ||
        !dryi_paged_block_reserve(p, 1))
        return NONE;
    struct shelf *s = make_shelf(p, arena);
    if (!s)
        return NONE;
    s->kind = kind;
    s->stream = stream;
    if (kind == SHELF_STREAM && arena_is_small(arena) &&
        !(p->owners[arena / 2].flags & DRYI_POOL_NO_SPLIT))
        dryi_paged_front_make(p, s);
    p->shelves[p->shelf_count] = s;
    return p->shelf_count++;
}

uint32_t
dryi_paged_shelf_ask(struct dryi_paged *p, uint32_t arena, uint32_t stream)
{
    struct arena *a = &p->arenas[arena];
    uint64_t key = (uint64_t)arena << 32 | stream;
    const uint32_t *known = dryi_map_find(&p->shelf_ids, key);
    uint32_t shelf = known ? *known : NONE;
    if (!known) {
        if (!dryi_map_put(&p->shelf_ids, key, p->shelf_count))
            return NONE;
        shelf = dryi_paged_shelf_make(p, arena, SHELF_STREAM, stream);
        if (shelf == NONE) {
            dryi_map_take(&p->shelf_ids, key);
            return NONE;
        }
        p->shelves[shelf]->next = a->shelves;
        a->shelves = shelf;
        p->shelves[shelf]->next_of_stream = p->streams[stream].shelves;
        p->streams[stream].shelves = shelf;
    }
    a->last_stream = stream;
    return a->last_shelf = shelf;
}

bool
dryi_paged_is_usable(const struct dryi_paged *p, uint32_t shelf, const struct block *b)
{
    if (b->shelf == shelf)
        return true;
    const struct shelf *own = p->shelves[shelf], *s = p->shelves[b->shelf];
    if (s->kind != SHELF_STREAM)
        return s->kind == SHELF_EVERYBODY;
    if (dryi_paged_is_over(p, b) && p->conf.reuse_passed)
        return true;
    return own->kind == SHELF_STREAM && p->conf.reuse_ordered &&
           b->epoch <= dryi_paged_known_epoch(p, own->stream, s->stream);
}
