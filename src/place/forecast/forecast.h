/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_FORECAST_H
#define DRYI_PLACE_FORECAST_H

/*
 * A forecast of a program that repeats itself: what it asks for next, and where that should lie.
 *
 * A forecast watches the requests and frees of one place. Every request has a key: its rounded size
 * and its stream. If the last n keys are the n before them, frees included, n is the period, and
 * each of its requests is a step. A life is a block from its request to its free. The lives of one
 * period are then packed offline (place/offline/offline.h) around the blocks that outlive the
 * period. The result is the layout.
 *
 * While the program repeats the period, each request gets an offset of the layout as a hint. A hint
 * is only a proposal: the place checks that the range is free. A forecast can cost memory or time,
 * never soundness. A request that is not the expected one skips its hint. If more hints of a
 * period are skipped than dryi_forecast_drift() says, the layout is dropped, and learning begins
 * anew. A period that lasted long, or came again after a break, pauses instead: an evaluation
 * interrupts it. Hints go on where they stopped, or with the first step. A program that changed for
 * good is learnt anew after twice DRYI_FORECAST_PERIOD_MAX requests.
 *
 * Cost       O(1) a request and a free. They take no memory once the records have grown to the
 *            program's period (at most DRYI_FORECAST_PERIOD_MAX). The packing is work of its own, a
 *            packing job. The job is made from the forecast and taken by it, and any thread may
 *            run it.
 */

#include "place/offline/offline.h"
#include "place/place.h"

/* The longest period, in requests: the records of two such periods take 4 MiB. */
#define DRYI_FORECAST_PERIOD_MAX 65536

/*
 * A period still matches if at most 1/DRIFT_SHARE of its steps differ, plus DRIFT_LEAST for short
 * periods.
 */
#define DRYI_FORECAST_DRIFT_SHARE 64u
#define DRYI_FORECAST_DRIFT_LEAST 4u

/* Return how many of a period's `step_count` steps may differ. */
static inline uint64_t
dryi_forecast_drift(uint64_t step_count)
{
    return step_count / DRYI_FORECAST_DRIFT_SHARE + DRYI_FORECAST_DRIFT_LEAST;
}

struct dryi_forecast;

DRY_CHECK_RESULT enum dry_status dryi_forecast_create(const struct dry_memory *memory,
                                                      struct dryi_forecast **forecast,
                                                      struct dry_error *err);
void dryi_forecast_destroy(struct dryi_forecast *forecast);

#define DRYI_HINT_NONE UINT64_MAX
#define DRYI_STEP_NONE UINT32_MAX

/*
 * A hint for a request: its step of the layout's period, and an offset. Its successor is the later
 * request of the same stream that gets the whole range next. No other request gets any of the range
 * between the two.
 */
struct dryi_hint {
    uint64_t offset;    /* DRYI_HINT_NONE: none, and then no successor */
    uint32_t ticket;    /* names the request when its block is freed */
    uint32_t step;      /* DRYI_STEP_NONE: the layout does not expect it */
    uint32_t successor; /* a step; DRYI_STEP_NONE: none */
};

/*
 * Note a request of `rounded` bytes, a multiple of 512, and return its hint. The call never fails:
 * without memory nothing is learnt.
 */
struct dryi_hint dryi_forecast_request(struct dryi_forecast *forecast, uint64_t rounded,
                                       uint64_t stream);
/* Note that the last request could not go where its hint said. */
void dryi_forecast_refused(struct dryi_forecast *forecast);
/*
 * Note that the block with this ticket is freed, in this epoch of its stream. Epoch 0: no other
 * stream will ever have its memory.
 */
void dryi_forecast_freed(struct dryi_forecast *forecast, uint32_t ticket, uint64_t epoch);

#define DRYI_HINT_ANYBODY UINT32_MAX

/*
 * Note that memory which stream `from` freed up to this epoch may go to stream `to` from now on;
 * DRYI_HINT_ANYBODY: to every stream. The program itself brought this about: an event of its own is
 * complete, or it made one stream wait for the other.
 */
void dryi_forecast_passed(struct dryi_forecast *forecast, uint32_t from, uint32_t to,
                          uint64_t epoch);

/*
 * Does a period without a layout begin now, and is it to be packed? A period shorter than an eighth
 * of all requests so far must have lasted for 1024 requests, too.
 */
bool dryi_forecast_is_ready(const struct dryi_forecast *forecast);

/* Does a period begin now, the last of which took all the hints that the layout has? */
bool dryi_forecast_is_settled(const struct dryi_forecast *forecast);

/* Is there a layout? */
bool dryi_forecast_is_packed(const struct dryi_forecast *forecast);

/* Does the present layout have this step, of this size and stream, at this offset? */
bool dryi_forecast_is_step_at(const struct dryi_forecast *forecast, uint32_t step,
                              uint64_t offset, uint64_t size, uint64_t stream);

/*
 * Is the block with this ticket freed before its step comes again, if the program goes on as
 * before? The layout has another place for that step.
 */
bool dryi_forecast_is_passing(const struct dryi_forecast *forecast, uint32_t ticket);

/* Return the number of requests in the period; 0: no period is known. */
uint32_t dryi_forecast_get_period(const struct dryi_forecast *forecast);

/* A range with blocks in use that are not packed: nothing is packed over it. */
struct dryi_obstacle {
    uint64_t offset, size;
    bool
        is_passing; /* the blocks go within a period, and nothing of the layout comes there */
};

struct dryi_packing_info {
    uint32_t period;  /* requests */
    uint32_t streams; /* that these requests are of */
    uint32_t handed;  /* lives whose range another stream gets next */
    uint64_t floor;   /* peak of live bytes in the period, without the obstacles */
    uint64_t height;  /* the highest packed block ends here */
    /* Pages of page_bytes that packed blocks touch, or obstacles that are not passing. */
    uint64_t used_pages;
};

/* The surroundings that a period is packed into. */
struct dryi_packing_request {
    const struct dryi_obstacle *obstacles; /* sorted by offset, disjoint */
    size_t obstacle_count;
    uint64_t page_bytes;
    bool can_wait; /* a stream can be made to wait for what another has freed */
};

/*
 * A packing job: the packing of a period, apart from the forecast and with a copy of all it needs.
 * The job is made from the forecast and taken by it. Any thread may run it in between.
 */
struct dryi_packing_job;

/*
 * Make a job that packs the present period. MEMORY. ARGUMENT: no period is known, or the obstacles
 * are not in order. UNSUPPORTED: the period has more than DRYI_PACKING_STREAMS_MAX streams. The job
 * takes its memory from the same hooks as the forecast.
 */
/* A packing has tables of all pairs of streams. */
#define DRYI_PACKING_STREAMS_MAX 16
DRY_CHECK_RESULT enum dry_status dryi_packing_job_create(
    const struct dryi_forecast *forecast, const struct dryi_packing_request *request,
    struct dryi_packing_job **job);
/*
 * Pack the period around the obstacles, so that it touches few pages besides those that the
 * obstacles lie on. The call touches the job alone, and takes scratch memory from `memory`.
 * dryi_packing_job_take() tells how it went.
 */
void dryi_packing_job_run(struct dryi_packing_job *job, const struct dry_memory *memory);
/* Make a run under way end soon and fail. Any thread may call this. */
void dryi_packing_job_cancel(struct dryi_packing_job *job);
/* Free a job. NULL is accepted. */
void dryi_packing_job_destroy(struct dryi_packing_job *job);

/*
 * Make the packing the layout. CANCELLED: the run failed, was cancelled or never was. ARGUMENT: the
 * forecast has another period by now. A failure leaves the forecast as it was.
 */
DRY_CHECK_RESULT enum dry_status dryi_packing_job_take(struct dryi_packing_job *job,
                                                       struct dryi_forecast *forecast,
                                                       struct dryi_packing_info *info);
/* Does the job pack the period that the forecast follows? */
bool dryi_packing_job_is_of(const struct dryi_packing_job *job,
                            const struct dryi_forecast *forecast);
/*
 * Count the blocks that were packed into these ranges, or partly into them; passing ones do not
 * count. The ranges are sorted and disjoint.
 */
size_t dryi_packing_job_count_met(const struct dryi_packing_job *job,
                                  const struct dryi_obstacle *ranges, size_t count);

/* Give up the period and its layout. Learning begins anew. */
void dryi_forecast_drop(struct dryi_forecast *forecast);
/*
 * Do the same, and do not take this period again for 2 x DRYI_FORECAST_PERIOD_MAX requests: it is a
 * loop inside the period that is wanted.
 */
void dryi_forecast_pass_over(struct dryi_forecast *forecast);

/*
 * Visit every range of the layout, in any order, so that the caller can bring the pages beforehand.
 */
void dryi_forecast_walk(const struct dryi_forecast *forecast,
                        void (*visit)(void *self, uint64_t offset, uint64_t size),
                        void *self);

#endif
