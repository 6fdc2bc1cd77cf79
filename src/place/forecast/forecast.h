/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_FORECAST_H
#define DRYI_PLACE_FORECAST_H

/*
 * A program repeats itself: what comes next, and where it should lie.
 *
 * Forecasts watch the requests and frees of one place. Every request is a key (rounded size,
 * stream); when the last n keys are the n before them, frees included, n is the period.
 * One period is then packed offline (place/offline/offline.h) around what outlives it, and each
 * request of the next periods gets an address as a hint. A hint is only a wish: the place
 * checks that the range is free, and whatever the forecast say can cost memory or time, never
 * soundness. The first request that is not the expected one skips its hint; a period with
 * more than 1 in 64 skipped is drift: the layout is dropped and learnt again.
 *
 * Cost       O(1) a request and a free, without memory once the records have grown to the
 *            program's period (at most DRYI_FORECAST_PERIOD_MAX); the packing is work of its own,
 *            a job that is made and taken with the forecast at hand, and done anywhere.
 */

#include "place/offline/offline.h"
#include "place/place.h"

#define DRYI_FORECAST_PERIOD_MAX 65536

struct dryi_forecast;

DRY_CHECK_RESULT enum dry_status dryi_forecast_create(const struct dry_memory *memory,
                                                      struct dryi_forecast **forecast,
                                                      struct dry_error *err);
void dryi_forecast_destroy(struct dryi_forecast *forecast);

#define DRYI_HINT_NONE UINT64_MAX
#define DRYI_STEP_NONE UINT32_MAX

/*
 * A wish for a request: its step of the layout's period, and an offset. Its successor is the later request
 * of its stream that gets the place whole, if nobody gets any of it before.
 */
struct dryi_hint {
    uint64_t offset; /* DRYI_HINT_NONE: nothing is wished; then there is no successor */
    uint32_t ticket; /* goes with the block to its free */
    uint32_t step;   /* DRYI_STEP_NONE: it is not what the layout expects */
    uint32_t successor; /* a step; DRYI_STEP_NONE: there is none */
};

/* A request of a multiple of 512 bytes. Never fails: without memory nothing is learnt. */
struct dryi_hint dryi_forecast_request(struct dryi_forecast *forecast, uint64_t rounded,
                                       uint64_t stream);
/* The last request could not go where its hint wished. */
void dryi_forecast_refused(struct dryi_forecast *forecast);
/*
 * Note that the block with this ticket is freed, in this epoch of its stream; 0: nobody else will
 * ever have its memory.
 */
void dryi_forecast_freed(struct dryi_forecast *forecast, uint32_t ticket, uint64_t epoch);

#define DRYI_HINT_ANYBODY UINT32_MAX

/*
 * Note that memory which stream `from` freed up to this epoch may go to stream `to` from now on.
 * The program itself did it: an event of its own passed, or it made one wait for the other.
 */
void dryi_forecast_passed(struct dryi_forecast *forecast, uint32_t from, uint32_t to,
                          uint64_t epoch);

/*
 * A period is known, has no layout yet (or drifted), and this is its beginning. One of less than
 * an eighth of all requests so far has lasted for 1024 of them, too.
 */
bool dryi_forecast_is_ready(const struct dryi_forecast *forecast);

/* Is there a layout? */
bool dryi_forecast_is_packed(const struct dryi_forecast *forecast);

/* Does the layout that there is now have this step of this stream there, and of this size? */
bool dryi_forecast_is_step_at(const struct dryi_forecast *forecast, uint32_t step,
                              uint64_t offset, uint64_t size, uint64_t stream);

/* Requests of the period that is known; 0: none is. */
uint32_t dryi_forecast_get_period(const struct dryi_forecast *forecast);

/* A range that outlives the period: it is taken throughout. */
struct dryi_obstacle {
    uint64_t offset, size;
};

struct dryi_packing_info {
    uint32_t period;     /* requests */
    uint32_t streams;    /* that they are of */
    uint32_t handed;     /* places that go from one stream to another */
    uint64_t floor;      /* peak of live bytes in the period, without the obstacles */
    uint64_t height;     /* offsets used end here */
    uint64_t used_pages; /* pages of page_bytes that obstacles or packed blocks touch */
};

/* The surroundings that a layout is made for. */
struct dryi_packing_request {
    const struct dryi_obstacle *obstacles; /* sorted by offset, disjoint */
    size_t obstacle_count;
    uint64_t page_bytes;
    bool can_wait; /* a stream can be made to wait for what another has freed */
};

/*
 * A packing apart from the forecast, with a copy of all it needs: made and taken with the forecast
 * at hand, done anywhere.
 */
struct dryi_packing_job;

/*
 * MEMORY; ARGUMENT: no period is known, or the obstacles are not in order; UNSUPPORTED: it is
 * of more than DRYI_PLAN_STREAMS_MAX streams. The job takes its memory where the forecast do.
 */
#define DRYI_PACKING_STREAMS_MAX 16
DRY_CHECK_RESULT enum dry_status dryi_packing_job_create(
    const struct dryi_forecast *forecast, const struct dryi_packing_request *wish,
    struct dryi_packing_job **job);
/*
 * Pack the period around the obstacles, so that it touches few pages beside those the
 * obstacles lie on. Touches the job alone, and takes scratch memory from `memory`. How it went
 * is told by dryi_packing_job_take().
 */
void dryi_packing_job_run(struct dryi_packing_job *job, const struct dry_memory *memory);
/* Make a run under way end soon, and fail; any thread may. */
void dryi_packing_job_cancel(struct dryi_packing_job *job);
/* NULL is accepted. */
void dryi_packing_job_destroy(struct dryi_packing_job *job);

/*
 * The packing becomes the layout. DRY_ERR_CANCELLED: the run failed, was cancelled or never was;
 * ARGUMENT: the period is another one by now. Then there is no layout.
 */
DRY_CHECK_RESULT enum dry_status dryi_packing_job_take(struct dryi_packing_job *job,
                                                       struct dryi_forecast *forecast,
                                                       struct dryi_packing_info *info);
/* Is the period it packs the one that the forecast follow? */
bool dryi_packing_job_is_of(const struct dryi_packing_job *job,
                            const struct dryi_forecast *forecast);
/* How many blocks were packed into these ranges, sorted and disjoint, or partly. */
size_t dryi_packing_job_count_met(const struct dryi_packing_job *job,
                                  const struct dryi_obstacle *ranges, size_t count);

/* All of it at once. On failure there is no layout and the forecast go on learning. */
DRY_CHECK_RESULT enum dry_status dryi_forecast_pack(
    struct dryi_forecast *forecast, const struct dryi_packing_request *wish,
    struct dryi_packing_info *info);
/* The layout is given up; learning begins anew. */
void dryi_forecast_drop(struct dryi_forecast *forecast);
/*
 * The same, and this period is not taken again for 2 x DRYI_FORECAST_PERIOD_MAX requests: it is
 * a loop inside the one that is wanted.
 */
void dryi_forecast_pass_over(struct dryi_forecast *forecast);

/* Every range of the layout, in any order, for whoever wants their pages there beforehand. */
void dryi_forecast_walk(const struct dryi_forecast *forecast,
                        void (*visit)(void *self, uint64_t offset, uint64_t size),
                        void *self);

#endif
