/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Blocks by their addresses.
 *
 * Whoever frees a block tells its address alone. Small blocks lie anywhere: a pool keeps a table
 * of them. Large ones are so long that at most one in use begins in each stretch of as many bytes as
 * the largest small block has: arrays of these stretches lead to it, without a hash, without a
 * search, and without a write when the block is freed, for what stands there is held against the
 * block's own record. Nothing is ever taken out.
 *
 * So it is for the segment that the default pool has had first; it is as large as the device, and
 * others are rare. Cost: 4 bytes of the process a stretch, by default of 64 KiB, where pages have
 * lain. Where there is no memory for them nothing is found, and tables do.
 */

#include "base/ablate.h"
#include "base/memory.h"
#include "place/paged/paged_inside.h"

#define STRETCH_MIN                                                                      \
    (UINT64_C(16) << 10) /* shorter ones would take more memory than tables */

void
dryi_paged_index_begin(struct dryi_paged *p, uint32_t segment)
{
    const struct segment *s = &p->segments[segment];
    if (p->conf.small_max < STRETCH_MIN || DRYI_ABLATED(address_index))
        return;
    struct address_index index = {.range = {s->addr, s->size}, .segment = segment};
    index.shift = dryi_log2_floor(p->conf.small_max);
    index.count = (size_t)((s->size - 1) >> (index.shift + LEAF_SHIFT)) + 1;
    index.leaves = dryi_memory_zalloc(&p->memory, index.count, sizeof *index.leaves);
    if (index.leaves)
        p->index = index;
}

void
dryi_paged_index_extend(struct dryi_paged *p, uint32_t segment, uint64_t lo, uint64_t hi)
{
    const struct address_index *f = &p->index;
    if (f->range.size == 0 || segment != f->segment)
        return;
    size_t first = (size_t)((lo - f->range.addr) >> (f->shift + LEAF_SHIFT));
    size_t last = (size_t)((hi - 1 - f->range.addr) >> (f->shift + LEAF_SHIFT));
    for (size_t i = first; i <= last; i++) {
        if (!f->leaves[i])
            f->leaves[i] =
                dryi_memory_zalloc(&p->memory, LEAF_COUNT, sizeof *f->leaves[i]);
    }
}

void
dryi_paged_index_finish(struct dryi_paged *p)
{
    struct address_index *f = &p->index;
    for (size_t i = 0; i < f->count; i++)
        dryi_memory_free(&p->memory, f->leaves[i], LEAF_COUNT, sizeof *f->leaves[i]);
    dryi_memory_free(&p->memory, f->leaves, f->count, sizeof(uint32_t *));
    *f = (struct address_index){.count = 0};
}

/* The stretch says who began there last; whether that is so now, the block does. */
static inline uint32_t
find_used(const struct dryi_paged *p, uint64_t address)
{
    const uint32_t *begun = dryi_paged_index_at(&p->index, address);
    if (!begun)
        return NIL;
    const struct block *b = &p->blocks[*begun]; /* of NIL a dead one */
    bool is_it =
        b->addr == address && b->state == BLOCK_USED && b->address == ADDRESS_BY_INDEX;
    return is_it ? *begun : NIL;
}

dryi_block
dryi_paged_find(const void *self, uint64_t address)
{
    uint32_t block = find_used(self, address);
    return block == NIL ? DRYI_NO_BLOCK : block;
}

DRYI_FLATTEN enum dry_status
dryi_paged_free_found(void *self, uint64_t address)
{
    struct dryi_paged *p = self;
    uint32_t block = find_used(p, address);
    return block == NIL ? DRY_ERR_ARGUMENT : dryi_paged_free_used(p, block);
}
