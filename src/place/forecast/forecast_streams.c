/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Packing a period of several streams, or one with lives that extend into the next period.
 *
 * A stream may reuse its own frees at once. Another stream may use them only once ordered after
 * them, by a completed event or a wait of the program. The earlier periods show when that was the
 * case; the packing passes no range to another stream earlier. If streams can be made to wait, all
 * memory freed in one period is usable by all streams in the next. A wait between periods delays no
 * stream that the program itself would not delay.
 *
 * So the streams of two lives decide whether the lives may share bytes. Lives are therefore packed
 * by pairwise conflicts, not as intervals. One after the other, each life gets the lowest gap
 * between those that it conflicts with. Several orders are tried.
 *
 * Time is a circle: the period's end is its begin. When the later of two lives begins, the earlier
 * one's range must be usable by the later one's stream, and vice versa when the earlier one recurs.
 *
 * Cost: O(lives^2) per order in the worst case; usually far less, because a search ends at the
 * first gap. After VISITS_MAX visits to lives no further order is tried.
 */
#include "place/forecast/forecast_inside.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"
#include "base/sort.h"

#define NEVER UINT32_MAX
/* Once the height is good, a further order must save 1/32 of it. */
#define SAVED_SHARE 32
/* Visits to lives after which no further order is tried: at 4 ns each, half a second. */
#define VISITS_MAX (UINT64_C(1) << 27)

/* --- from when on ------------------------------------------------------------------------- */

/* The passes sorted by pair of streams, and by time within a pair; so their epochs increase too. */
struct passes {
    const struct dryi_forecast *h;
    const uint32_t *streams;
    uint32_t stream_count;
    struct dryi_sort_item *items; /* pair and index; twice the capacity for sorting */
    size_t count, capacity;
    size_t first[DRYI_PACKING_STREAMS_MAX * (DRYI_PACKING_STREAMS_MAX + 1) + 1];
};

/* Return the stream's index in the job; stream_count for DRYI_HINT_ANYBODY; NEVER: none. */
static uint32_t
find_number(const struct passes *p, uint32_t stream)
{
    for (uint32_t n = 0; n < p->stream_count; n++) {
        if (p->streams[n] == stream)
            return n;
    }
    return stream == DRYI_HINT_ANYBODY ? p->stream_count : NEVER;
}

static const struct forecast_pass *
pass_at(const struct passes *p, uint32_t index)
{
    return &p->h->passes[index % FORECAST_PASSES_MAX];
}

static bool
sort_passes(struct passes *p, uint64_t since)
{
    uint64_t all = p->h->pass_count;
    uint64_t oldest = all > FORECAST_PASSES_MAX ? all - FORECAST_PASSES_MAX : 0;
    p->capacity = (size_t)(all - oldest) + 1;
    p->items = dryi_memory_zalloc(&p->h->memory, p->capacity, 2 * sizeof *p->items);
    if (!p->items)
        return false;
    for (uint64_t i = oldest; i < all; i++) {
        uint32_t at = (uint32_t)(i % FORECAST_PASSES_MAX);
        const struct forecast_pass *pass = pass_at(p, at);
        uint32_t from = find_number(p, pass->from), to = find_number(p, pass->to);
        if (pass->time < since || from >= p->stream_count || to == NEVER)
            continue;
        uint32_t pair = from * (p->stream_count + 1) + to;
        p->items[p->count++] = (struct dryi_sort_item){pair, at};
        p->first[pair + 1]++;
    }
    dryi_sort_items(p->items, p->items + p->capacity, p->count);
    for (uint32_t pair = 0; pair < p->stream_count * (p->stream_count + 1); pair++)
        p->first[pair + 1] += p->first[pair];
    return true;
}

/* Is the epoch before the other? Compares modulo 2^32, which suffices for epochs of two periods. */
static bool
is_before(uint32_t epoch, uint32_t other)
{
    return other - epoch - 1 < UINT32_MAX / 2;
}

/* Return when memory freed in this epoch became usable by `to`; UINT64_MAX: never observed. */
static uint64_t
find_time(const struct passes *p, uint32_t from, uint32_t to, uint32_t epoch)
{
    DRYI_ASSERT_SLOW(from < p->stream_count && to <= p->stream_count && epoch > 0);
    uint32_t pair = from * (p->stream_count + 1) + to;
    size_t low = p->first[pair], end = p->first[pair + 1], high = end;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (is_before((uint32_t)pass_at(p, p->items[middle].value)->epoch, epoch))
            low = middle + 1;
        else
            high = middle;
    }
    return low < end ? pass_at(p, p->items[low].value)->time : UINT64_MAX;
}

/*
 * Return the step's record in the last period but one. NULL: no longer in the ring, or its epoch is
 * unknown.
 */
static const struct forecast_record *
record_of_step(const struct dryi_forecast *h, uint32_t step)
{
    DRYI_ASSERT_SLOW(step < h->step_count);
    uint64_t number = h->now - 2 * (uint64_t)h->step_count + step;
    if (h->now < 2 * (uint64_t)h->step_count || number < h->oldest)
        return NULL;
    const struct forecast_record *record = forecast_record_at(h, number);
    return record->key == h->steps[step].key && record->epoch > 0 ? record : NULL;
}

/*
 * Return the request from which on stream `to` may use the life's range, counted from the begin of
 * the life's period. NEVER: not within two periods.
 */
static uint32_t
usable_from(const struct passes *p, const struct dryi_packing_life *life, uint32_t to)
{
    if (to == life->stream)
        return life->end;
    const struct forecast_record *record = record_of_step(p->h, life->step);
    if (!record)
        return NEVER;
    uint64_t by_all = find_time(p, life->stream, p->stream_count, record->epoch);
    uint64_t by_one = find_time(p, life->stream, to, record->epoch);
    uint64_t time = by_all < by_one ? by_all : by_one;
    if (time == UINT64_MAX)
        return NEVER;
    DRYI_ASSERT_SLOW(time >= p->h->now - 2 * (uint64_t)p->h->step_count);
    /* Relative to the begin of the last two periods. */
    time -= p->h->now - 2 * (uint64_t)p->h->step_count;
    return time > life->end ? (uint32_t)time : life->end;
}

enum dry_status
dryi_packing_find_usable(const struct dryi_forecast *h, const uint32_t *streams,
                         struct dryi_packing_job *job)
{
    DRYI_ASSERT_SLOW(h->step_count == job->period && job->stream_count > 0);
    DRYI_ASSERT_SLOW(job->usable && job->stream_count <= DRYI_PACKING_STREAMS_MAX);
    struct passes passes = {
        .h = h, .streams = streams, .stream_count = job->stream_count};
    uint64_t both = 2 * (uint64_t)h->step_count;
    if (!sort_passes(&passes, h->now > both ? h->now - both : 0))
        return DRY_ERR_MEMORY;
    for (size_t k = 0; k < job->count; k++) {
        for (uint32_t to = 0; to < job->stream_count; to++)
            job->usable[k * job->stream_count + to] =
                usable_from(&passes, &job->lives[k], to);
    }
    dryi_memory_free(&h->memory, passes.items, passes.capacity, 2 * sizeof *passes.items);
    return DRY_OK;
}

/* --- packing ------------------------------------------------------------------------------ */

struct packer {
    struct dryi_packing_job *job;
    const struct dry_memory *memory;
    size_t obstacle_count;
    uint64_t *offsets; /* the lives' offsets in the order being tried */
    /* Numbers from job->count on are obstacles. */
    uint32_t *placed; /* lives and obstacles, sorted by offset */
    size_t placed_count;
    struct dryi_sort_item *items; /* the order; twice the capacity for sorting */
    uint64_t height,
        good_height; /* bytes; a packing of height `good_height` or less is good */
    uint64_t visits; /* visits to placed lives */
};

static uint64_t
get_offset(const struct packer *p, uint32_t k)
{
    return k < p->job->count ? p->offsets[k]
                             : p->job->obstacles[k - p->job->count].offset;
}

/*
 * Return the request from which on `stream` may use the life's range: as observed, or after a wait.
 * A stream waits at the begin of a period, or `distance` requests after the free if that is
 * earlier.
 */
static uint32_t
find_usable(const struct dryi_packing_job *job, uint32_t life, uint32_t stream)
{
    DRYI_ASSERT_SLOW(life < job->count && stream < job->stream_count);
    const struct dryi_packing_life *l = &job->lives[life];
    uint32_t usable = job->usable[life * (size_t)job->stream_count + stream];
    if (!job->can_wait || usable == l->end)
        return usable;
    uint32_t next = l->end <= job->period ? job->period : 2 * job->period;
    uint32_t waited = job->distance < next - l->end ? l->end + job->distance : next;
    return usable < waited ? usable : waited;
}

static bool
may_follow(const struct dryi_packing_job *job, uint32_t first, uint32_t second)
{
    DRYI_ASSERT_SLOW(job->lives[first].begin <= job->lives[second].begin);
    const struct dryi_packing_life *a = &job->lives[first], *b = &job->lives[second];
    uint64_t again = (uint64_t)a->begin + job->period;
    return find_usable(job, first, b->stream) <= b->begin &&
           find_usable(job, second, a->stream) <= again;
}

bool
dryi_packing_is_conflict(const struct dryi_packing_job *job, uint32_t a, uint32_t b)
{
    DRYI_ASSERT_SLOW(a != b && job->usable);
    return job->lives[a].begin < job->lives[b].begin ? !may_follow(job, a, b)
                                                     : !may_follow(job, b, a);
}

/* Place the life in the lowest gap between the lives that it conflicts with. */
static void
place(struct packer *p, uint32_t life)
{
    DRYI_ASSERT_SLOW(life < p->job->count && p->placed_count < p->job->capacity);
    uint64_t size = p->job->lives[life].size, cursor = 0;
    size_t at = 0;
    for (; at < p->placed_count; at++) {
        uint32_t other = p->placed[at];
        uint64_t offset = get_offset(p, other),
                 end = offset + packing_size(p->job, other);
        if (offset >= cursor && offset - cursor >= size)
            break;
        if (end > cursor &&
            (other >= p->job->count || dryi_packing_is_conflict(p->job, life, other)))
            cursor = end;
    }
    p->visits += at;
    p->offsets[life] = cursor;
    p->height = cursor + size > p->height ? cursor + size : p->height;
    for (at = p->placed_count++; at > 0 && get_offset(p, p->placed[at - 1]) > cursor;
         at--)
        p->placed[at] = p->placed[at - 1];
    p->placed[at] = life;
}

enum order { BY_SIZE, BY_AREA, BY_LIFE, BY_BEGIN };
#define ORDER_COUNT 4

/* Return the weight of a life in an order. Heavier lives are placed first. */
static uint64_t
get_weight(const struct dryi_packing_life *life, enum order order)
{
    DRYI_ASSERT_SLOW(life->begin < life->end);
    uint64_t duration = life->end - life->begin;
    switch (order) {
    case BY_SIZE:
        return life->size;
    case BY_AREA:
        return life->size / FORECAST_GRAIN * duration;
    case BY_LIFE:
        return duration;
    case BY_BEGIN:
        break;
    }
    return UINT32_MAX - life->begin;
}

static void
pack_in_order(struct packer *p, enum order order)
{
    const struct dryi_packing_job *job = p->job;
    for (uint32_t k = 0; k < job->count; k++)
        p->items[k] = (struct dryi_sort_item){~get_weight(&job->lives[k], order), k};
    dryi_sort_items(p->items, p->items + job->count, job->count);
    p->height = 0;
    p->placed_count = 0;
    for (size_t k = 0; k < p->obstacle_count; k++)
        p->placed[p->placed_count++] = (uint32_t)(job->count + k);
    for (size_t k = 0; k < job->count && !dryi_packing_job_is_cancelled(job); k++)
        place(p, p->items[k].value);
}

/*
 * Try one more order, and copy a packing below *height to `offsets`. If *height is good already,
 * the packing must save 1/SAVED_SHARE: earlier orders need fewer waits and give more lives a
 * successor.
 */
static void
try_order(struct packer *p, enum order order, uint64_t *offsets, uint64_t *height)
{
    if (*height != UINT64_MAX && p->visits > VISITS_MAX)
        return;
    pack_in_order(p, order);
    uint64_t saved = *height <= p->good_height ? *height / SAVED_SHARE : 0;
    if (p->height >= *height - saved)
        return;
    *height = p->height;
    for (size_t k = 0; k < p->job->count; k++)
        offsets[k] = p->offsets[k];
}

/*
 * Pack contiguously, then around the obstacles. A wait is shorter the longer ago the free was, so
 * the longest distance that reaches the target is chosen.
 */
static void
pack(struct packer *p, uint64_t *height)
{
    struct dryi_packing_job *job = p->job;
    uint64_t target = job->floor + ((job->floor + job->taken) >> FORECAST_SPARE_SHIFT);
    uint32_t best = job->period;
    uint64_t top = UINT64_MAX;
    for (job->distance = job->period; *height > target; job->distance /= 4) {
        uint64_t before = *height;
        try_order(p, BY_SIZE, job->piece, height);
        best = *height < before ? job->distance : best;
        if (job->distance == 0 || !job->can_wait)
            break;
    }
    job->distance = best;
    for (unsigned order = BY_AREA; order<ORDER_COUNT && * height> target; order++)
        try_order(p, (enum order)order, job->piece, height);
    p->obstacle_count = job->obstacle_count;
    for (unsigned order = 0; order < ORDER_COUNT && job->obstacle_count > 0; order++)
        try_order(p, (enum order)order, job->fill, &top);
}

enum dry_status
dryi_packing_pack_circle(struct dryi_packing_job *job, const struct dry_memory *memory,
                         uint64_t good_height, uint64_t *height)
{
    DRYI_ASSERT_SLOW(job->usable && job->count <= job->period);
    struct packer p = {.job = job, .memory = memory, .good_height = good_height};
    p.offsets = dryi_memory_zalloc(memory, job->capacity, sizeof *p.offsets);
    p.placed = dryi_memory_zalloc(memory, job->capacity, sizeof *p.placed);
    p.items = dryi_memory_zalloc(memory, job->capacity, 2 * sizeof *p.items);
    bool has_memory = p.offsets && p.placed && p.items;
    if (has_memory)
        pack(&p, height);
    dryi_memory_free(memory, p.offsets, job->capacity, sizeof *p.offsets);
    dryi_memory_free(memory, p.placed, job->capacity, sizeof *p.placed);
    dryi_memory_free(memory, p.items, job->capacity, 2 * sizeof *p.items);
    return has_memory ? DRY_OK : DRY_ERR_MEMORY;
}
