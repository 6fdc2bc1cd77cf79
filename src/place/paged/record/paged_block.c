/* SPDX-License-Identifier: Apache-2.0 */

/* Records of blocks: see paged_block.h. Merging only returns records, so a free allocates none. */

#include "place/paged/record/paged_block.h"

#include <string.h>

#include "base/ablate.h"
#include "base/assert.h"
#include "base/memory.h"
#include "place/paged/record/paged_bins.h"
#include "place/paged/record/paged_event.h"
#include "place/paged/record/paged_index.h"

_Static_assert(sizeof(struct block) == 64, "a record fills a line of the cache");

/* Return the offset of the first cache line boundary in `memory`. */
static size_t
to_line(const unsigned char *memory)
{
    return -(uintptr_t)memory & (sizeof(struct block) - 1);
}

/*
 * Grow the array for `count` more records, each in one cache line. Memory from the allocator may
 * begin inside a line, so the records may shift after the array moves.
 */
bool
dryi_paged_block_grow(struct dryi_paged *p, uint32_t count)
{
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    size_t needed = (size_t)p->block_count + (count - p->dead.count);
    size_t before = p->block_memory ? to_line(p->block_memory) : 0;
    if (needed >= NONE || !dryi_memory_grow(&p->memory, &p->block_memory, &p->block_bytes,
                                            (needed + 1) * sizeof *p->blocks, 1))
        return false;
    size_t now = to_line(p->block_memory);
    if (p->blocks && now != before)
        memmove(p->block_memory + now, p->block_memory + before,
                p->block_count * sizeof *p->blocks);
    bool is_first = !p->blocks;
    p->blocks = (struct block *)(void *)(p->block_memory + now);
    if (is_first)
        p->blocks[NIL] = (struct block){.state = BLOCK_DEAD};
    p->block_capacity = p->block_bytes / sizeof *p->blocks - 1;
    return true;
}

static uint32_t
pop_record(struct dryi_paged *p, struct records *dead)
{
    uint32_t block = dead->first;
    dead->first = p->blocks[block].next;
    dead->count--;
    return block;
}

static void
push_record(struct dryi_paged *p, struct records *dead, uint32_t block)
{
    p->blocks[block].next = dead->first;
    dead->first = block;
    dead->count++;
}

uint32_t
dryi_paged_record_take(struct dryi_paged *p)
{
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_PLACE));
    if (p->dead.count > 0)
        return pop_record(p, &p->dead);
    DRYI_ASSERT(p->block_count < p->block_capacity);
    p->blocks[p->block_count].state = BLOCK_DEAD;
    return p->block_count++;
}

void
dryi_paged_record_drop(struct dryi_paged *p, uint32_t block)
{
    DRYI_ASSERT_SLOW(block != NIL && p->blocks[block].state == BLOCK_DEAD);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_PLACE));
    push_record(p, &p->dead, block);
}

void
dryi_paged_records_refill(struct dryi_paged *p, struct free_list *s, uint32_t wanted)
{
    DRYI_ASSERT_SLOW(wanted <= RECORDS_MAX);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_PLACE));
    while (s->dead.count > wanted)
        push_record(p, &p->dead, pop_record(p, &s->dead));
    while (s->dead.count < wanted &&
           (p->dead.count > 0 || p->block_count < p->block_capacity))
        push_record(p, &s->dead, dryi_paged_record_take(p));
}

uint32_t
dryi_paged_block_make(struct dryi_paged *p, uint32_t list, uint32_t segment,
                      uint32_t after, uint64_t addr, uint64_t size)
{
    DRYI_ASSERT_SLOW(after == NONE || p->blocks[after].segment == segment);
    struct free_list *s = p->lists[list];
    uint32_t block =
        s->dead.count > 0 ? pop_record(p, &s->dead) : dryi_paged_record_take(p);
    s->block_count++;
    uint32_t next = after == NONE ? NONE : p->blocks[after].next;
    struct block *b = &p->blocks[block];
    b->addr = addr;
    b->size = size;
    b->epoch = 0;
    b->prev = after;
    b->next = next;
    block_set_list(b, list);
    b->segment = segment;
    b->uses = NONE;
    b->state = BLOCK_DEAD;
    b->has_ticket = false;
    b->address = ADDRESS_UNKNOWN;
    if (after == NONE)
        p->segments[segment].first_block = block;
    else
        block_set_next(&p->blocks[after], block);
    if (next != NONE)
        block_set_prev(&p->blocks[next], block);
    dryi_paged_note_begin(p, block);
    return block;
}

void
dryi_paged_block_drop(struct dryi_paged *p, uint32_t block)
{
    DRYI_ASSERT_SLOW(p->blocks[block].state != BLOCK_DEAD);
    struct free_list *s = p->lists[p->blocks[block].list];
    s->block_count--;
    p->blocks[block].state = BLOCK_DEAD;
    push_record(p, s->has_records ? &s->dead : &p->dead, block);
}

uint32_t
dryi_paged_block_split(struct dryi_paged *p, uint32_t block, uint64_t size)
{
    DRYI_ASSERT(size > 0 && size < p->blocks[block].size);
    uint64_t addr = p->blocks[block].addr + size;
    uint32_t rest =
        dryi_paged_block_make(p, p->blocks[block].list, p->blocks[block].segment, block,
                              addr, p->blocks[block].size - size);
    p->blocks[rest].state = p->blocks[block].state;
    p->blocks[rest].epoch = p->blocks[block].epoch;
    p->blocks[block].size = size;
    return rest;
}

/* Merge the next block, which is on no list, into this one. */
static void
merge_next(struct dryi_paged *p, uint32_t block)
{
    struct block *b = &p->blocks[block];
    uint32_t other = b->next;
    const struct block *o = &p->blocks[other];
    DRYI_ASSERT(block_end(b) == o->addr);
    dryi_paged_block_assign(p, other, b->list);
    dryi_paged_note_end(p, other);
    b->size += o->size;
    if (b->epoch < o->epoch)
        b->epoch = o->epoch;
    block_set_next(b, o->next);
    if (b->next != NONE)
        block_set_prev(&p->blocks[b->next], block);
    dryi_paged_block_drop(p, other);
}

/* --- dividers ----------------------------------------------------------------------- */

void
dryi_paged_divider_drop(struct dryi_paged *p, uint32_t divider)
{
    if (divider == NONE || block_list_beside(&p->blocks[divider]) != DIVIDERS)
        return;
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_PLACE));
    struct block *f = &p->blocks[divider];
    if (f->bin_next != NONE)
        p->blocks[f->bin_next].bin_prev = f->bin_prev;
    *(f->bin_prev == NONE ? &p->first_divider : &p->blocks[f->bin_prev].bin_next) =
        f->bin_next;
    block_set_next(&p->blocks[f->prev], f->next);
    block_set_prev(&p->blocks[f->next], f->prev);
    uint32_t list = p->blocks[f->prev].list;
    p->lists[list]->block_count++;
    block_set_list(f, list);
    dryi_paged_block_drop(p, divider);
    p->divider_count--;
}

DRYI_NOINLINE static void
relist(struct dryi_paged *p, uint32_t block, uint32_t list)
{
    DRYI_ASSERT_SLOW(p->lists[list] != NULL);
    p->lists[p->blocks[block].list]->block_count--;
    p->lists[list]->block_count++;
    block_set_list(&p->blocks[block], list);
    if (p->divider_count == 0)
        return;
    dryi_paged_divider_drop(p, p->blocks[block].prev);
    dryi_paged_divider_drop(p, p->blocks[block].next);
}

void
dryi_paged_block_assign(struct dryi_paged *p, uint32_t block, uint32_t list)
{
    if (p->blocks[block].list != list)
        relist(p, block, list);
}

/* --- links -------------------------------------------------------------------------- */

/*
 * Is this link of a block of `list` changed only by the holder of that list's cache? If the link
 * leads to a divider, its record may have been reused meanwhile, so the link is read again. The
 * record cannot have become a hole or a block of `list`: only the holder of the cache makes these.
 */
static bool
is_link_ours(const struct dryi_paged *p, uint32_t list, const uint32_t *link)
{
    uint32_t other = link_beside(link);
    if (other == NONE)
        return true;
    uint32_t its = block_list_beside(&p->blocks[other]);
    if (its == DIVIDERS)
        return link_beside(link) == other;
    return its == list || its == p->arenas[p->lists[list]->arena].holes;
}

static bool
is_free(const struct dryi_paged *p, uint32_t block)
{
    return block != NONE && p->blocks[block].state == BLOCK_FREE;
}

bool
dryi_paged_is_enclosed(const struct dryi_paged *p, uint32_t block)
{
    DRYI_ASSERT_SLOW(p->is_shared);
    const struct block *b = &p->blocks[block];
    if (!is_link_ours(p, b->list, &b->prev) || !is_link_ours(p, b->list, &b->next))
        return false;
    /* Between two free blocks, merging the next block also changes the link after that block. */
    return !is_free(p, b->prev) || !is_free(p, b->next) ||
           is_link_ours(p, b->list, &p->blocks[b->next].next);
}

/* --- merging ------------------------------------------------------------------------ */

/*
 * Must this block stay apart from complete blocks because its stream is captured? Blocks freed
 * during a capture become complete only after its end. A complete block that stays apart can serve
 * another stream of the arena meanwhile.
 */
static bool
waits_for_capture(const struct dryi_paged *p, const struct block *b)
{
    const struct free_list *s = p->lists[b->list];
    return p->capture_count > 0 && (s->prev != NONE || s->next != NONE) &&
           !dryi_paged_is_complete(p, b) && dryi_paged_is_captured(p, s->stream);
}

/*
 * Do as may_merge() for blocks of two lists. Requires that all uses of `o` are complete, because
 * its epoch has no meaning on the list of `b`. While other threads use their caches, blocks of
 * their lists are left alone.
 */
DRYI_NOINLINE static bool
may_merge_foreign(const struct dryi_paged *p, const struct block *b,
                  const struct block *o)
{
    uint32_t its = block_list_beside(o);
    if (its == DIVIDERS || p->lists[b->list]->kind != FREE_STREAM ||
        DRYI_ABLATED(foreign_merge))
        return false;
    enum free_list_kind kind = p->lists[its]->kind;
    if (kind == FREE_HOLES ||
        (kind == FREE_STREAM && (p->is_beside || !p->conf.reuse_passed)))
        return false;
    return o->state == b->state &&
           (kind == FREE_SHARED || dryi_paged_is_complete(p, o)) &&
           !waits_for_capture(p, b);
}

/* May `b`, which is on no list, be merged with its neighbour `other`? */
static inline bool
may_merge(const struct dryi_paged *p, const struct block *b, uint32_t other)
{
    if (other == NONE)
        return false;
    const struct block *o = &p->blocks[other];
    if (block_list_beside(o) != b->list)
        return may_merge_foreign(p, b, o);
    return o->state == b->state;
}

/*
 * Take `other` off its list before `b` merges it. If it comes from another list, its uses are
 * complete and its epoch becomes 0.
 */
static void
take_in(struct dryi_paged *p, const struct block *b, uint32_t other)
{
    dryi_paged_list_remove(p, other);
    if (p->blocks[other].list != b->list)
        p->blocks[other].epoch = 0;
}

/* Change the range of a free block on its list. The block is moved only if its bin changes. */
static void
resize(struct dryi_paged *p, uint32_t block, uint64_t addr, uint64_t size)
{
    struct block *b = &p->blocks[block];
    if (find_bin(b->size) == find_bin(size)) {
        b->addr = addr;
        b->size = size;
        return;
    }
    dryi_paged_list_remove(p, block);
    b->addr = addr;
    b->size = size;
    dryi_paged_list_insert(p, block);
}

uint32_t
dryi_paged_block_cut(struct dryi_paged *p, uint32_t block, uint64_t size)
{
    DRYI_ASSERT_SLOW(p->blocks[block].state == BLOCK_FREE);
    uint64_t addr = p->blocks[block].addr;
    uint32_t before = p->blocks[block].prev, segment = p->blocks[block].segment;
    DRYI_ASSERT(size > 0 && size < p->blocks[block].size);
    uint32_t first =
        dryi_paged_block_make(p, p->blocks[block].list, segment, before, addr, size);
    if (before == NONE) { /* dryi_paged_block_make() set no next block in this case */
        block_set_next(&p->blocks[first], block);
        block_set_prev(&p->blocks[block], first);
    }
    resize(p, block, addr + size, p->blocks[block].size - size);
    dryi_paged_note_begin(p, block);
    return first;
}

/* Merge a block into its neighbour, which stays on its list. Returns the neighbour. */
static uint32_t
grow_neighbour(struct dryi_paged *p, uint32_t block, uint32_t other)
{
    const struct block *b = &p->blocks[block];
    struct block *o = &p->blocks[other];
    bool is_behind = b->next == other;
    uint64_t addr = is_behind ? b->addr : o->addr;
    dryi_paged_note_end(p, is_behind ? other : block);
    if (o->epoch < b->epoch)
        o->epoch = b->epoch;
    if (b->prev != NONE)
        block_set_next(&p->blocks[b->prev], b->next);
    else
        p->segments[b->segment].first_block = b->next;
    if (b->next != NONE)
        block_set_prev(&p->blocks[b->next], b->prev);
    resize(p, other, addr, o->size + b->size);
    if (is_behind)
        dryi_paged_note_begin(p, other);
    dryi_paged_block_drop(p, block);
    return other;
}

/* Merge a block with all adjacent blocks that may be merged. Returns the listed result. */
DRYI_NOINLINE static uint32_t
coalesce_all(struct dryi_paged *p, uint32_t block)
{
    struct block *b = &p->blocks[block];
    while (may_merge(p, b, b->next)) {
        take_in(p, b, b->next);
        merge_next(p, block);
    }
    while (may_merge(p, b, b->prev)) {
        uint32_t before = b->prev;
        take_in(p, b, before);
        dryi_paged_block_assign(p, before, b->list);
        merge_next(p, before);
        block = before;
        b = &p->blocks[block];
    }
    dryi_paged_list_insert(p, block);
    return block;
}

/*
 * Coalesce a block with its direct neighbours only: blocks of one list are always fully merged, so
 * there is no further candidate.
 */
uint32_t
dryi_paged_block_coalesce(struct dryi_paged *p, uint32_t block)
{
    DRYI_ASSERT_SLOW(p->blocks[block].state == BLOCK_FREE ||
                     p->blocks[block].state == BLOCK_HOLE);
    const struct block *b = &p->blocks[block];
    uint32_t next = may_merge(p, b, b->next) ? b->next : NONE;
    uint32_t prev = may_merge(p, b, b->prev) ? b->prev : NONE;
    if (next == NONE && prev == NONE) {
        dryi_paged_list_insert(p, block);
        return block;
    }
    if ((next != NONE && p->blocks[next].list != b->list) ||
        (prev != NONE && p->blocks[prev].list != b->list))
        return coalesce_all(p, block);
    if (prev == NONE)
        return grow_neighbour(p, block, next);
    if (next != NONE) {
        dryi_paged_list_remove(p, next);
        merge_next(p, block);
    }
    return grow_neighbour(p, block, prev);
}

void
dryi_paged_block_move(struct dryi_paged *p, uint32_t block, uint32_t list, uint64_t epoch)
{
    DRYI_ASSERT_SLOW(p->blocks[block].state == BLOCK_FREE);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    dryi_paged_list_remove(p, block);
    dryi_paged_block_assign(p, block, list);
    p->blocks[block].epoch = epoch;
}

/* --- carving ------------------------------------------------------------------------ */

/* Cut [addr, addr + bytes) out of a free block that is on no list. Makes up to two records. */
DRYI_NOINLINE static uint32_t
carve(struct dryi_paged *p, uint32_t block, uint64_t addr, uint64_t bytes)
{
    DRYI_ASSERT_SLOW(addr >= p->blocks[block].addr &&
                     addr + bytes <= block_end(&p->blocks[block]));
    uint64_t end = addr + bytes;
    if (addr > p->blocks[block].addr) {
        uint32_t rest = dryi_paged_block_split(p, block, addr - p->blocks[block].addr);
        p->blocks[rest].state = BLOCK_USED;
        dryi_paged_block_coalesce(p, block);
        block = rest;
    }
    p->blocks[block].state = BLOCK_USED;
    if (end < block_end(&p->blocks[block])) {
        uint32_t rest = dryi_paged_block_split(p, block, bytes);
        p->blocks[rest].state = BLOCK_FREE;
        dryi_paged_block_coalesce(p, rest);
    }
    return block;
}

uint32_t
dryi_paged_carve_along(struct dryi_paged *p, uint32_t at, uint64_t addr, uint64_t end)
{
    DRYI_ASSERT_SLOW(addr < end && p->blocks[at].state == BLOCK_FREE);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    dryi_paged_list_remove(p, at);
    uint64_t here = block_end(&p->blocks[at]) < end ? block_end(&p->blocks[at]) : end;
    at = carve(p, at, addr, here - addr);
    while (block_end(&p->blocks[at]) < end) {
        dryi_paged_divider_drop(p, p->blocks[at].next);
        uint32_t next = p->blocks[at].next;
        DRYI_ASSERT(p->blocks[next].state == BLOCK_FREE);
        dryi_paged_list_remove(p, next);
        here = block_end(&p->blocks[next]) < end ? block_end(&p->blocks[next]) : end;
        carve(p, next, p->blocks[next].addr, here - p->blocks[next].addr);
        merge_next(p, at);
    }
    return at;
}

/* --- blocks for a request ---------------------------------------------------------- */

uint32_t
dryi_paged_take_found(struct dryi_paged *p, const struct request *r, uint32_t found)
{
    if (found == NONE)
        return NONE;
    DRYI_ASSERT(p->blocks[found].state == BLOCK_FREE);
    uint64_t bytes = dryi_paged_is_no_split(p, r) ? p->blocks[found].size : r->bytes;
    uint32_t block = found;
    if (bytes == p->blocks[found].size)
        dryi_paged_list_remove(p, found);
    else
        block = dryi_paged_block_cut(p, found, bytes);
    p->blocks[block].state = BLOCK_USED;
    dryi_paged_block_assign(p, block, r->list);
    return block;
}

uint32_t
dryi_paged_take_own(struct dryi_paged *p, const struct request *r)
{
    DRYI_ASSERT_SLOW(r->bytes > 0 && r->bytes % GRAIN == 0);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_PLACE));
    uint32_t found = dryi_paged_list_find(p, p->lists[r->list], r->bytes);
    if (found == NONE)
        found = dryi_paged_list_find(p, p->lists[p->arenas[r->arena].shared], r->bytes);
    return dryi_paged_take_found(p, r, found);
}
