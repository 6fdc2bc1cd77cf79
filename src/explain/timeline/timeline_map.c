/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Convert events to segments. A treap holds the mapped pieces by address; an unmap cuts them. A
 * range that is unmapped without having been mapped existed before the window, and so did memory in
 * the final segments that no event mapped.
 */

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/treap.h"
#include "explain/timeline/timeline_inside.h"
#include "trace/model/trace.h"

#define SMALL_SEGMENT_SIZE (2 * DRYI_MIB)
/* Limit of pieces of the window, and of carried-over ones: their sum fits 32 bits. */
#define SEGMENTS_MAX (UINT32_C(1) << 31)

struct mapping {
    struct dry_timeline *t;
    const struct dry_trace_view *v;
    size_t first;                  /* the device's first event in the trace */
    struct dryi_treap_node *nodes; /* parallel to the window's segments; the treap
                                      holds the mapped pieces */
    size_t node_capacity;
    uint32_t root;
    struct dry_timeline_segment *carried;
    size_t carried_capacity;
    uint32_t carried_count;
    const struct dry_trace_segment **final; /* the trace's final segments, by address */
    size_t final_count;
    uint64_t total;
    int64_t change; /* change of the reserved bytes by the current event */
    uint64_t seed;
    bool failed; /* memory ran out */
};

/* --- pieces ------------------------------------------------------------------------------- */

static void
add_piece(struct mapping *m, const struct dry_timeline_segment *piece)
{
    struct dry_timeline *t = m->t;
    size_t count = (size_t)t->window_segment_count + 1;
    if (count > SEGMENTS_MAX ||
        !dryi_memory_grow(&t->memory, &t->segments, &t->segment_capacity, count,
                          sizeof *t->segments) ||
        !dryi_memory_grow(&t->memory, &m->nodes, &m->node_capacity, count,
                          sizeof *m->nodes)) {
        m->failed = true;
        return;
    }
    uint32_t i = t->window_segment_count++;
    t->segments[i] = *piece;
    m->nodes[i] = (struct dryi_treap_node){.major = piece->address,
                                           .priority = (uint32_t)dryi_mix64(i ^ m->seed)};
    dryi_treap_insert(m->nodes, &m->root, i);
    m->change += (int64_t)piece->size;
}

static void
add_carried(struct mapping *m, const struct dry_timeline_segment *carried)
{
    if (m->carried_count + 1 >= SEGMENTS_MAX ||
        !dryi_memory_grow(&m->t->memory, &m->carried, &m->carried_capacity,
                          (size_t)m->carried_count + 1, sizeof *m->carried)) {
        m->failed = true;
        return;
    }
    m->carried[m->carried_count++] = *carried;
}

/* Return the first piece that ends after `address`, or NONE. */
static uint32_t
find_piece(const struct mapping *m, uint64_t address)
{
    uint32_t below = dryi_treap_below(m->nodes, m->root, address, 1);
    if (below != DRYI_TREAP_NONE) {
        const struct dry_timeline_segment *s = &m->t->segments[below];
        if (s->address + s->size > address)
            return below;
    }
    return dryi_treap_at_least(m->nodes, m->root, address, 1);
}

static void
end_piece(struct mapping *m, uint32_t i, uint32_t moment)
{
    dryi_treap_remove(m->nodes, &m->root, i);
    m->t->segments[i].end = moment;
    m->change -= (int64_t)m->t->segments[i].size;
}

/* Remove [from, to) from a piece that overlaps it. The rest continues as new pieces. */
static void
cut_piece(struct mapping *m, uint32_t i, uint64_t from, uint64_t to, uint32_t moment)
{
    struct dry_timeline_segment front = m->t->segments[i], back = front;
    uint64_t end = front.address + front.size;
    end_piece(m, i, moment);
    front.begin = back.begin = moment;
    if (front.address < from) {
        front.size = from - front.address;
        add_piece(m, &front);
    }
    if (end > to) {
        back.address = to;
        back.size = end - to;
        add_piece(m, &back);
    }
}

/* Unmap a range. Calls `gap` for each part in which nothing was mapped. */
static void
clear_range(struct mapping *m, const struct dry_timeline_segment *range, uint32_t moment,
            void (*gap)(struct mapping *m, const struct dry_timeline_segment *gap))
{
    struct dry_timeline_segment hole = *range;
    uint64_t at = range->address, end = range->address + range->size;
    while (at < end && !m->failed) {
        uint32_t i = find_piece(m, at);
        uint64_t begin = i != DRYI_TREAP_NONE ? m->t->segments[i].address : end;
        begin = begin < end ? begin : end;
        if (begin > at && gap) {
            hole.address = at;
            hole.size = begin - at;
            gap(m, &hole);
        }
        if (begin == end)
            return;
        begin = begin > at ? begin : at;
        at = m->t->segments[i].address + m->t->segments[i].size;
        cut_piece(m, i, begin, at < end ? at : end, moment);
    }
}

/* --- events ------------------------------------------------------------------------------- */

/* Add facts about a carried-over piece from the layout at the window's start. */
static void
describe_carried(const struct mapping *m, struct dry_timeline_segment *carried)
{
    const struct dryi_initial_layout *layout = dryi_replay_initial_layout(m->t->replay);
    size_t i = dryi_initial_layout_count_up_to(layout, carried->address);
    if (i == 0)
        return;
    const struct dryi_segment_info *s = &layout->segments[i - 1].segment;
    if (carried->address - s->addr < s->size)
        carried->is_large = s->is_large;
}

/* Add a carried-over piece: unmapped, but not mapped in the window. */
static void
on_unmapped_gap(struct mapping *m, const struct dry_timeline_segment *gap)
{
    struct dry_timeline_segment carried = *gap;
    carried.begin = 0;
    describe_carried(m, &carried);
    add_carried(m, &carried);
    m->change -= (int64_t)carried.size;
}

static struct dry_timeline_segment
describe(const struct mapping *m, uint32_t i)
{
    size_t e = m->first + i;
    enum dry_action action = m->v->action[e];
    return (struct dry_timeline_segment){
        .address = m->v->addr[e],
        .size = m->v->size[e],
        .begin = i + 1,
        .end = DRY_MOMENT_NEVER,
        .lane = m->v->lane[e],
        .is_large = m->v->size[e] != SMALL_SEGMENT_SIZE,
        .is_expandable =
            action == DRY_ACTION_SEGMENT_MAP || action == DRY_ACTION_SEGMENT_UNMAP,
    };
}

static bool
is_possible(struct mapping *m, uint64_t address, uint64_t size)
{
    if (size == 0)
        return false;
    uint64_t end;
    bool fits = size <= DRYI_TIMELINE_BYTES_MAX &&
                !__builtin_add_overflow(address, size, &end) &&
                m->total <= DRYI_TIMELINE_TOTAL_MAX;
    m->t->view.segment_conflicts += !fits;
    m->total += fits ? size : 0;
    return fits;
}

/* Return whether a map shows that all pages have 2 MiB. PyTorch maps 2 MiB for the small pool, else
   multiples of its large page. */
static bool
is_of_small_pages(const struct mapping *m, const struct dry_timeline_segment *range)
{
    uint64_t page = dryi_replay_conf(m->t->replay)->large_segment_size;
    return range->is_expandable && range->size != SMALL_SEGMENT_SIZE &&
           range->size % SMALL_SEGMENT_SIZE == 0 && range->size % page != 0;
}

static void
on_segment_event(struct mapping *m, uint32_t i, bool grows)
{
    struct dry_timeline *t = m->t;
    struct dry_timeline_segment range = describe(m, i);
    if (!is_possible(m, range.address, range.size))
        return;
    t->has_small_pages |= grows && is_of_small_pages(m, &range);
    m->change = 0;
    if (grows) {
        uint32_t before = t->window_segment_count;
        clear_range(m, &range, i + 1, NULL);
        t->view.segment_conflicts += m->change != 0 || t->window_segment_count != before;
        if (!m->failed)
            add_piece(m, &range);
    } else {
        range.end = i + 1;
        clear_range(m, &range, i + 1, on_unmapped_gap);
    }
    if (!dryi_memory_grow(&t->memory, &t->steps, &t->step_capacity, t->step_count + 2,
                          sizeof *t->steps)) {
        m->failed = true;
        return;
    }
    t->steps[t->step_count++] =
        (struct dryi_segment_step){.event = i, .change = m->change};
}

static void
on_event(struct mapping *m, uint32_t i)
{
    enum dry_action action = m->v->action[m->first + i];
    if (action == DRY_ACTION_SEGMENT_ALLOC || action == DRY_ACTION_SEGMENT_MAP)
        on_segment_event(m, i, true);
    else if (action == DRY_ACTION_SEGMENT_FREE || action == DRY_ACTION_SEGMENT_UNMAP)
        on_segment_event(m, i, false);
}

/* --- final segments ----------------------------------------------------------------------- */

static bool
sort_final(struct mapping *m)
{
    const struct dry_trace_device *d = dryi_replay_device(m->t->replay);
    m->final = dryi_memory_zalloc(&m->t->memory, d->segment_count + 1, sizeof(*m->final));
    if (!m->final)
        return false;
    for (size_t i = 0; i < d->segment_count; i++)
        m->final[i] = &m->v->segments[d->first_segment + i];
    m->final_count = d->segment_count;
    qsort(m->final, m->final_count, sizeof(*m->final), dryi_trace_compare_segments);
    return true;
}

/* Add a carried-over piece: in a final segment, but not mapped in the window. */
static void
on_final_gap(struct mapping *m, const struct dry_trace_segment *s, uint64_t from,
             uint64_t to)
{
    struct dry_timeline_segment carried = {
        .address = from,
        .size = to - from,
        .end = DRY_MOMENT_NEVER,
        .lane = s->lane,
        .is_large = s->is_large,
        .is_expandable = s->is_expandable,
    };
    if (is_possible(m, from, carried.size))
        add_carried(m, &carried);
}

/* End the pieces in a range that no final segment covers: they were
   unmapped after the last event. */
static void
forget_range(struct mapping *m, uint64_t from, uint64_t to)
{
    struct dry_timeline_segment range = {.address = from, .size = to - from};
    int64_t before = m->change;
    clear_range(m, &range, m->t->view.dump_moment, NULL);
    m->t->view.segment_conflicts += m->change != before;
}

/* Update the pieces of a final segment: its description has precedence over the events'. */
static void
follow_final(struct mapping *m, const struct dry_trace_segment *s, uint64_t from,
             uint64_t end)
{
    for (uint64_t at = from; at < end && !m->failed;) {
        uint32_t i = find_piece(m, at);
        struct dry_timeline_segment *piece =
            i != DRYI_TREAP_NONE ? &m->t->segments[i] : NULL;
        uint64_t begin = piece && piece->address < end ? piece->address : end;
        if (begin > at)
            on_final_gap(m, s, at, begin);
        if (begin == end)
            return;
        piece->lane = s->lane;
        piece->is_large = s->is_large;
        piece->is_expandable = s->is_expandable;
        at = piece->address + piece->size;
    }
}

/* Process the final segments by address. Overlaps are processed once, so a hostile file costs no
   more than a sound one. */
static void
read_final_layout(struct mapping *m)
{
    struct dry_timeline *t = m->t;
    uint64_t reached = 0;
    m->change = 0;
    for (size_t i = 0; i < m->final_count && !m->failed; i++) {
        const struct dry_trace_segment *s = m->final[i];
        uint64_t end;
        if (__builtin_add_overflow(s->address, s->total_size, &end)) {
            t->view.segment_conflicts++;
            continue;
        }
        if (s->address > reached)
            forget_range(m, reached, s->address);
        t->view.segment_conflicts += s->address < reached;
        follow_final(m, s, s->address > reached ? s->address : reached, end);
        reached = end > reached ? end : reached;
    }
    if (m->final_count > 0 && !m->failed)
        forget_range(m, reached, UINT64_MAX);
    if (m->change != 0) /* the array has space for one more step */
        t->steps[t->step_count++] =
            (struct dryi_segment_step){.event = t->view.event_count, .change = m->change};
}

/* --- lanes -------------------------------------------------------------------------------- */

struct numbered_lane {
    uint64_t stream, pool_a, pool_b;
    uint32_t number;
};

static int
compare_lanes(const void *a, const void *b)
{
    const struct numbered_lane *x = a, *y = b;
    if (x->stream != y->stream)
        return x->stream < y->stream ? -1 : 1;
    if (x->pool_a != y->pool_a)
        return x->pool_a < y->pool_a ? -1 : 1;
    if (x->pool_b != y->pool_b)
        return x->pool_b < y->pool_b ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static bool
is_same_lane(const struct numbered_lane *x, const struct numbered_lane *y)
{
    return x->stream == y->stream && x->pool_a == y->pool_a && x->pool_b == y->pool_b;
}

/* Give equal lanes (stream and pool) one number. An older file may not name the default pool, so
   two numbers can mean the same lane; the lower one is kept. */
static bool
unify_lanes(struct mapping *m)
{
    size_t count = m->v->lane_count;
    struct numbered_lane *lanes =
        dryi_memory_zalloc(&m->t->memory, count + 1, sizeof *lanes);
    uint32_t *firsts = dryi_memory_zalloc(&m->t->memory, count + 1, sizeof *firsts);
    for (uint32_t i = 0; lanes && firsts && i < count; i++)
        lanes[i] = (struct numbered_lane){.stream = m->v->lanes[i].stream,
                                          .pool_a = m->v->lanes[i].pool_a,
                                          .pool_b = m->v->lanes[i].pool_b,
                                          .number = i};
    if (lanes && firsts) {
        qsort(lanes, count, sizeof *lanes, compare_lanes);
        for (size_t i = 0; i < count; i++) {
            bool is_same = i > 0 && is_same_lane(&lanes[i], &lanes[i - 1]);
            firsts[lanes[i].number] =
                is_same ? firsts[lanes[i - 1].number] : lanes[i].number;
        }
        for (uint32_t i = 0; i < m->t->view.segment_count; i++)
            m->t->segments[i].lane = firsts[m->t->segments[i].lane];
    }
    bool is_done = lanes && firsts;
    dryi_memory_free(&m->t->memory, lanes, count + 1, sizeof *lanes);
    dryi_memory_free(&m->t->memory, firsts, count + 1, sizeof *firsts);
    return is_done;
}

static bool
append_carried(struct mapping *m)
{
    struct dry_timeline *t = m->t;
    size_t count = (size_t)t->window_segment_count + m->carried_count;
    if (!dryi_memory_grow(&t->memory, &t->segments, &t->segment_capacity, count + 1,
                          sizeof *t->segments))
        return false;
    if (m->carried_count > 0)
        memcpy(t->segments + t->window_segment_count, m->carried,
               m->carried_count * sizeof *m->carried);
    t->view.segment_count = (uint32_t)count;
    return true;
}

enum dry_status
dryi_timeline_map(struct dry_timeline *t, struct dry_error *err)
{
    struct mapping m = {.t = t,
                        .v = t->trace,
                        .first = t->view.first_event,
                        .root = DRYI_TREAP_NONE,
                        .seed = dryi_seed_make(t)};
    m.failed = !sort_final(&m);
    for (uint32_t i = 0; i < t->view.event_count && !m.failed; i++)
        on_event(&m, i);
    if (!m.failed)
        read_final_layout(&m);
    m.failed |= !m.failed && !(append_carried(&m) && unify_lanes(&m));
    dryi_memory_free(&t->memory, m.nodes, m.node_capacity, sizeof *m.nodes);
    dryi_memory_free(&t->memory, m.carried, m.carried_capacity, sizeof *m.carried);
    if (m.final)
        dryi_memory_free(&t->memory, m.final,
                         dryi_replay_device(t->replay)->segment_count + 1,
                         sizeof(*m.final));
    return m.failed ? dryi_fail_memory(err, "the segments of a timeline") : DRY_OK;
}
