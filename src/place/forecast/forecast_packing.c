/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The packing of a period: an offset for each of its lives.
 *
 * A life keeps its range from its request to its free, which may be in the next period if it comes
 * before the request recurs. A block that lives longer is not packed; once allocated, it is an
 * obstacle.
 *
 * Two packings are made. The first is contiguous, in the lowest gap that is large enough. The
 * second puts each life into the lowest gap between the obstacles, where it fills pages that are
 * mapped anyway. The packing with fewer pages beyond those of the obstacles is used; on a tie the
 * second, because it moves fewer pages.
 *
 * forecast_streams.c makes both, on the circle of time. With a single stream, place/offline first
 * makes a contiguous one, in which lives that cross the period's end count as alive all the time.
 */
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"
#include "base/sort.h"
#include "place/forecast/forecast_inside.h"

/* --- a job -------------------------------------------------------------------------------- */

static bool
take_memory(struct dryi_packing_job *job)
{
    const struct dry_memory *m = &job->memory;
    job->lives = dryi_memory_zalloc(m, job->capacity, sizeof *job->lives);
    job->obstacles = dryi_memory_zalloc(m, job->capacity, sizeof *job->obstacles);
    job->piece = dryi_memory_zalloc(m, job->capacity, sizeof *job->piece);
    job->fill = dryi_memory_zalloc(m, job->capacity, sizeof *job->fill);
    return job->lives && job->obstacles && job->piece && job->fill;
}

void
dryi_packing_job_destroy(struct dryi_packing_job *job)
{
    if (!job)
        return;
    struct dry_memory m = job->memory;
    dryi_memory_free(&m, job->lives, job->capacity, sizeof *job->lives);
    dryi_memory_free(&m, job->obstacles, job->capacity, sizeof *job->obstacles);
    dryi_memory_free(&m, job->piece, job->capacity, sizeof *job->piece);
    dryi_memory_free(&m, job->fill, job->capacity, sizeof *job->fill);
    dryi_memory_free(&m, job->usable, job->capacity,
                     job->stream_count * sizeof *job->usable);
    dryi_memory_free(&m, job, 1, sizeof *job);
}

void
dryi_packing_job_cancel(struct dryi_packing_job *job)
{
    atomic_store_explicit(&job->is_cancelled, true, memory_order_relaxed);
}

/* Map a stream to its index in the job; add the stream if it is new. False: too many streams. */
static bool
find_stream(struct dryi_packing_job *job, uint32_t *streams, uint32_t stream,
            uint32_t *number)
{
    DRYI_ASSERT_SLOW(job->stream_count <= DRYI_PACKING_STREAMS_MAX);
    uint32_t n = 0;
    while (n < job->stream_count && streams[n] != stream)
        n++;
    if (n == DRYI_PACKING_STREAMS_MAX)
        return false;
    if (n == job->stream_count)
        streams[job->stream_count++] = stream;
    *number = n;
    return true;
}

static bool
list_lives(const struct dryi_forecast *h, struct dryi_packing_job *job, uint32_t *streams)
{
    for (uint32_t i = 0; i < h->step_count; i++) {
        const struct forecast_step *step = &h->steps[i];
        if (!forecast_is_packed_step(h, i))
            continue;
        struct dryi_packing_life life = {.size = step->size,
                                         .step = i,
                                         .begin = i,
                                         .end = step->end,
                                         .successor = DRYI_STEP_NONE};
        if (!find_stream(job, streams, step->stream, &life.stream))
            return false;
        job->lives[job->count++] = life;
    }
    return true;
}

static void
copy_obstacles(const struct dryi_packing_request *request, struct dryi_packing_job *job)
{
    DRYI_ASSERT_SLOW(job->capacity == job->period + request->obstacle_count);
    job->obstacle_count = request->obstacle_count;
    for (size_t k = 0; k < request->obstacle_count; k++) {
        const struct dryi_obstacle *o = &request->obstacles[k];
        uint64_t begin = dryi_round_down(o->offset, FORECAST_GRAIN);
        uint64_t end = dryi_round_up(o->offset + o->size, FORECAST_GRAIN);
        job->obstacles[k] = (struct dryi_obstacle){begin, end - begin, o->is_passing};
        job->taken += o->is_passing ? 0 : end - begin;
    }
}

static enum dry_status
fill_job(const struct dryi_forecast *h, const struct dryi_packing_request *request,
         struct dryi_packing_job *job)
{
    uint32_t streams[DRYI_PACKING_STREAMS_MAX] = {0};
    if (!take_memory(job))
        return DRY_ERR_MEMORY;
    copy_obstacles(request, job);
    if (!list_lives(h, job, streams)) {
        job->stream_count = 0;
        return DRY_ERR_UNSUPPORTED;
    }
    if (job->count == 0)
        return DRY_OK;
    job->usable = dryi_memory_zalloc(&job->memory, job->capacity,
                                     job->stream_count * sizeof *job->usable);
    return job->usable ? dryi_packing_find_usable(h, streams, job) : DRY_ERR_MEMORY;
}

static bool
are_in_order(const struct dryi_obstacle *obstacles, size_t count)
{
    uint64_t end = 0;
    for (size_t k = 0; k < count; k++) {
        if (obstacles[k].size == 0 || obstacles[k].offset < end ||
            obstacles[k].offset > (UINT64_C(1) << 61) ||
            obstacles[k].size > (UINT64_C(1) << 61) - obstacles[k].offset)
            return false;
        end = obstacles[k].offset + obstacles[k].size;
    }
    return true;
}

enum dry_status
dryi_packing_job_create(const struct dryi_forecast *h,
                        const struct dryi_packing_request *request,
                        struct dryi_packing_job **job)
{
    if (h->state == FORECAST_LEARNING || request->page_bytes == 0 ||
        request->obstacle_count > UINT32_MAX / 2 ||
        !are_in_order(request->obstacles, request->obstacle_count))
        return DRY_ERR_ARGUMENT;
    struct dryi_packing_job *j = dryi_memory_zalloc(&h->memory, 1, sizeof *j);
    if (!j)
        return DRY_ERR_MEMORY;
    j->memory = h->memory;
    j->period_number = h->period_number;
    j->period = h->step_count;
    j->page_bytes = request->page_bytes;
    j->can_wait = request->can_wait;
    j->capacity = h->step_count + request->obstacle_count;
    atomic_init(&j->is_cancelled, false);
    enum dry_status status = fill_job(h, request, j);
    if (status != DRY_OK) {
        dryi_packing_job_destroy(j);
        return status;
    }
    *job = j;
    return DRY_OK;
}

/* --- packing ------------------------------------------------------------------------------ */

/* Scratch memory of a run. */
struct run {
    struct dryi_packing_job *job;
    const struct dry_memory *memory;
    struct dryi_life *lives;      /* the job's lives in the form of place/offline */
    uint64_t *changes;            /* differences of live bytes, by request */
    struct dryi_sort_item *items; /* twice the capacity, for sorting */
};

static bool
begin_run(struct run *run)
{
    size_t capacity = run->job->capacity;
    run->lives = dryi_memory_zalloc(run->memory, capacity, sizeof *run->lives);
    run->changes = dryi_memory_zalloc(run->memory, capacity, sizeof *run->changes);
    run->items = dryi_memory_zalloc(run->memory, capacity, 2 * sizeof *run->items);
    return run->lives && run->changes && run->items;
}

static void
end_run(struct run *run)
{
    size_t capacity = run->job->capacity;
    dryi_memory_free(run->memory, run->lives, capacity, sizeof *run->lives);
    dryi_memory_free(run->memory, run->changes, capacity, sizeof *run->changes);
    dryi_memory_free(run->memory, run->items, capacity, 2 * sizeof *run->items);
}

static void
set_lives(const struct run *run)
{
    const struct dryi_packing_job *job = run->job;
    for (size_t k = 0; k < job->count; k++) {
        const struct dryi_packing_life *life = &job->lives[k];
        DRYI_ASSERT_SLOW(life->begin < life->end && life->step < job->period);
        bool is_inside = life->end <= job->period;
        run->lives[k] = is_inside ? (struct dryi_life){life->begin, life->end, life->size}
                                  : (struct dryi_life){0, job->period, life->size};
    }
}

/* Return the lowest gap of `size` bytes between the obstacles, or above them. */
static uint64_t
find_gap(const struct dryi_packing_job *job, uint64_t size)
{
    uint64_t cursor = 0;
    for (size_t k = 0; k < job->obstacle_count; k++) {
        const struct dryi_obstacle *o = &job->obstacles[k];
        if (o->offset >= cursor && o->offset - cursor >= size)
            return cursor;
        if (o->offset + o->size > cursor)
            cursor = o->offset + o->size;
    }
    return cursor;
}

/*
 * Sort the packed lives by offset, together with the obstacles that are not passing. Returns the
 * number of items.
 */
static size_t
sort_ranges(const struct run *run, const uint64_t *offsets)
{
    const struct dryi_packing_job *job = run->job;
    size_t count = 0;
    for (size_t k = 0; k < job->count; k++)
        run->items[count++] = (struct dryi_sort_item){offsets[k], (uint32_t)k};
    for (size_t k = 0; k < job->obstacle_count; k++) {
        const struct dryi_obstacle *o = &job->obstacles[k];
        if (!o->is_passing)
            run->items[count++] =
                (struct dryi_sort_item){o->offset, (uint32_t)(job->count + k)};
    }
    DRYI_ASSERT_SLOW(count <= job->capacity);
    dryi_sort_items(run->items, run->items + job->capacity, count);
    return count;
}

static uint64_t
count_pages(const struct run *run, const uint64_t *offsets)
{
    uint64_t pages = 0, next = 0; /* pages below `next` are counted */
    size_t count = sort_ranges(run, offsets);
    for (size_t k = 0; k < count; k++) {
        uint32_t at = run->items[k].value;
        uint64_t first = run->items[k].key / run->job->page_bytes;
        uint64_t end = run->items[k].key + packing_size(run->job, at);
        uint64_t last = (end - 1) / run->job->page_bytes;
        first = first > next ? first : next;
        if (last + 1 > first) {
            pages += last + 1 - first;
            next = last + 1;
        }
    }
    return pages;
}

/* Compute the peak of live bytes on the circle into job->floor. */
static void
find_floor(const struct run *run)
{
    struct dryi_packing_job *job = run->job;
    uint64_t *change = run->changes, live = 0; /* intermediate sums may wrap around */
    memset(change, 0, job->period * sizeof *change);
    for (size_t k = 0; k < job->count; k++) {
        const struct dryi_packing_life *life = &job->lives[k];
        change[life->begin] += life->size;
        change[life->end % job->period] -= life->size;
        live += life->end >= job->period ? life->size : 0;
    }
    for (uint32_t i = 0; i < job->period; i++) {
        live += change[i];
        job->floor = live > job->floor ? live : job->floor;
    }
}

static enum dry_status
pack_piece(const struct run *run)
{
    struct dryi_packing_job *job = run->job;
    struct dryi_packing packing = {.height = job->count > 0 ? UINT64_MAX : 0};
    struct dryi_packing_options options = {.memory = run->memory,
                                           .alignment = FORECAST_GRAIN};
    uint64_t moment;
    enum dry_status status = dryi_offline_floor(run->lives, job->count, FORECAST_GRAIN,
                                                run->memory, &options.target, &moment);
    options.target += options.target >> FORECAST_SPARE_SHIFT;
    if (status == DRY_OK && job->stream_count == 1)
        status = dryi_offline_pack(run->lives, job->count, &options, job->piece, &packing,
                                   NULL);
    if (status == DRY_OK && job->usable)
        status =
            dryi_packing_pack_circle(job, run->memory, options.target, &packing.height);
    if (status != DRY_OK)
        return status;
    uint64_t base = find_gap(job, packing.height);
    for (size_t k = 0; k < job->count; k++)
        job->piece[k] += base;
    return DRY_OK;
}

static void
pack(const struct run *run)
{
    struct dryi_packing_job *job = run->job;
    find_floor(run);
    set_lives(run);
    if (pack_piece(run) != DRY_OK || dryi_packing_job_is_cancelled(job))
        return;
    uint64_t of_piece = count_pages(run, job->piece), of_fill = UINT64_MAX;
    if (job->obstacle_count > 0)
        of_fill = count_pages(run, job->fill);
    job->offsets = of_fill <= of_piece ? job->fill : job->piece;
    job->pages = of_fill <= of_piece ? of_fill : of_piece;
    if (dryi_packing_find_next(job, run->memory) != DRY_OK)
        job->offsets = NULL;
}

void
dryi_packing_job_run(struct dryi_packing_job *job, const struct dry_memory *memory)
{
    DRYI_ASSERT_SLOW(!job->offsets && job->handed == 0);
    struct dry_memory m = dryi_memory_or_default(memory);
    struct run run = {.job = job, .memory = &m};
    if (begin_run(&run))
        pack(&run);
    end_run(&run);
}

bool
dryi_packing_job_is_of(const struct dryi_packing_job *job, const struct dryi_forecast *h)
{
    return h->state != FORECAST_LEARNING && h->period_number == job->period_number;
}

/* Return the index of the first range that ends above the offset. */
static size_t
find_range(const struct dryi_obstacle *ranges, size_t count, uint64_t offset)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].offset + ranges[middle].size <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

size_t
dryi_packing_job_count_met(const struct dryi_packing_job *job,
                           const struct dryi_obstacle *ranges, size_t count)
{
    DRYI_ASSERT_SLOW(are_in_order(ranges, count));
    size_t met = 0;
    for (size_t k = 0; job->offsets && k < job->count; k++) {
        size_t at = find_range(ranges, count, job->offsets[k]);
        uint64_t end = job->offsets[k] + job->lives[k].size;
        while (at < count && ranges[at].is_passing && ranges[at].offset < end)
            at++;
        met += at < count && ranges[at].offset < end;
    }
    return met;
}

/* --- the layout ----------------------------------------------------------------------------- */

enum dry_status
dryi_packing_job_take(struct dryi_packing_job *job, struct dryi_forecast *h,
                      struct dryi_packing_info *info)
{
    if (!job->offsets || dryi_packing_job_is_cancelled(job))
        return DRY_ERR_CANCELLED;
    if (!dryi_packing_job_is_of(job, h))
        return DRY_ERR_ARGUMENT;
    DRYI_ASSERT_SLOW(h->step_count == job->period && job->count <= job->period);
    *info = (struct dryi_packing_info){.period = job->period,
                                       .streams = job->stream_count,
                                       .handed = job->handed,
                                       .floor = job->floor,
                                       .used_pages = job->pages};
    for (uint32_t i = 0; i < h->step_count; i++) {
        h->steps[i].offset = DRYI_HINT_NONE;
        h->steps[i].successor = DRYI_STEP_NONE;
    }
    for (size_t k = 0; k < job->count; k++) {
        uint64_t end = job->offsets[k] + job->lives[k].size;
        struct forecast_step *step = &h->steps[job->lives[k].step];
        step->offset = job->offsets[k];
        step->successor = job->lives[k].successor;
        info->height = end > info->height ? end : info->height;
    }
    h->state = FORECAST_PACKED;
    h->periods = 0;
    h->refused = 0;
    return DRY_OK;
}
