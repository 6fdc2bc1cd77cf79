/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_FORECAST_INSIDE_H
#define DRYI_PLACE_FORECAST_INSIDE_H

/*
 * Data structures shared by the parts of the forecast.
 *
 * Time is the number of requests so far. Each request has a record in a ring buffer. While no
 * period is known, the ring grows to the last 2 * DRYI_FORECAST_PERIOD_MAX requests. A request's
 * ticket is the low 32 bits of its number.
 */

#include <stdatomic.h>

#include "base/assert.h"
#include "base/inline.h"
#include "place/forecast/forecast.h"

enum forecast_state {
    FORECAST_LEARNING, /* no period is known */
    FORECAST_KNOWN,    /* a period is followed, without a layout */
    FORECAST_PACKED,   /* a period is followed, with a layout */
    FORECAST_PAUSED, /* the program has left a period with a layout, and may resume it */
};

struct forecast_record {
    uint64_t key;    /* hash of size and stream */
    uint32_t grains; /* size in units of 512 bytes, saturated */
    /* Low 32 bits of the stream's epoch at the free; 0: alive or unknown. */
    uint32_t epoch;
    uint32_t gap; /* number of requests until the free; 0: alive */
    uint32_t stream;
};
#define FORECAST_GRAIN UINT64_C(512)

/* Memory freed by stream `from` up to `epoch` was usable by stream `to` before request `time`. */
struct forecast_pass {
    uint64_t time, epoch;
    uint32_t from, to;
};

/* A step: one request of the period. */
struct forecast_step {
    uint64_t key;
    uint64_t offset; /* bytes; DRYI_HINT_NONE: no hint */
    uint64_t size;
    uint32_t end; /* free, in requests from the period's begin; 0: outlives the period */
    uint32_t stream;
    uint32_t successor; /* a step, or DRYI_STEP_NONE */
};

/*
 * A period that did not last, identified by the sum of its keys. It is rejected before request
 * `until`. If it recurs later, no better one was found: it is cleared, and accepted permanently.
 */
struct forecast_misled {
    uint64_t sum, until;
    bool is_cleared;
};
/* Number of rejected periods remembered. Programs have few loops that resemble their period. */
#define FORECAST_MISLED_COUNT 8u

#define FORECAST_WORD 16u /* keys per hashed word */
/* Words, of which only the one with the least mark is looked up. */
#define FORECAST_WINDOW 16u

struct dryi_forecast {
    struct dry_memory memory;
    enum forecast_state state;
    uint64_t now;   /* requests so far */
    uint64_t sleep; /* requests to ignore before learning resumes */
    uint64_t nap;   /* length of the last sleep, in requests; doubles */

    struct forecast_record *ring;
    size_t ring_count; /* records; a power of two, or 0 */
    uint64_t oldest;   /* number of the oldest record */

    /* Learning: where the last keys occurred before. */
    uint64_t rolling; /* hash of the last FORECAST_WORD keys */
    uint64_t *seen;   /* hash table by mark: request number + 1; as long as the ring */
    uint64_t rolled;  /* number of the first request in the hash */
    /* Marks of the words that end in the last requests. */
    uint64_t marks[FORECAST_WINDOW];
    uint64_t first_mark;      /* number of the first request with a mark */
    uint64_t least, least_at; /* the mark last looked up, and its request's number */
    /* Requests hashed so far; not advanced while a period is followed. */
    uint64_t seen_to;
    uint64_t began;    /* number of the request at which learning began */
    uint64_t distance; /* candidate for the period, in requests; 0: none */
    /* Length of the current match: requests equal to those `distance` before. */
    uint64_t run;
    bool is_run_whole;   /* the match cannot be extended further back */
    uint64_t next_check; /* length of `run` at which the candidate is examined next */
    struct forecast_misled misled[FORECAST_MISLED_COUNT];
    uint32_t misled_next; /* entry of `misled` to overwrite next */

    /* Following a period. */
    struct forecast_step *steps;
    uint32_t step_count, step_capacity;
    uint64_t period_number;  /* periods found so far; identifies the current one */
    uint32_t position;       /* index of the next step */
    uint32_t skipped;        /* unexpected requests in this period */
    uint32_t skipped_before; /* unexpected requests in the previous period */
    uint64_t followed;       /* requests since the period was found */
    uint64_t proof;          /* requests to follow the period before it is packed */
    bool is_cleared;         /* recurred after a rejection: no better period was found */
    uint32_t left;           /* step at which the program last left the period */
    uint32_t again;          /* consecutive expected requests, counted up to CONTEXT */
    bool was_paused;         /* a pause occurred in this period */
    bool is_calm;            /* a whole period passed since the last pause */
    uint64_t interrupted;    /* number of the request at which is_calm last ended */
    uint32_t refused;        /* refused hints in this period */
    uint64_t periods;        /* periods since the layout was made */
    bool is_settled;         /* the last period skipped and refused no hint */
    bool is_refused;         /* the last period refused too many hints */
    uint64_t patience;       /* periods before a refused layout is replaced */

    /* Ring of the last passes of memory between streams, in order of time. */
    struct forecast_pass *passes;
    size_t pass_capacity;
    uint64_t pass_count; /* passes noted so far */
};

#define FORECAST_PASSES_MAX (UINT64_C(1) << 16) /* entries, 1.5 MiB in total */

static inline struct forecast_record *
forecast_record_at(const struct dryi_forecast *h, uint64_t number)
{
    DRYI_ASSERT_SLOW(number >= h->oldest && number - h->oldest < h->ring_count);
    return &h->ring[number & (h->ring_count - 1)];
}

/* Is the step's block freed before the step recurs? Only such steps are packed. */
static inline bool
forecast_is_packed_step(const struct dryi_forecast *h, uint32_t i)
{
    DRYI_ASSERT_SLOW(i < h->step_count && h->steps[i].end <= h->step_count + i);
    return h->steps[i].size > 0 && h->steps[i].end > 0;
}

/* --- forecast_packing.c, forecast_streams.c, forecast_next.c --------------------------------- */

/* A packing within 1/256 of the floor ends the search: rounding to pages costs as much. */
#define FORECAST_SPARE_SHIFT 8u

/* A life to be packed. */
struct dryi_packing_life {
    uint64_t size;
    uint32_t step;
    /* Requests from the period's begin; end may be in the next period. */
    uint32_t begin, end;
    uint32_t stream;    /* stream index in the job */
    bool is_handed;     /* the range passes to another stream next */
    uint32_t successor; /* a step, or DRYI_STEP_NONE */
};

struct dryi_packing_job {
    struct dry_memory memory;
    uint64_t period_number; /* period number of the forecast when the job was created */
    uint32_t period, stream_count;
    uint64_t page_bytes;
    size_t count, obstacle_count;
    size_t capacity; /* elements of the arrays: lives plus obstacles */
    struct dryi_packing_life *lives;
    struct dryi_obstacle *obstacles; /* widened to multiples of FORECAST_GRAIN */
    /*
     * Per life and stream: first request at which the stream may use the life's range, as observed.
     */
    uint32_t *usable; /* UINT32_MAX: not within two periods. NULL: the job has no lives */
    bool can_wait;
    /* Requests between a free and another stream's wait for it; used with several streams. */
    uint32_t distance;
    uint32_t handed; /* lives whose range passes to another stream */
    uint64_t taken;  /* bytes of obstacles that are not passing */
    uint64_t *piece, *fill;
    uint64_t *offsets; /* `piece` or `fill`, whichever is better; NULL: not packed */
    uint64_t floor, pages;
    atomic_bool is_cancelled;
};

static inline bool
dryi_packing_job_is_cancelled(const struct dryi_packing_job *job)
{
    return atomic_load_explicit(&job->is_cancelled, memory_order_relaxed);
}

/* Return the size of life k, or of an obstacle: obstacles are numbered after the lives. */
static inline uint64_t
packing_size(const struct dryi_packing_job *job, size_t k)
{
    return k < job->count ? job->lives[k].size : job->obstacles[k - job->count].size;
}

/* Fill job->usable from the passes seen in the last two periods. */
DRY_CHECK_RESULT enum dry_status dryi_packing_find_usable(const struct dryi_forecast *h,
                                                          const uint32_t *streams,
                                                          struct dryi_packing_job *job);
/*
 * Pack the lives on the circle of time: in one piece (`piece`) and, if there are obstacles, around
 * them (`fill`). Only a packing lower than *height replaces `piece` (bytes; UINT64_MAX: none yet).
 * If *height is at most `good_height`, the packing must be lower by 1/32.
 */
DRY_CHECK_RESULT enum dry_status dryi_packing_pack_circle(struct dryi_packing_job *job,
                                                          const struct dry_memory *memory,
                                                          uint64_t good_height,
                                                          uint64_t *height);
/* Must these two lives of a job with `usable` share no byte? */
bool dryi_packing_is_conflict(const struct dryi_packing_job *job, uint32_t a, uint32_t b);
/*
 * Find the lives whose range passes to another stream, and those with a successor, from
 * job->offsets. First moves some lives so that more have a successor; the moves use no additional
 * byte.
 */
DRY_CHECK_RESULT enum dry_status dryi_packing_find_next(struct dryi_packing_job *job,
                                                        const struct dry_memory *memory);

/* Learn from the request just recorded. The state may become KNOWN. (forecast_period.c) */
void dryi_forecast_learn(struct dryi_forecast *h);
/*
 * Make space in a full ring, or create the ring. A ring that cannot grow drops its oldest record.
 * False: out of memory for the first records.
 */
DRYI_NOINLINE bool dryi_forecast_grow(struct dryi_forecast *h);

/*
 * Make space for one more record. While a period is followed, a full ring drops its oldest record,
 * because the ring already covers the period.
 */
static inline bool
dryi_forecast_make_room(struct dryi_forecast *h)
{
    DRYI_ASSERT_SLOW(h->oldest <= h->now && h->now - h->oldest <= h->ring_count);
    if (h->now - h->oldest < h->ring_count)
        return true;
    if (h->state == FORECAST_LEARNING)
        return dryi_forecast_grow(h);
    h->oldest++;
    return true;
}
/*
 * Reject the current period before request `until`, because it did not last or is not wanted.
 * is_final: even if it was cleared.
 */
void dryi_forecast_note_misled(struct dryi_forecast *h, uint64_t until, bool is_final);
/* Restart learning. The records are kept. */
void dryi_forecast_begin_learning(struct dryi_forecast *h);

#endif
