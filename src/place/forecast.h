/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_HINTS_H
#define DRYI_PLACE_HINTS_H

/*
 * A program repeats itself: what comes next, and where it should lie.
 *
 * Hints watch the requests and frees of one place. Every request is a letter (rounded size,
 * stream); when the last n letters are the n before them, frees included, n is the period.
 * One period is then packed offline (place/offline.h) around what outlives it, and each
 * request of the next periods gets an address as a hint. A hint is only a wish: the place
 * checks that the range is free, and whatever the hints say can cost memory or time, never
 * soundness. The first request that is not the expected one skips its hint; a period with
 * more than 1 in 64 skipped is drift: the plan is dropped and learnt again.
 *
 * Cost       O(1) a request and a free, without memory once the records have grown to the
 *            program's period (at most DRYI_FORECAST_PERIOD_MAX); the packing is work of its own,
 *            asked for by dryi_forecast_pack() where the caller has time.
 */

#include "place/offline.h"
#include "place/place.h"

#define DRYI_FORECAST_PERIOD_MAX 65536

struct dryi_forecast;

DRY_CHECK_RESULT enum dry_status dryi_forecast_create(const struct dry_memory *memory,
                                                      struct dryi_forecast **hints,
                                                      struct dry_error *err);
void dryi_forecast_destroy(struct dryi_forecast *hints);

#define DRYI_HINT_NONE UINT64_MAX

/*
 * A request is coming: the offset the plan wishes for it, or DRYI_HINT_NONE. `ticket` goes
 * with the block to its free. Never fails: without memory nothing is learnt.
 */
uint64_t dryi_forecast_request(struct dryi_forecast *hints, uint64_t rounded,
                               uint64_t stream, uint32_t *ticket);
/* Where it went, and whether by its hint. */
void dryi_forecast_placed(struct dryi_forecast *hints, uint32_t ticket, uint64_t offset,
                          bool by_hint);
/* The block with this ticket is freed. */
void dryi_forecast_freed(struct dryi_forecast *hints, uint32_t ticket);

/* A period is known, has no plan yet (or drifted), and this is its beginning. */
bool dryi_forecast_is_ready(const struct dryi_forecast *hints);

/* Requests of the period that is known; 0: none is. */
uint32_t dryi_forecast_get_period(const struct dryi_forecast *hints);
/* The most bytes that live at once in the period, its begin's among them; 0: none is known. */
uint64_t dryi_forecast_get_peak(const struct dryi_forecast *hints);

/* What outlives the period: ranges that are taken throughout. */
struct dryi_obstacle {
    uint64_t offset, size;
};

struct dryi_plan_info {
    uint32_t period;     /* requests */
    uint32_t streams;    /* that they are of; each has offsets of its own */
    uint64_t floor;      /* peak of live bytes in the period, without the obstacles */
    uint64_t height;     /* offsets used end here */
    uint64_t used_pages; /* pages of page_bytes that obstacles or planned blocks touch */
};

/*
 * Pack the period around the obstacles (sorted by offset, disjoint), so that it touches few
 * pages beside those the obstacles lie on. On failure there is no plan and the hints go on
 * learning.
 */
DRY_CHECK_RESULT enum dry_status dryi_forecast_pack(struct dryi_forecast *hints,
                                                    const struct dryi_obstacle *obstacles,
                                                    size_t obstacle_count,
                                                    uint64_t page_bytes,
                                                    struct dryi_plan_info *info);
/* The plan is given up; learning begins anew. */
void dryi_forecast_drop(struct dryi_forecast *hints);
/*
 * The same, and this period is not taken again for 2 x DRYI_FORECAST_PERIOD_MAX requests: it is
 * a loop inside the one that is wanted.
 */
void dryi_forecast_pass_over(struct dryi_forecast *hints);

/* Every range of the plan, in any order, for whoever wants their pages there beforehand. */
void dryi_forecast_walk(const struct dryi_forecast *hints,
                        void (*visit)(void *self, uint64_t offset, uint64_t size),
                        void *self);

#endif
