/* SPDX-License-Identifier: Apache-2.0 */

/* Creation and removal of free lists: see paged_list.h. */

#include "place/paged/record/paged_list.h"

#include "base/assert.h"
#include "base/memory.h"
#include "place/paged/record/paged_bins.h"
#include "place/paged/record/paged_block.h"
#include "place/paged/record/paged_cache.h"

/* Make an empty list of an arena; NULL: out of memory. Requires a reserved block record. */
static struct free_list *
make_list(struct dryi_paged *p, uint32_t arena)
{
    struct free_list *s = dryi_memory_zalloc(&p->memory, 1, sizeof *s);
    if (!s)
        return NULL;
    s->arena = arena;
    s->is_small = arena_is_small(arena);
    s->prev = s->next = s->prev_of_stream = s->next_of_stream = NONE;
    s->dead.first = NONE;
    s->end = dryi_paged_record_take(p);
    for (uint32_t bin = 0; bin < BIN_COUNT; bin++)
        s->heads[bin] = s->end;
    return s;
}

/* Reserve memory for another list, and for all indices on gone_lists: a drop cannot fail. */
static bool
reserve_list(struct dryi_paged *p)
{
    size_t count = (size_t)p->list_count + 1;
    return dryi_memory_grow(&p->memory, &p->lists, &p->list_capacity, count,
                            sizeof(struct free_list *)) &&
           dryi_memory_grow(&p->memory, &p->gone_lists, &p->gone_list_capacity, count,
                            sizeof *p->gone_lists) &&
           dryi_paged_block_reserve(p, 1);
}

uint32_t
dryi_paged_list_make(struct dryi_paged *p, uint32_t arena, enum free_list_kind kind,
                     uint32_t stream)
{
    DRYI_ASSERT_SLOW((kind == FREE_STREAM) == (stream != NONE));
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    struct free_list *s = reserve_list(p) ? make_list(p, arena) : NULL;
    if (!s)
        return NONE;
    s->kind = kind;
    s->stream = stream;
    if (kind == FREE_STREAM && arena_is_small(arena) &&
        !(p->pools[arena / 2].flags & DRYI_POOL_NO_SPLIT))
        dryi_paged_cache_make(p, s);
    uint32_t list = p->list_count;
    if (p->gone_list_count > 0)
        list = p->gone_lists[--p->gone_list_count];
    else
        p->list_count++;
    p->lists[list] = s;
    return list;
}

static uint64_t
list_key(uint32_t arena, uint32_t stream)
{
    return (uint64_t)arena << 32 | stream;
}

static void
link_list(struct dryi_paged *p, uint32_t list)
{
    struct free_list *s = p->lists[list];
    uint32_t *of_arena = &p->arenas[s->arena].lists;
    uint32_t *of_stream = &p->streams[s->stream].lists;
    s->next = *of_arena;
    s->next_of_stream = *of_stream;
    if (s->next != NONE)
        p->lists[s->next]->prev = list;
    if (s->next_of_stream != NONE)
        p->lists[s->next_of_stream]->prev_of_stream = list;
    *of_arena = *of_stream = list;
}

static void
unlink_list(struct dryi_paged *p, const struct free_list *s)
{
    if (s->prev == NONE)
        p->arenas[s->arena].lists = s->next;
    else
        p->lists[s->prev]->next = s->next;
    if (s->next != NONE)
        p->lists[s->next]->prev = s->prev;
    if (s->prev_of_stream == NONE)
        p->streams[s->stream].lists = s->next_of_stream;
    else
        p->lists[s->prev_of_stream]->next_of_stream = s->next_of_stream;
    if (s->next_of_stream != NONE)
        p->lists[s->next_of_stream]->prev_of_stream = s->prev_of_stream;
}

/* Drop the list of a stream. Requires that the list has no blocks, listed or in use. */
static void
drop_list(struct dryi_paged *p, uint32_t list)
{
    DRYI_ASSERT_SLOW(p->lists[list]->block_count == 0 && p->lists[list]->stacked == 0);
    struct free_list *s = p->lists[list];
    struct arena *a = &p->arenas[s->arena];
    if (a->last_list == list)
        a->last_list = a->last_stream = NONE;
    unlink_list(p, s);
    dryi_map_take(&p->list_ids, list_key(s->arena, s->stream));
    dryi_paged_cache_unnote(p, s);
    dryi_paged_cache_finish(p, s);
    dryi_paged_record_drop(p, s->end);
    dryi_memory_free(&p->memory, s, 1, sizeof *s);
    p->lists[list] = NULL;
    p->gone_lists[p->gone_list_count++] = list;
}

/*
 * Drop up to VISITS_PER_RECORD lists of private pools that have no blocks. Each stream that uses a
 * private pool gets a list there, and streams and pools come and go. Dropping as fast as creating
 * bounds the number of lists. The lists of the stream `asking` stay, because its request may use
 * them.
 */
static void
drop_some(struct dryi_paged *p, uint32_t asking)
{
    for (int i = 0; i < VISITS_PER_RECORD; i++) {
        p->list_turn = (p->list_turn + 1) % p->list_count;
        const struct free_list *s = p->lists[p->list_turn];
        if (s && s->kind == FREE_STREAM && s->arena / 2 > 0 && s->stream != asking &&
            s->block_count == 0)
            drop_list(p, p->list_turn);
    }
}

/* Make the list of a stream in an arena; NONE: out of memory. */
static uint32_t
make_list_of_stream(struct dryi_paged *p, uint32_t arena, uint32_t stream)
{
    uint64_t key = list_key(arena, stream);
    if (arena / 2 > 0)
        drop_some(p, stream);
    if (!dryi_map_put(&p->list_ids, key, NONE))
        return NONE;
    uint32_t list = dryi_paged_list_make(p, arena, FREE_STREAM, stream);
    if (list == NONE) {
        dryi_map_take(&p->list_ids, key);
        return NONE;
    }
    dryi_map_put(&p->list_ids, key, list); /* cannot fail: the key exists */
    link_list(p, list);
    return list;
}

/* Return the list of a stream in an arena; NONE: not made. */
static uint32_t
find_list(const struct dryi_paged *p, uint32_t arena, uint32_t stream)
{
    const uint32_t *known = dryi_map_find(&p->list_ids, list_key(arena, stream));
    return known ? *known : NONE;
}

uint32_t
dryi_paged_list_ask(struct dryi_paged *p, uint32_t arena, uint32_t stream)
{
    DRYI_ASSERT_SLOW(arena < p->arena_count && stream < p->stream_count);
    DRYI_ASSERT_SLOW(dryi_paged_has_access(p, ACCESS_ALL));
    struct arena *a = &p->arenas[arena];
    uint32_t list = find_list(p, arena, stream);
    if (list == NONE)
        list = make_list_of_stream(p, arena, stream);
    if (list == NONE)
        return NONE;
    a->last_stream = stream;
    return a->last_list = list;
}

void
dryi_paged_lists_finish(struct dryi_paged *p)
{
    for (uint32_t i = 0; i < p->list_count; i++) {
        if (!p->lists[i])
            continue;
        dryi_paged_cache_finish(p, p->lists[i]);
        dryi_memory_free(&p->memory, p->lists[i], 1, sizeof(struct free_list));
    }
    dryi_memory_free(&p->memory, p->lists, p->list_capacity, sizeof(struct free_list *));
    dryi_memory_free(&p->memory, p->gone_lists, p->gone_list_capacity,
                     sizeof *p->gone_lists);
}
