/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The place as a snapshot lists it: each contiguous mapped range counts as a segment. Adjacent free
 * blocks count as one block, whatever their lists. Streams share segments, so all segments are
 * attributed to the default stream, here and in observer events.
 */

#include "place/paged/paged_view.h"

#include "base/assert.h"
#include "base/memory.h"
#include "base/sort.h"

void
dryi_paged_get_block(const void *self, dryi_block block, struct dryi_block_info *info)
{
    const struct dryi_paged *p = self;
    DRYI_ASSERT(block < p->block_count && p->blocks[block].state != BLOCK_DEAD);
    const struct block *b = &p->blocks[block];
    const struct segment *segment = &p->segments[b->segment];
    const struct free_list *s = p->lists[b->list];
    bool is_active = b->state == BLOCK_USED || b->state == BLOCK_PENDING;
    *info = (struct dryi_block_info){
        .addr = b->addr,
        .size = b->size,
        .requested = is_active ? b->requested : 0,
        .stream = s->stream == NONE ? 0 : p->streams[s->stream].value,
        .pool = p->pools[segment->arena / 2].id,
        .segment = segment->ordinal,
        .offset = b->addr - segment->addr,
        .allocated = b->state == BLOCK_USED,
        .pending = b->state == BLOCK_PENDING,
        .mapped = b->state != BLOCK_HOLE,
        .is_large = !arena_is_small(segment->arena),
    };
}

/* A walk: the caller's visitor, and an array for the blocks of one mapped range. */
struct walk {
    const struct dryi_paged *p;
    enum dry_status (*visit)(void *visitor, const struct dryi_segment_info *segment,
                             const struct dryi_block_info *blocks, size_t count);
    void *visitor;
    struct dryi_block_info *blocks;
    size_t capacity;
};

static enum dry_status
visit_run(struct walk *walk, const struct segment *segment, size_t count)
{
    const struct dryi_block_info *first = &walk->blocks[0], *last = first + (count - 1);
    struct dryi_segment_info info = {
        .addr = first->addr,
        .size = last->addr + last->size - first->addr,
        .pool = first->pool,
        .is_large = first->is_large,
        .is_expandable = segment->pages != NULL,
        .segment = segment->ordinal,
    };
    return walk->visit(walk->visitor, &info, walk->blocks, count);
}

static bool
is_free(const struct dryi_block_info *info)
{
    return info->mapped && !info->allocated && !info->pending;
}

static enum dry_status
walk_segment(struct walk *walk, const struct segment *segment)
{
    const struct dryi_paged *p = walk->p;
    size_t count = 0;
    enum dry_status status = DRY_OK;
    for (uint32_t at = segment->first_block; at != NONE && status == DRY_OK;
         at = p->blocks[at].next) {
        struct dryi_block_info info;
        if (p->blocks[at].state == BLOCK_DIVIDER)
            continue;
        dryi_paged_get_block(p, at, &info);
        if (info.mapped && count > 0 && is_free(&info) &&
            is_free(&walk->blocks[count - 1])) {
            walk->blocks[count - 1].size += info.size;
        } else if (info.mapped) {
            if (!dryi_memory_grow(&p->memory, &walk->blocks, &walk->capacity, count + 1,
                                  sizeof *walk->blocks))
                return DRY_ERR_MEMORY;
            walk->blocks[count++] = info;
        } else if (count > 0) {
            status = visit_run(walk, segment, count);
            count = 0;
        }
    }
    return status == DRY_OK && count > 0 ? visit_run(walk, segment, count) : status;
}

/* Visit all mapped memory by address. Only segments need sorting; their blocks are in order. */
enum dry_status
dryi_paged_walk(const void *self,
                enum dry_status (*visit)(void *visitor,
                                         const struct dryi_segment_info *segment,
                                         const struct dryi_block_info *blocks,
                                         size_t count),
                void *visitor)
{
    const struct dryi_paged *p = self;
    struct walk walk = {.p = p, .visit = visit, .visitor = visitor};
    size_t count = 0, slot_count = 2 * ((size_t)p->segment_slots + 1);
    struct dryi_sort_item *items =
        dryi_memory_zalloc(&p->memory, slot_count, sizeof *items);
    if (!items)
        return DRY_ERR_MEMORY;
    for (uint32_t i = 0; i < p->segment_slots; i++) {
        if (p->segments[i].live)
            items[count++] =
                (struct dryi_sort_item){.key = p->segments[i].addr, .value = i};
    }
    dryi_sort_items(items, items + count, count);
    enum dry_status status = DRY_OK;
    for (size_t i = 0; i < count && status == DRY_OK; i++)
        status = walk_segment(&walk, &p->segments[items[i].value]);
    dryi_memory_free(&p->memory, walk.blocks, walk.capacity, sizeof *walk.blocks);
    dryi_memory_free(&p->memory, items, slot_count, sizeof *items);
    return status;
}
