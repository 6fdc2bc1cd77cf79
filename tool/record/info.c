/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea is in info.h. A hash set of addresses tracks the blocks that events leave in
 * use. Segments are sorted into groups. Cost: O(events + blocks + segments log segments).
 */
#include "record/info.h"

#include <stdlib.h>
#include <string.h>

/* --- a set of addresses -------------------------------------------------------------- */

/* A hash set, openly addressed. TOMB marks removed entries until the set grows. */
struct address_set {
    uint64_t *slots; /* address + 2; 0 is empty, TOMB was removed */
    size_t slot_count, used_count, live_count;
};

#define TOMB 1

static size_t
find_address(const struct address_set *set, uint64_t address)
{
    uint64_t hash = (address + 2) * UINT64_C(0x9e3779b97f4a7c15);
    size_t slot = (size_t)(hash >> 20) & (set->slot_count - 1);
    while (set->slots[slot] && set->slots[slot] != address + 2)
        slot = (slot + 1) & (set->slot_count - 1);
    return slot;
}

static bool
grow_set(struct address_set *set)
{
    if (set->slots && set->used_count < set->slot_count / 2)
        return true;
    struct address_set grown = {.slot_count = 1024, .live_count = set->live_count};
    while (grown.slot_count < 4 * set->live_count)
        grown.slot_count *= 2;
    grown.slots = calloc(grown.slot_count, sizeof *grown.slots);
    if (!grown.slots)
        return false;
    for (size_t i = 0; i < set->slot_count; i++) {
        if (set->slots[i] <= TOMB)
            continue;
        grown.slots[find_address(&grown, set->slots[i] - 2)] = set->slots[i];
        grown.used_count++;
    }
    free(set->slots);
    *set = grown;
    return true;
}

/*
 * Return false for the two highest addresses, which would look like the marks 0 and TOMB.
 * No block is there.
 */
static bool
is_storable(uint64_t address)
{
    return address < UINT64_MAX - 1;
}

static bool
add_address(struct address_set *set, uint64_t address)
{
    if (!is_storable(address))
        return true;
    if (!grow_set(set))
        return false;
    size_t slot = find_address(set, address);
    set->used_count += set->slots[slot] == 0;
    set->live_count += set->slots[slot] == 0;
    set->slots[slot] = address + 2;
    return true;
}

static bool
remove_address(struct address_set *set, uint64_t address)
{
    if (!set->slots || !is_storable(address))
        return false;
    size_t slot = find_address(set, address);
    if (!set->slots[slot])
        return false;
    set->slots[slot] = TOMB;
    set->live_count--;
    return true;
}

/* --- events -------------------------------------------------------------------------- */

static uint64_t
add_saturating(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static bool
can_have_stack(enum dry_action action)
{
    return action <= DRY_ACTION_SEGMENT_UNMAP || action == DRY_ACTION_OOM;
}

/*
 * Return true if a stack has frames. Without recorded stacks, a file may hold an empty
 * list, which tells no more than a missing one.
 */
static bool
has_frames(const struct dry_trace *trace, uint32_t stack)
{
    size_t count;
    dry_trace_stack(trace, stack, &count);
    return count > 0;
}

static void
count_stacks(struct info *info, const struct dry_trace *trace)
{
    uint32_t count = dry_trace_get_view(trace)->stack_count;
    for (uint32_t i = 0; i < count; i++)
        info->stack_count += has_frames(trace, i);
}

static void
count_time(struct info_device *d, int64_t time_us, int64_t *last_us)
{
    if (d->timed_count++ == 0) {
        d->first_us = d->last_us = time_us;
    } else {
        d->time_reversals += time_us < *last_us;
        if (time_us < d->first_us)
            d->first_us = time_us;
        if (time_us > d->last_us)
            d->last_us = time_us;
    }
    *last_us = time_us;
}

/*
 * Track live blocks by address. A free of an unknown address is of a block from before
 * the window. A recording may lack the requests to free, so their completion ends a
 * block, too.
 */
static bool
follow_block(struct info_device *d, struct address_set *live, enum dry_action action,
             uint64_t address)
{
    if (action == DRY_ACTION_ALLOC || action == DRY_ACTION_LIVE)
        return add_address(live, address);
    bool is_free = action == DRY_ACTION_FREE_REQUESTED;
    if ((is_free || action == DRY_ACTION_FREE_COMPLETED) &&
        !remove_address(live, address))
        d->warm_frees += is_free;
    return true;
}

static bool
collect_events(struct info *info, struct info_device *d, const struct dry_trace *trace,
               const struct dry_trace_device *part, struct address_set *live)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    int64_t last_us = 0;
    for (size_t n = 0; n < part->event_count; n++) {
        size_t i = part->first_event + n;
        enum dry_action action = (enum dry_action)v->action[i];
        const struct dry_note *note = dry_trace_note(trace, v->note[i]);
        d->action_count[action]++;
        if (!(note->flags & DRY_NOTE_NO_TIME))
            count_time(d, v->time_us[i], &last_us);
        if (can_have_stack(action)) {
            info->stackable_events++;
            info->stack_events += has_frames(trace, v->stack[i]);
        }
        if (!follow_block(d, live, action, v->addr[i]))
            return false;
    }
    info->request_events +=
        d->action_count[DRY_ACTION_ALLOC] + d->action_count[DRY_ACTION_FREE_REQUESTED] +
        d->action_count[DRY_ACTION_FREE_COMPLETED] + d->action_count[DRY_ACTION_LIVE];
    return true;
}

/* Compare the blocks that events leave in use with those that segments list as used. */
static void
compare_ends(struct info_device *d, const struct dry_trace_view *v,
             const struct dry_trace_device *part, struct address_set *live)
{
    if (part->event_count == 0 || part->segment_count == 0)
        return;
    for (size_t n = 0; n < part->segment_count; n++) {
        const struct dry_trace_segment *s = &v->segments[part->first_segment + n];
        for (size_t k = 0; k < s->block_count; k++) {
            const struct dry_trace_block *b = &v->blocks[s->first_block + k];
            d->old_blocks +=
                b->state == DRY_BLOCK_ACTIVE && !remove_address(live, b->address);
        }
    }
    d->lost_blocks = live->live_count;
}

/* --- segments ------------------------------------------------------------------------ */

/* The sort key of a segment's group. */
struct segment_key {
    int32_t device;
    uint32_t lane;
    uint32_t kind; /* bit 1: is_large, bit 0: is_expandable */
    size_t segment;
};

static int
compare_segments(const void *a, const void *b)
{
    const struct segment_key *x = a, *y = b;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    return (x->kind > y->kind) - (x->kind < y->kind);
}

static void
add_to_group(struct info_group *g, const struct dry_trace_segment *s)
{
    g->device = s->device;
    g->lane = s->lane;
    g->is_large = s->is_large;
    g->is_expandable = s->is_expandable;
    g->segment_count++;
    g->reserved_bytes = add_saturating(g->reserved_bytes, s->total_size);
    g->allocated_bytes = add_saturating(g->allocated_bytes, s->allocated_size);
    g->active_bytes = add_saturating(g->active_bytes, s->active_size);
    g->requested_bytes = add_saturating(g->requested_bytes, s->requested_size);
}

static int
compare_groups(const void *a, const void *b)
{
    const struct info_group *x = a, *y = b;
    if (x->reserved_bytes != y->reserved_bytes)
        return x->reserved_bytes < y->reserved_bytes ? 1 : -1;
    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->lane != y->lane)
        return x->lane < y->lane ? -1 : 1;
    return (x->is_large - y->is_large) * 2 + (x->is_expandable - y->is_expandable);
}

/* Group the segments by sorting, because a hostile file may have a group per segment. */
static bool
collect_groups(struct info *info, const struct dry_trace_view *v)
{
    struct segment_key *keys = calloc(v->segment_count + 1, sizeof *keys);
    info->groups = calloc(v->segment_count + 1, sizeof *info->groups);
    if (!keys || !info->groups) {
        free(keys);
        return false;
    }
    for (size_t i = 0; i < v->segment_count; i++) {
        const struct dry_trace_segment *s = &v->segments[i];
        keys[i] = (struct segment_key){.device = s->device,
                                       .lane = s->lane,
                                       .kind = (s->is_large ? 2u : 0u) +
                                               (s->is_expandable ? 1u : 0u),
                                       .segment = i};
    }
    qsort(keys, v->segment_count, sizeof *keys, compare_segments);
    for (size_t i = 0; i < v->segment_count; i++) {
        info->group_count += i == 0 || compare_segments(&keys[i - 1], &keys[i]) != 0;
        add_to_group(&info->groups[info->group_count - 1], &v->segments[keys[i].segment]);
    }
    qsort(info->groups, info->group_count, sizeof *info->groups, compare_groups);
    free(keys);
    return true;
}

static void
collect_blocks(struct info *info, const struct dry_trace *trace,
               const struct dry_trace_segment *s)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    uint64_t by_state[3] = {0};
    for (size_t n = 0; n < s->block_count; n++) {
        const struct dry_trace_block *b = &v->blocks[s->first_block + n];
        info->block_count[b->state]++;
        info->block_bytes[b->state] =
            add_saturating(info->block_bytes[b->state], b->size);
        by_state[b->state] = add_saturating(by_state[b->state], b->size);
        if (b->state == DRY_BLOCK_INACTIVE)
            continue;
        info->live_blocks++;
        info->stack_blocks += has_frames(trace, b->stack);
    }
    uint64_t allocated = by_state[DRY_BLOCK_ACTIVE];
    uint64_t active = add_saturating(allocated, by_state[DRY_BLOCK_PENDING_FREE]);
    uint64_t all = add_saturating(active, by_state[DRY_BLOCK_INACTIVE]);
    info->gap_segments += all != s->total_size;
    info->sum_segments += allocated != s->allocated_size || active != s->active_size;
}

static void
collect_segment(struct info *info, struct info_device *d, const struct dry_trace *trace,
                const struct dry_trace_segment *s)
{
    d->reserved_bytes = add_saturating(d->reserved_bytes, s->total_size);
    info->reserved_bytes = add_saturating(info->reserved_bytes, s->total_size);
    info->allocated_bytes = add_saturating(info->allocated_bytes, s->allocated_size);
    info->active_bytes = add_saturating(info->active_bytes, s->active_size);
    info->requested_bytes = add_saturating(info->requested_bytes, s->requested_size);
    collect_blocks(info, trace, s);
}

/* --- distinct streams and pools ------------------------------------------------------ */

static int
compare_keys(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(uint64_t[2]));
}

/* Count distinct streams, or private pools: (0, 0) is the default pool. */
static bool
count_distinct(const struct dry_trace_view *v, bool of_pools, size_t *count)
{
    uint64_t(*keys)[2] = calloc((size_t)v->lane_count + 1, sizeof *keys);
    if (!keys)
        return false;
    size_t used = 0;
    for (uint32_t i = 0; i < v->lane_count; i++) {
        const struct dry_lane *lane = &v->lanes[i];
        if (of_pools && lane->pool_a == 0 && lane->pool_b == 0)
            continue;
        keys[used][0] = of_pools ? lane->pool_a : lane->stream;
        keys[used][1] = of_pools ? lane->pool_b : 0;
        used++;
    }
    qsort(keys, used, sizeof *keys, compare_keys);
    *count = 0;
    for (size_t i = 0; i < used; i++)
        *count += i == 0 || compare_keys(keys[i], keys[i - 1]) != 0;
    free(keys);
    return true;
}

static void
count_unknowns(struct info *info, const struct dry_trace_view *v)
{
    for (size_t i = 0; i < v->unknown_count; i++) {
        size_t count = (size_t)v->unknowns[i].count;
        if (v->unknowns[i].where == DRY_UNKNOWN_ACTION)
            info->unknown_actions += count;
        else if (v->unknowns[i].where != DRY_UNKNOWN_TOP_KEY)
            info->unknown_keys += count;
    }
}

bool
info_collect(struct info *info, const struct dry_trace *trace)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    *info = (struct info){.device_count = v->device_count};
    info->devices = calloc(v->device_count + 1, sizeof *info->devices);
    if (!info->devices)
        return false;
    for (size_t i = 0; i < v->device_count; i++) {
        const struct dry_trace_device *part = &v->devices[i];
        struct info_device *d = &info->devices[i];
        d->device = part->device;
        d->event_count = part->event_count;
        d->segment_count = part->segment_count;
        struct address_set live = {0};
        bool ok = collect_events(info, d, trace, part, &live);
        if (ok)
            compare_ends(d, v, part, &live);
        free(live.slots);
        if (!ok)
            return false;
        for (size_t n = 0; n < part->segment_count; n++)
            collect_segment(info, d, trace, &v->segments[part->first_segment + n]);
    }
    count_unknowns(info, v);
    count_stacks(info, trace);
    return collect_groups(info, v) && count_distinct(v, false, &info->stream_count) &&
           count_distinct(v, true, &info->private_pool_count);
}

void
info_finish(struct info *info)
{
    free(info->devices);
    free(info->groups);
    *info = (struct info){0};
}
