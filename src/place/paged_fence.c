/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Whose the links between blocks are, while fronts are shared.
 *
 * A link between two blocks of one shelf is changed by whoever has that shelf's front; one that
 * leads to a hole, or nowhere, by whoever has the front of its block. One between two streams'
 * blocks would be both's, and is changed only with the place: so the first that has to puts a
 * fence there, and from then on each of the two changes its own side of that, and needs nobody.
 * A fence is a record without bytes. It goes when one of its neighbours comes to another shelf,
 * or both to one request, and when nobody shares any more.
 */

#include "base/assert.h"
#include "place/paged_state.h"

/* --- links -------------------------------------------------------------------------------- */

/*
 * Nobody else changes this link of a block of the shelf. What it led to a moment ago may be a
 * fence elsewhere by now, so it is read once more then; it cannot have become ours or a hole, for
 * that needs our front.
 */
static bool
is_link_ours(const struct dryi_paged *p, uint32_t shelf, const uint32_t *link)
{
    uint32_t other = link_beside(link);
    if (other == NONE)
        return true;
    uint32_t its = block_shelf_beside(&p->blocks[other]);
    if (its == FENCED)
        return link_beside(link) == other;
    return its == shelf || its == p->arenas[p->shelves[shelf]->arena].holes;
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
    if (!is_link_ours(p, b->shelf, &b->prev) || !is_link_ours(p, b->shelf, &b->next))
        return false;
    /* Between two free ones it takes in the next one, too. */
    return !is_free(p, b->prev) || !is_free(p, b->next) ||
           is_link_ours(p, b->shelf, &p->blocks[b->next].next);
}

/* --- fences ------------------------------------------------------------------------------- */

static bool
is_between_streams(const struct dryi_paged *p, uint32_t block, uint32_t other)
{
    if (other == NONE)
        return false;
    uint32_t its = block_shelf_beside(&p->blocks[other]);
    return its != p->blocks[block].shelf && its != FENCED &&
           p->shelves[its]->kind == SHELF_STREAM;
}

/* Behind `prev`, where the second of the two begins. */
static void
put_fence(struct dryi_paged *p, uint32_t shelf, uint32_t prev, uint64_t addr)
{
    uint32_t span = p->blocks[prev].span;
    uint32_t fence = dryi_paged_block_make(p, shelf, span, prev, addr, 0);
    p->blocks[fence].state = BLOCK_FENCE;
    block_set_shelf(&p->blocks[fence], FENCED);
    p->fence_count++;
}

void
dryi_paged_fence_off(struct dryi_paged *p, uint32_t block)
{
    const struct block *b = &p->blocks[block];
    if (is_between_streams(p, block, b->prev))
        put_fence(p, b->shelf, b->prev, b->addr);
    if (is_between_streams(p, block, b->next))
        put_fence(p, b->shelf, block, block_end(b));
}

void
dryi_paged_fence_drop(struct dryi_paged *p, uint32_t fence)
{
    if (fence == NONE || block_shelf_beside(&p->blocks[fence]) != FENCED)
        return;
    struct block *f = &p->blocks[fence];
    set_link(&p->blocks[f->prev].next, f->next);
    set_link(&p->blocks[f->next].prev, f->prev);
    block_set_shelf(f, p->blocks[f->prev].shelf);
    dryi_paged_block_drop(p, fence);
    p->fence_count--;
}

void
dryi_paged_fences_drop(struct dryi_paged *p)
{
    for (uint32_t i = 0; i < p->span_slots && p->fence_count > 0; i++) {
        uint32_t at = p->spans[i].live ? p->spans[i].first_block : NONE;
        while (at != NONE) {
            uint32_t next = p->blocks[at].next;
            dryi_paged_fence_drop(p, at);
            at = next;
        }
    }
}

void
dryi_paged_block_reshelve(struct dryi_paged *p, uint32_t block, uint32_t shelf)
{
    block_set_shelf(&p->blocks[block], shelf);
    if (p->fence_count == 0)
        return;
    dryi_paged_fence_drop(p, p->blocks[block].prev);
    dryi_paged_fence_drop(p, p->blocks[block].next);
}
