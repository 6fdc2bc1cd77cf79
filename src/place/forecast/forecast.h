/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_FORECAST_H
#define DRYI_PLACE_FORECAST_H

/*
 * A forecast of a program that repeats itself: its next requests, and an address range for each.
 *
 * A forecast observes the requests and frees of one place. A request's key is its rounded size and
 * its stream. If the last n keys equal the n keys before, and so do the frees, n is the period;
 * each of its requests is a step. A life is a block from its request to its free. The lives of one
 * period are packed offline (place/offline/offline.h) around the blocks that outlive the period.
 * The result is the layout.
 *
 * While the program repeats the period, each request gets an offset of the layout as a hint. The
 * place checks that the range is free, so a wrong hint costs time or memory but never correctness.
 * An unexpected request skips its hint. If a period skips more hints than dryi_forecast_drift()
 * allows, the layout is dropped and learning restarts. A period that lasted long, or recurred after
 * a break, is paused instead, because an evaluation may interrupt the training. Hints resume at the
 * interrupted step, or at the first step. If the period does not resume within 2 *
 * DRYI_FORECAST_PERIOD_MAX requests, learning restarts.
 *
 * Cost       O(1) per request and per free. No allocation once the records have grown to the
 *            period's length (at most DRYI_FORECAST_PERIOD_MAX). Packing is a separate job: created
 *            from the forecast, run in any thread, and handed back to the forecast.
 */

#include "place/offline/offline.h"
#include "place/place.h"

/* The longest period, in requests. The records of two such periods take 4 MiB. */
#define DRYI_FORECAST_PERIOD_MAX 65536

/*
 * A period still matches if at most 1/DRIFT_SHARE of its steps differ, plus DRIFT_LEAST for short
 * periods.
 */
#define DRYI_FORECAST_DRIFT_SHARE 64u
#define DRYI_FORECAST_DRIFT_LEAST 4u

/* Return how many steps of a period of `step_count` steps may differ. */
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
 * request of the same stream that gets exactly this range next. Between the two, no other request
 * gets any of the range.
 */
struct dryi_hint {
    uint64_t offset;    /* bytes; DRYI_HINT_NONE: none, and no successor */
    uint32_t ticket;    /* identifies the request when its block is freed */
    uint32_t step;      /* DRYI_STEP_NONE: the layout has no such step */
    uint32_t successor; /* a step, or DRYI_STEP_NONE */
};

/*
 * Record a request of `rounded` bytes, a multiple of 512, and return its hint. Never fails: if
 * memory runs out, the request is not recorded.
 */
struct dryi_hint dryi_forecast_request(struct dryi_forecast *forecast, uint64_t rounded,
                                       uint64_t stream);
/* Note that the place could not use the hint of the last request. */
void dryi_forecast_refused(struct dryi_forecast *forecast);
/*
 * Note that the block with this ticket is freed, in this epoch of its stream. Epoch 0: its memory
 * never passes to another stream.
 */
void dryi_forecast_freed(struct dryi_forecast *forecast, uint32_t ticket, uint64_t epoch);

#define DRYI_HINT_ANYBODY UINT32_MAX

/*
 * Note that memory freed by stream `from` up to this epoch may now be used by stream `to`;
 * DRYI_HINT_ANYBODY: by all streams. The program itself caused this, by a completed event or by
 * making `to` wait for `from`.
 */
void dryi_forecast_passed(struct dryi_forecast *forecast, uint32_t from, uint32_t to,
                          uint64_t epoch);

/*
 * Does a period without a layout begin now, and is it worth packing? A period shorter than 1/8 of
 * all requests so far must first last 1024 requests.
 */
bool dryi_forecast_is_ready(const struct dryi_forecast *forecast);

/* Does a period begin now, after one whose hints were all taken? */
bool dryi_forecast_is_settled(const struct dryi_forecast *forecast);

/* Is there a layout, in use or paused? */
bool dryi_forecast_is_packed(const struct dryi_forecast *forecast);

/* Does the current layout have this step at this offset, with this size and stream? */
bool dryi_forecast_is_step_at(const struct dryi_forecast *forecast, uint32_t step,
                              uint64_t offset, uint64_t size, uint64_t stream);

/*
 * Will the block with this ticket be freed before its step recurs, if the period continues? Such a
 * block is not in the way of a layout for long.
 */
bool dryi_forecast_is_passing(const struct dryi_forecast *forecast, uint32_t ticket);

/* Return the number of requests in the period; 0: no period is known. */
uint32_t dryi_forecast_get_period(const struct dryi_forecast *forecast);

/* A range of blocks in use that the packing does not place: nothing is packed over it. */
struct dryi_obstacle {
    uint64_t offset, size;
    /* The blocks are freed within a period, so the packing may use the range. */
    bool is_passing;
};

struct dryi_packing_info {
    uint32_t period;  /* requests */
    uint32_t streams; /* streams with packed lives */
    uint32_t handed;  /* lives whose range passes to another stream */
    uint64_t floor;   /* bytes; peak of live bytes in the period, without the obstacles */
    uint64_t height;  /* bytes; highest end of a packed block */
    /* Pages of page_bytes that contain packed blocks, or obstacles that are not passing. */
    uint64_t used_pages;
};

/* The obstacles and rules for packing a period. */
struct dryi_packing_request {
    const struct dryi_obstacle *obstacles; /* sorted by offset, disjoint */
    size_t obstacle_count;
    uint64_t page_bytes;
    bool can_wait; /* Streams can be made to wait for another's frees */
};

/*
 * A packing job: a copy of all that is needed to pack one period. Created from a forecast and taken
 * by it; any thread may run the job in between.
 */
struct dryi_packing_job;

/*
 * Create a job that packs the current period. ARGUMENT: no period is known, or the obstacles are
 * not sorted. UNSUPPORTED: more than DRYI_PACKING_STREAMS_MAX streams. MEMORY. The job uses the
 * memory hooks of the forecast.
 */
/* Limit on streams, because a packing has tables of all pairs of streams. */
#define DRYI_PACKING_STREAMS_MAX 16
DRY_CHECK_RESULT enum dry_status dryi_packing_job_create(
    const struct dryi_forecast *forecast, const struct dryi_packing_request *request,
    struct dryi_packing_job **job);
/*
 * Pack the period around the obstacles, with few pages beyond those of the obstacles. Accesses the
 * job only; scratch memory comes from `memory`. dryi_packing_job_take() reports whether packing
 * succeeded.
 */
void dryi_packing_job_run(struct dryi_packing_job *job, const struct dry_memory *memory);
/* Make a running job end soon, without a result. Any thread may call this. */
void dryi_packing_job_cancel(struct dryi_packing_job *job);
/* Destroy a job. NULL is accepted. Requires that no thread runs the job. */
void dryi_packing_job_destroy(struct dryi_packing_job *job);

/*
 * Make the packing the forecast's layout. CANCELLED: the job failed, was cancelled or did not run.
 * ARGUMENT: the forecast follows another period now. A failure leaves the forecast unchanged.
 */
DRY_CHECK_RESULT enum dry_status dryi_packing_job_take(struct dryi_packing_job *job,
                                                       struct dryi_forecast *forecast,
                                                       struct dryi_packing_info *info);
/* Does the job pack the period that the forecast follows now? */
bool dryi_packing_job_is_of(const struct dryi_packing_job *job,
                            const struct dryi_forecast *forecast);
/*
 * Count the packed blocks that overlap these ranges, other than passing ranges. The ranges are
 * sorted and disjoint.
 */
size_t dryi_packing_job_count_met(const struct dryi_packing_job *job,
                                  const struct dryi_obstacle *ranges, size_t count);

/* Drop the period and its layout. Learning restarts. */
void dryi_forecast_drop(struct dryi_forecast *forecast);
/*
 * Do as dryi_forecast_drop(), and reject this period for 2 * DRYI_FORECAST_PERIOD_MAX requests, so
 * that a longer one that contains it can be found.
 */
void dryi_forecast_pass_over(struct dryi_forecast *forecast);

/* Visit all ranges of the layout, in any order, so that the caller can map their pages. */
void dryi_forecast_walk(const struct dryi_forecast *forecast,
                        void (*visit)(void *self, uint64_t offset, uint64_t size),
                        void *self);

#endif
