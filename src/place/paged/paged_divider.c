/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whose the links between blocks are, while stream caches are shared.
 *
 * A link between two blocks of one free list is changed by whoever has that free list's stream cache; one that
 * leads to a hole, or nowhere, by whoever has the stream cache of its block. One between two streams'
 * blocks would be both's, and is changed only with the place: so the first that has to puts a
 * divider there, and from then on each of the two changes its own side of that, and needs nobody.
 * A divider is a record without bytes. It goes when one of its neighbours comes to another free list,
 * or both to one request, or are merged by who is alone at the place, for the uses of one are
 * over; and when nobody shares any more.
 */

#include "base/assert.h"
#include "place/paged/paged_inside.h"

/* --- links -------------------------------------------------------------------------------- */

/*
 * Nobody else changes this link of a block of the free list. What it led to a moment ago may be a
 * divider elsewhere by now, so it is read once more then; it cannot have become ours or a hole, for
 * that needs our stream cache.
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
    const struct block *b = &p->blocks[block];
    if (!is_link_ours(p, b->list, &b->prev) || !is_link_ours(p, b->list, &b->next))
        return false;
    /* Between two free ones it takes in the next one, too. */
    return !is_free(p, b->prev) || !is_free(p, b->next) ||
           is_link_ours(p, b->list, &p->blocks[b->next].next);
}

/* --- dividers ------------------------------------------------------------------------------- */

static bool
is_between_streams(const struct dryi_paged *p, uint32_t block, uint32_t other)
{
    if (other == NONE)
        return false;
    uint32_t its = block_list_beside(&p->blocks[other]);
    return its != p->blocks[block].list && its != DIVIDERS &&
           p->lists[its]->kind == FREE_STREAM;
}

/* Behind `prev`, where the second of the two begins. */
static void
put_divider(struct dryi_paged *p, uint32_t list, uint32_t prev, uint64_t addr)
{
    uint32_t segment = p->blocks[prev].segment;
    uint32_t divider = dryi_paged_block_make(p, list, segment, prev, addr, 0);
    p->blocks[divider].state = BLOCK_DIVIDER;
    p->blocks[divider].bin_prev = NONE;
    p->blocks[divider].bin_next = p->first_divider;
    if (p->first_divider != NONE)
        p->blocks[p->first_divider].bin_prev = divider;
    p->first_divider = divider;
    p->divider_count++;
    p->lists[list]->block_count--;
    block_set_list(&p->blocks[divider], DIVIDERS);
}

void
dryi_paged_divide(struct dryi_paged *p, uint32_t block)
{
    const struct block *b = &p->blocks[block];
    if (is_between_streams(p, block, b->prev))
        put_divider(p, b->list, b->prev, b->addr);
    if (is_between_streams(p, block, b->next))
        put_divider(p, b->list, block, block_end(b));
}

void
dryi_paged_divider_drop(struct dryi_paged *p, uint32_t divider)
{
    if (divider == NONE || block_list_beside(&p->blocks[divider]) != DIVIDERS)
        return;
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

void
dryi_paged_dividers_drop(struct dryi_paged *p)
{
    while (p->first_divider != NONE)
        dryi_paged_divider_drop(p, p->first_divider);
}

/* What is on both sides of it is free, and one of the streams may have the other's. */
static void
merge_across(struct dryi_paged *p, uint32_t divider)
{
    uint32_t prev = p->blocks[divider].prev, next = p->blocks[divider].next;
    if (p->blocks[prev].state != BLOCK_FREE || p->blocks[next].state != BLOCK_FREE)
        return;
    bool is_next_complete = dryi_paged_is_complete(p, &p->blocks[next]);
    if (!p->conf.reuse_passed ||
        (!is_next_complete && !dryi_paged_is_complete(p, &p->blocks[prev])))
        return;
    uint32_t block = is_next_complete ? prev : next;
    dryi_paged_divider_drop(p, divider);
    dryi_paged_list_remove(p, block);
    dryi_paged_block_coalesce(p, block);
}

void
dryi_paged_dividers_merge(struct dryi_paged *p)
{
    if (p->requests - p->dividers_request < p->divider_count)
        return;
    p->dividers_request = p->requests;
    /* The next one may go with what is merged: then the rest is for the next time. */
    for (uint32_t at = p->first_divider, next;
         at != NONE && p->blocks[at].state == BLOCK_DIVIDER; at = next) {
        next = p->blocks[at].bin_next;
        merge_across(p, at);
    }
}

void
dryi_paged_block_relist(struct dryi_paged *p, uint32_t block, uint32_t list)
{
    p->lists[p->blocks[block].list]->block_count--;
    p->lists[list]->block_count++;
    block_set_list(&p->blocks[block], list);
    if (p->divider_count == 0)
        return;
    dryi_paged_divider_drop(p, p->blocks[block].prev);
    dryi_paged_divider_drop(p, p->blocks[block].next);
}
