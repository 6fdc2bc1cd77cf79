/* SPDX-License-Identifier: Apache-2.0 */

/*
 * How a layout comes about.
 *
 * At the begin of a period that has no layout a job is made: a copy of the period and of what
 * lies in the segment. The packing of it touches nothing of ours. Where nobody takes jobs it is
 * done at once; else somebody does it elsewhere, and it is back at the begin of some later
 * period. By then other things may lie in the segment: a packing that meets more of them than a
 * layout can do without is thrown away, and another job is made.
 *
 * Only with the packing at hand streams are waited for and pages move.
 */

#include "base/assert.h"
#include "base/memory.h"
#include "place/paged/paged_inside.h"

/* --- what it is made around --------------------------------------------------------------- */

/* Of the default pool's large ones, that with the most room for a layout; NONE. */
static uint32_t
choose_segment(const struct dryi_paged *p)
{
    uint32_t best = NONE;
    uint64_t best_room = 0;
    for (uint32_t i = p->arenas[0].segments; i != NONE; i = p->segments[i].next) {
        uint64_t room = 0;
        for (uint32_t at = p->segments[i].first_block; at != NONE;
             at = p->blocks[at].next) {
            if (p->blocks[at].state == BLOCK_FREE || p->blocks[at].state == BLOCK_HOLE)
                room += p->blocks[at].size;
        }
        if (room > best_room) {
            best = i;
            best_room = room;
        }
    }
    return best;
}

static bool
is_taken(const struct block *b)
{
    return b->state != BLOCK_FREE && b->state != BLOCK_HOLE;
}

/* Runs of taken blocks into `obstacles`, if not NULL; how many there are. */
static size_t
list_obstacles(const struct dryi_paged *p, const struct segment *segment,
               struct dryi_obstacle *obstacles)
{
    size_t count = 0;
    uint64_t end = 0; /* of the last run */
    for (uint32_t at = segment->first_block; at != NONE; at = p->blocks[at].next) {
        const struct block *b = &p->blocks[at];
        if (!is_taken(b))
            continue;
        bool is_more = count > 0 && end == b->addr;
        count += !is_more;
        end = block_end(b);
        if (!obstacles)
            continue;
        struct dryi_obstacle *o = &obstacles[count - 1];
        if (!is_more)
            *o = (struct dryi_obstacle){.offset = b->addr - segment->addr};
        o->size += b->size;
    }
    return count;
}

/* Requests of a period, and runs of what is alive: more would take too long to pack. */
#define PACKED_MAX 8192
#define REST_FIRST 1024

/* Layouts wait for streams and move pages: one that was of no use makes the next one wait. */
static void
rest(struct dryi_paged *p)
{
    uint64_t taken = p->counters.hints_taken - p->layout_taken;
    bool is_useful = p->counters.plans_made > 0 && taken > 2 * (uint64_t)p->layout.period;
    p->layout_rest = is_useful || p->layout_rest == 0 ? REST_FIRST : 2 * p->layout_rest;
    p->layout_earliest = p->requests + p->layout_rest;
    p->layout_taken = p->counters.hints_taken;
}

/* --- the job ------------------------------------------------------------------------------ */

/* The ranges, one more than there are; *count. NULL: no memory. */
static struct dryi_obstacle *
make_obstacles(struct dryi_paged *p, const struct segment *segment, size_t *count)
{
    *count = list_obstacles(p, segment, NULL);
    struct dryi_obstacle *obstacles =
        dryi_memory_zalloc(&p->memory, *count + 1, sizeof *obstacles);
    if (obstacles)
        list_obstacles(p, segment, obstacles);
    return obstacles;
}

static void
drop_obstacles(struct dryi_paged *p, struct dryi_obstacle *obstacles, size_t count)
{
    dryi_memory_free(&p->memory, obstacles, count + 1, sizeof *obstacles);
}

static enum dry_status
create_job(struct dryi_paged *p, uint32_t segment)
{
    size_t count;
    struct dryi_obstacle *obstacles = make_obstacles(p, &p->segments[segment], &count);
    enum dry_status status = obstacles ? DRY_OK : DRY_ERR_MEMORY;
    if (dryi_forecast_get_period(p->forecast) + count > PACKED_MAX)
        status = DRY_ERR_UNSUPPORTED;
    struct dryi_packing_request wish = {obstacles, count, p->page_bytes,
                                        p->conf.reuse_waiting};
    if (status == DRY_OK)
        status = dryi_packing_job_create(p->forecast, &wish, &p->packing.job);
    drop_obstacles(p, obstacles, count);
    if (status != DRY_OK)
        return status;
    p->packing.state = JOB_WAITS;
    p->packing.segment = segment;
    p->packing.ordinal = p->segments[segment].ordinal;
    return DRY_OK;
}

static void
end_job(struct dryi_paged *p)
{
    dryi_packing_job_destroy(p->packing.job);
    p->packing.job = NULL;
    p->packing.state = JOB_NONE;
}

void
dryi_paged_packing_finish(struct dryi_paged *p)
{
    if (p->packing.state != JOB_OUT)
        end_job(p);
}

struct dryi_packing_job *
dryi_paged_take_job(void *self)
{
    struct dryi_paged *p = self;
    if (p->packing.state != JOB_WAITS)
        return NULL;
    p->packing.state = JOB_OUT;
    return p->packing.job;
}

void
dryi_paged_return_job(void *self, struct dryi_packing_job *job)
{
    struct dryi_paged *p = self;
    DRYI_ASSERT(p->packing.state == JOB_OUT && p->packing.job == job);
    (void)job;
    p->packing.state = JOB_IS_BACK;
}

/* --- the layout ----------------------------------------------------------------------------- */

#define MET_SHARE 64 /* of a period's blocks may lie where something else does by now */
#define MET_SPARE 4

/* What the packing was made for is there still, and nearly nothing is in its way. */
static bool
is_valid(struct dryi_paged *p)
{
    const struct packing *packing = &p->packing;
    const struct segment *segment = &p->segments[packing->segment];
    if (!segment->live || segment->ordinal != packing->ordinal)
        return false;
    size_t count;
    struct dryi_obstacle *obstacles = make_obstacles(p, segment, &count);
    if (!obstacles)
        return false;
    size_t met = dryi_packing_job_count_met(packing->job, obstacles, count);
    drop_obstacles(p, obstacles, count);
    return met <= dryi_forecast_get_period(p->forecast) / MET_SHARE + MET_SPARE;
}

/* Whatever fails on the way: there is no layout then, and the rest is as sound as before. */
static bool
adopt(struct dryi_paged *p)
{
    uint32_t segment = p->packing.segment;
    struct dryi_packing_info info;
    if (!dryi_paged_layout_begin(p, segment) ||
        dryi_packing_job_take(p->packing.job, p->forecast, &info) != DRY_OK ||
        info.height > p->segments[segment].size)
        return false;
    rest(p);
    p->layout.period = info.period;
    p->layout.streams = info.streams;
    p->layout.handed = info.handed;
    return dryi_paged_parking_begin(p, info.period) && dryi_paged_layout_bring_pages(p);
}

/* False: there will be none for this period. */
static bool
request_job(struct dryi_paged *p)
{
    uint32_t segment = choose_segment(p);
    if (segment == NONE || create_job(p, segment) != DRY_OK)
        return false;
    if (p->wants_job.call) {
        p->wants_job.call(p->wants_job.self);
        return true;
    }
    dryi_packing_job_run(p->packing.job, &p->memory);
    p->packing.state = JOB_IS_BACK;
    return true;
}

void
dryi_paged_layout_make(struct dryi_paged *p)
{
    struct packing *packing = &p->packing;
    if (p->requests < p->layout_earliest || packing->state == JOB_OUT)
        return;               /* it is known still when it begins anew */
    dryi_paged_unpark_all(p); /* what is taken is packed around */
    if (packing->state != JOB_NONE && !dryi_packing_job_is_of(packing->job, p->forecast))
        end_job(p);
    if (packing->state == JOB_IS_BACK && !is_valid(p)) {
        end_job(p);
        rest(p);
        return;
    }
    bool is_made = packing->state != JOB_NONE || request_job(p);
    if (is_made && packing->state == JOB_WAITS)
        return;
    is_made = is_made && adopt(p);
    end_job(p);
    if (is_made)
        p->counters.plans_made++;
    else
        dryi_forecast_pass_over(p->forecast);
}
