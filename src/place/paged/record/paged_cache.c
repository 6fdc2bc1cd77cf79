/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Stream caches: free blocks kept whole for the next request of their size. Each free list of a
 * stream has one stack per size. A hit touches one record and no neighbours.
 *
 * While caches are shared, a thread can use a cache of the default pool while holding only that
 * cache (place_cache.h). Take and put then write the blocks on the stacks and in use, but not their
 * size or neighbours. They also write the stream's last freed epoch and the cache's local
 * statistics. Cut and merge write the blocks and bins of the cache's own lists, and take records
 * from these lists. Only with the place held do they change a link to a block of another list, or
 * the shared list's memory.
 */

#include "place/paged/record/paged_cache.h"

#include "base/assert.h"
#include "base/memory.h"
#include "place/paged/record/paged_bins.h"
#include "place/paged/record/paged_block.h"
#include "place/paged/record/paged_park.h"

/* --- caches ------------------------------------------------------------------------------- */

void
dryi_paged_cache_note(struct dryi_paged *p, uint32_t list)
{
    DRYI_ASSERT_SLOW(p->lists[list]->kind == FREE_STREAM);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    struct free_list *s = p->lists[list];
    if (s->is_cached)
        return;
    if (p->first_cached != NONE)
        p->lists[p->first_cached]->prev_cached = list;
    s->is_cached = true;
    s->prev_cached = NONE;
    s->next_cached = p->first_cached;
    p->first_cached = list;
}

void
dryi_paged_cache_unnote(struct dryi_paged *p, struct free_list *s)
{
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    if (!s->is_cached)
        return;
    if (s->prev_cached == NONE)
        p->first_cached = s->next_cached;
    else
        p->lists[s->prev_cached]->next_cached = s->next_cached;
    if (s->next_cached != NONE)
        p->lists[s->next_cached]->prev_cached = s->prev_cached;
    s->is_cached = false;
}

void
dryi_paged_caches_finish(struct dryi_paged *p)
{
    while (p->caches) {
        struct dryi_cache *f = p->caches;
        p->caches = f->next;
        dryi_memory_free(&p->memory, f, 1, sizeof *f);
    }
}

void
dryi_paged_cache_forget(struct dryi_paged *p, struct block *b)
{
    DRYI_ASSERT_SLOW(b->state != BLOCK_DEAD && b->state != BLOCK_HOLE);
    bool was_registered = b->address == ADDRESS_BY_TABLE;
    b->address = ADDRESS_UNKNOWN;
    if (!was_registered)
        return;
    uint32_t stream = p->lists[b->list]->stream;
    p->cache_watcher.lost(p->cache_watcher.self, p->streams[stream].value, b->addr);
}

bool
dryi_paged_can_coalesce_beside(const struct dryi_paged *p, const struct free_list *s,
                               uint32_t block)
{
    DRYI_ASSERT_SLOW(p->is_shared && s->has_records);
    return s->dead.count <= RECORDS_MAX - RECORDS_ONCE &&
           dryi_paged_is_enclosed(p, block);
}

/* --- flushing ----------------------------------------------------------------------------- */

/* Coalesce the newest block of a stack. Returns the bytes of the resulting free block. */
static uint64_t
flush_block(struct dryi_paged *p, struct free_list *s, size_t slot)
{
    DRYI_ASSERT_SLOW(p->blocks[s->stacks[slot]].state == BLOCK_CACHED);
    uint32_t block = s->stacks[slot];
    s->stacks[slot] = p->blocks[block].bin_next;
    s->stacked--;
    dryi_paged_cache_forget(p, &p->blocks[block]);
    p->blocks[block].state = BLOCK_FREE;
    return p->blocks[dryi_paged_block_coalesce(p, block)].size;
}

/*
 * Limits of a flush: stop once a free block of `goal_bytes` bytes results, or after `most` blocks. With
 * only the cache held (is_beside), a flush also stops before a merge with a block of another cache.
 */
struct flush {
    uint64_t goal_bytes;
    uint32_t most;
    bool is_beside;
    bool has_reached_goal;
};

/* Flush the stacks of one bitmap word from `bit` on. True: a limit was reached. */
static bool
flush_word(struct dryi_paged *p, struct free_list *s, size_t word, unsigned bit,
           struct flush *flush)
{
    uint32_t bits = s->stack_bits[word] >> bit << bit;
    for (; bits != 0; bits &= bits - 1) {
        size_t slot = word * 32 + (size_t)__builtin_ctz(bits);
        while (s->stacks[slot] != NONE) {
            if (flush->is_beside &&
                !dryi_paged_can_coalesce_beside(p, s, s->stacks[slot]))
                return true;
            flush->has_reached_goal = flush_block(p, s, slot) >= flush->goal_bytes;
            if (flush->has_reached_goal || --flush->most == 0)
                return true;
        }
        s->stack_bits[word] &= ~(bits & -bits);
    }
    return false;
}

void
dryi_paged_flush_some(struct dryi_paged *p, struct free_list *s, uint32_t most)
{
    struct flush flush = {.goal_bytes = UINT64_MAX, .most = most};
    bool is_over = most == 0;
    for (size_t word = 0; s->stacked > 0 && !is_over; word++)
        is_over = flush_word(p, s, word, 0, &flush);
}

void
dryi_paged_flush_list(struct dryi_paged *p, struct free_list *s)
{
    dryi_paged_flush_some(p, s, UINT32_MAX);
}

/*
 * Flush a list until a limit. Small blocks of the wanted size and above are flushed first; large
 * ones in hash order.
 */
static void
flush_from(struct dryi_paged *p, struct free_list *s, struct flush *flush)
{
    size_t slot = stack_slot(s, flush->goal_bytes);
    if (s->stacked == 0 || slot >= s->stack_count)
        return;
    size_t words = (s->stack_count + 31) / 32, first = slot / 32;
    bool is_over = flush_word(p, s, first, slot % 32, flush);
    for (size_t word = first + 1; word < words && s->stacked > 0 && !is_over; word++)
        is_over = flush_word(p, s, word, 0, flush);
    for (size_t word = first + 1; word-- > 0 && s->stacked > 0 && !is_over;)
        is_over = flush_word(p, s, word, 0, flush);
}

bool
dryi_paged_flush_for(struct dryi_paged *p, uint32_t list, uint64_t bytes, uint32_t most)
{
    struct flush flush = {.goal_bytes = bytes, .most = most};
    flush_from(p, p->lists[list], &flush);
    return flush.has_reached_goal;
}

bool
dryi_paged_flush_beside(struct dryi_paged *p, uint32_t list, uint64_t bytes)
{
    DRYI_ASSERT_SLOW(p->is_shared);
    struct flush flush = {.goal_bytes = bytes, .most = FLUSH_MAX, .is_beside = true};
    flush_from(p, p->lists[list], &flush);
    return flush.has_reached_goal;
}

bool
dryi_paged_flush(struct dryi_paged *p)
{
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    bool any = dryi_paged_unpark_all(p);
    uint32_t at = p->first_cached;
    p->first_cached = NONE;
    while (at != NONE) {
        struct free_list *s = p->lists[at];
        uint32_t next = s->next_cached;
        any |= s->stacked > 0;
        dryi_paged_flush_list(p, s);
        s->is_cached = false;
        if (s->stays_cached)
            dryi_paged_cache_note(p, at);
        at = next;
    }
    return any;
}
