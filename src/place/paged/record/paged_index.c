/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finding blocks by address.
 *
 * A caller frees a block by its address alone. Small blocks are found in a hash table of the pool.
 * Large ones are found here: a stretch is no longer than the largest small block, so at most one
 * large block in use begins in each stretch. An array entry per stretch names that block, without a
 * hash or a search. A free leaves the entry in place: the block's own record tells whether the
 * entry is still true.
 *
 * The index covers the first segment of the default pool. That segment is by default as large as
 * the device, so further segments are rare. The cost is 4 bytes of host memory per stretch (64 KiB
 * by default) of addresses that were ever mapped. If memory for entries ran out, blocks are found
 * through the pool's table instead.
 */

#include "place/paged/record/paged_index.h"

#include "base/ablate.h"
#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"

#define STRETCH_MIN                                                                      \
    (UINT64_C(16) << 10) /* shorter stretches would take more memory than tables */

void
dryi_paged_index_begin(struct dryi_paged *p, uint32_t segment)
{
    DRYI_ASSERT_SLOW(p->index.range.size == 0 && p->segments[segment].live);
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
    DRYI_ASSERT_SLOW(lo < hi);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
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

/* Read the block that last began in the stretch, then check that it begins at `address` now. */
uint32_t
dryi_paged_find_used(const struct dryi_paged *p, uint64_t address)
{
    const uint32_t *begun = dryi_paged_index_at(&p->index, address);
    if (!begun)
        return NIL;
    /* The record of NIL is always dead, so needs no test. */
    const struct block *b = &p->blocks[*begun];
    bool is_it =
        b->addr == address && b->state == BLOCK_USED && b->address == ADDRESS_BY_INDEX;
    return is_it ? *begun : NIL;
}

dryi_block
dryi_paged_find(const void *self, uint64_t address)
{
    uint32_t block = dryi_paged_find_used(self, address);
    return block == NIL ? DRYI_NO_BLOCK : block;
}

/* --- the blocks of the layout ------------------------------------------------------- */

static uint64_t *
get_word(const struct layout *layout, unsigned level, size_t at)
{
    return &layout->bits[layout->levels[level] + at / 64];
}

static void
set_bit(const struct layout *layout, size_t at)
{
    for (unsigned level = 0; level < LEVEL_COUNT; level++, at /= 64)
        *get_word(layout, level, at) |= UINT64_C(1) << (at % 64);
}

static void
clear_bit(const struct layout *layout, size_t at)
{
    for (unsigned level = 0; level < LEVEL_COUNT; level++, at /= 64) {
        uint64_t *word = get_word(layout, level, at);
        *word &= ~(UINT64_C(1) << (at % 64));
        if (*word)
            return;
    }
}

/*
 * Return the last page up to `at` in which a block begins. One exists: a block begins at the start
 * of each segment.
 */
static size_t
find_page(const struct layout *layout, size_t at)
{
    unsigned level = 0;
    uint64_t below = *get_word(layout, 0, at) & (UINT64_MAX >> (63 - at % 64));
    while (below == 0 && ++level < LEVEL_COUNT) {
        at /= 64;
        below = *get_word(layout, level, at) & ((UINT64_C(1) << (at % 64)) - 1);
    }
    DRYI_ASSERT(below != 0);
    at = at / 64 * 64 + dryi_log2_floor(below);
    while (level-- > 0)
        at = at * 64 + dryi_log2_floor(*get_word(layout, level, at * 64));
    return at;
}

size_t
dryi_paged_layout_find_page(const struct dryi_paged *p, uint64_t addr)
{
    DRYI_ASSERT_SLOW(p->layout.segment != NONE);
    return (size_t)((addr - p->segments[p->layout.segment].addr) >> p->page_shift);
}

void
dryi_paged_layout_add(struct dryi_paged *p, uint32_t block)
{
    DRYI_ASSERT_SLOW(p->blocks[block].segment == p->layout.segment);
    uint64_t addr = p->blocks[block].addr;
    size_t page = dryi_paged_layout_find_page(p, addr);
    uint32_t *last = &p->layout.begins[page];
    if (*last == NONE)
        set_bit(&p->layout, page);
    if (*last == NONE || p->blocks[*last].addr <= addr)
        *last = block;
}

void
dryi_paged_layout_take_out(struct dryi_paged *p, uint32_t block)
{
    DRYI_ASSERT_SLOW(p->blocks[block].segment == p->layout.segment);
    const struct block *b = &p->blocks[block];
    size_t page = dryi_paged_layout_find_page(p, b->addr);
    uint32_t *last = &p->layout.begins[page];
    if (*last != block)
        return;
    bool is_other = b->prev != NONE &&
                    dryi_paged_layout_find_page(p, p->blocks[b->prev].addr) == page;
    *last = is_other ? b->prev : NONE;
    if (!is_other)
        clear_bit(&p->layout, page);
}

/* Most blocks of a page that a look-up visits. A page with more blocks is of no use to a layout. */
#define BACK_MAX 32

uint32_t
dryi_paged_layout_block_at(const struct dryi_paged *p, uint64_t addr)
{
    DRYI_ASSERT_SLOW(p->layout.segment != NONE);
    uint32_t at =
        p->layout.begins[find_page(&p->layout, dryi_paged_layout_find_page(p, addr))];
    for (unsigned i = 0; p->blocks[at].addr > addr; i++) {
        if (i == BACK_MAX)
            return NONE;
        at = p->blocks[at].prev;
    }
    return at;
}

void
dryi_paged_layout_unindex(struct dryi_paged *p)
{
    struct layout *layout = &p->layout;
    dryi_memory_free(&p->memory, layout->begins, layout->page_count,
                     sizeof *layout->begins);
    dryi_memory_free(&p->memory, layout->bits, layout->bit_words, sizeof *layout->bits);
    *layout = (struct layout){.segment = NONE};
}

bool
dryi_paged_layout_index(struct dryi_paged *p, uint32_t segment)
{
    struct layout layout = {.segment = segment,
                            .page_count = p->segments[segment].page_count};
    size_t words = layout.page_count;
    DRYI_ASSERT(p->layout.segment == NONE);
    for (unsigned level = 0; level < LEVEL_COUNT; level++) {
        words = words / 64 + 1;
        layout.levels[level] = layout.bit_words;
        layout.bit_words += words;
    }
    layout.begins =
        dryi_memory_zalloc(&p->memory, layout.page_count, sizeof *layout.begins);
    layout.bits = dryi_memory_zalloc(&p->memory, layout.bit_words, sizeof *layout.bits);
    p->layout = layout;
    if (!layout.begins || !layout.bits) {
        dryi_paged_layout_unindex(p);
        return false;
    }
    for (size_t i = 0; i < layout.page_count; i++)
        layout.begins[i] = NONE;
    for (uint32_t at = p->segments[segment].first_block; at != NONE;
         at = p->blocks[at].next)
        dryi_paged_layout_add(p, at);
    return true;
}

const char *
dryi_paged_layout_check(const struct dryi_paged *p)
{
    const struct layout *layout = &p->layout;
    if (layout->segment == NONE)
        return NULL;
    size_t begun = 0, known = 0;
    for (uint32_t at = p->segments[layout->segment].first_block; at != NONE;) {
        uint32_t next = p->blocks[at].next;
        size_t page = dryi_paged_layout_find_page(p, p->blocks[at].addr);
        if (next == NONE ||
            dryi_paged_layout_find_page(p, p->blocks[next].addr) != page) {
            begun++;
            if (layout->begins[page] != at || find_page(layout, page) != page)
                return "P8: the last block of a page is known";
        }
        at = next;
    }
    for (size_t i = 0; i < layout->page_count; i++)
        known += layout->begins[i] != NONE;
    return known == begun ? NULL : "P8: no block is known that is not there";
}
