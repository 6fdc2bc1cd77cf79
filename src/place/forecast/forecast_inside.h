/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_FORECAST_INSIDE_H
#define DRYI_PLACE_FORECAST_INSIDE_H

/*
 * The nouns that the parts of the forecast share.
 *
 * Time is the count of requests. Every request leaves a record in a ring, which grows to the
 * last 2 x DRYI_FORECAST_PERIOD_MAX while no period is found. A record's ticket is its number.
 */

#include <stdatomic.h>

#include "base/inline.h"
#include "place/forecast/forecast.h"

enum forecast_state {
    FORECAST_LEARNING, /* no period */
    FORECAST_KNOWN,    /* a period, followed, but not packed */
    FORECAST_PACKED,   /* and packed */
};

struct forecast_record {
    uint64_t key;    /* hash of size and stream */
    uint32_t grains; /* of 512 bytes; as many as fit here */
    uint32_t
        epoch; /* of its stream, when it was freed, its low bits; 0: alive, not known */
    uint32_t gap; /* requests from it to its free; 0: alive */
    uint32_t stream;
};
#define FORECAST_GRAIN UINT64_C(512)

/* Memory that `from` freed up to an epoch could go to `to` before request `time`. */
struct forecast_pass {
    uint64_t time, epoch;
    uint32_t from, to;
};

/* One request of the period. */
struct forecast_step {
    uint64_t key;
    uint64_t offset; /* the wish; DRYI_HINT_NONE: none */
    uint64_t size;
    uint32_t end; /* freed before so many requests from the period's begin; 0: never */
    uint32_t stream;
    uint32_t successor; /* the step it goes to whole; DRYI_STEP_NONE */
};

/*
 * A period that did not last, by the sum of its keys: not taken again before request
 * `until`; when it is, nothing better was found meanwhile, and it is `cleared`.
 */
struct forecast_misled {
    uint64_t sum, until;
    bool is_cleared;
};
#define FORECAST_MISLED_COUNT 8u

#define FORECAST_WORD 16u   /* keys */
#define FORECAST_WINDOW 16u /* words, of which one is looked up */

struct dryi_forecast {
    struct dry_memory memory;
    enum forecast_state state;
    uint64_t now;   /* requests so far */
    uint64_t sleep; /* requests to let pass before learning goes on */
    uint64_t nap;   /* how long the next sleep is */

    struct forecast_record *ring;
    size_t ring_count; /* a power of two, or 0 */
    uint64_t oldest;   /* number of the first record that is there */

    /* Learning: where were the last keys seen before? */
    uint64_t rolling; /* hash of the last HINTS_WORD keys */
    uint64_t *seen;   /* by mark: 1 + number of the request; as many as records */
    uint64_t rolled;  /* since this request */
    uint64_t marks[FORECAST_WINDOW]; /* of the words that end in the last requests */
    uint64_t first_mark;             /* number of the first request that has one */
    uint64_t least, least_at;        /* the mark that was kept last, and its number */
    uint64_t seen_to;   /* before this request; not while a period is followed */
    uint64_t began;     /* learning, at this request */
    uint64_t distance;  /* candidate for the period; 0: none */
    uint64_t run;       /* so many requests were what they were a `distance` before */
    bool is_run_whole;  /* the one before them was not */
    uint64_t next_look; /* examine the candidate when the run is as long */
    struct forecast_misled misled[FORECAST_MISLED_COUNT];
    uint32_t misled_next; /* the one to be forgotten next */

    /* Following. */
    struct forecast_step *steps;
    uint32_t step_count, step_capacity;
    uint64_t period_number; /* of all found so far */
    uint32_t position;      /* the step that comes next */
    uint32_t skipped;       /* in this period */
    uint64_t followed;      /* requests since the period was found */
    uint64_t proof;         /* so many of them before it is packed */
    uint32_t refused;       /* the forecast of this period that could not be taken */
    uint64_t periods;       /* since the layout was made */
    uint64_t patience;      /* periods until a layout that is refused is made anew */

    /* How memory went from stream to stream: a ring of the last ones, in order of time. */
    struct forecast_pass *passes;
    size_t pass_capacity;
    uint64_t pass_count; /* of all that were noted */
};

#define FORECAST_PASSES_MAX (UINT64_C(1) << 16)

static inline struct forecast_record *
forecast_record_at(const struct dryi_forecast *h, uint64_t number)
{
    return &h->ring[number & (h->ring_count - 1)];
}

/* --- forecast_packing.c, forecast_streams.c, forecast_next.c --------------------------------- */

#define DRYI_PACKING_UNIT 512u

/* One packed life. */
struct dryi_packing_life {
    uint64_t size;
    uint32_t step;
    uint32_t begin,
        end;            /* requests from the period's begin; end may be in the next one */
    uint32_t stream;    /* of the job's */
    bool is_handed;     /* its place goes to another stream next */
    uint32_t successor; /* the step it goes to whole; DRYI_STEP_NONE */
};

struct dryi_packing_job {
    struct dry_memory memory;
    uint64_t period_number; /* of the forecast' periods found */
    uint32_t period, stream_count;
    uint64_t page_bytes;
    size_t count, obstacle_count;
    size_t capacity; /* lives and obstacles */
    struct dryi_packing_life *lives;
    struct dryi_obstacle *obstacles; /* widened to units */
    /* For each life and stream: the request from which on the stream was seen to may have it. */
    uint32_t *usable; /* UINT32_MAX: not in this period nor the next; one stream: NULL */
    bool can_wait;
    uint32_t distance; /* of several streams: requests from a free to who waits for it */
    uint32_t handed;   /* lives whose place goes to another stream next */
    uint64_t taken;    /* bytes of obstacles */
    uint64_t *piece, *fill;
    uint64_t *offsets; /* the better one of them; NULL: not packed */
    uint64_t floor, pages;
    atomic_bool is_cancelled;
};

static inline bool
dryi_packing_job_is_cancelled(const struct dryi_packing_job *job)
{
    return atomic_load_explicit(&job->is_cancelled, memory_order_relaxed);
}

/* Into job->usable, from what was seen in the last two periods. */
DRY_CHECK_RESULT enum dry_status dryi_packing_find_usable(const struct dryi_forecast *h,
                                                          const uint32_t *streams,
                                                          struct dryi_packing_job *job);
/*
 * Offsets for the lives of several streams, above each other (`piece`) and around the
 * obstacles (`fill`, if there are any); *height: of the piece.
 */
DRY_CHECK_RESULT enum dry_status dryi_packing_pack_streams(
    struct dryi_packing_job *job, const struct dry_memory *memory, uint64_t *height);
/* Could these two lives not share a byte, as they were packed? For several streams. */
bool dryi_packing_is_conflict(const struct dryi_packing_job *job, uint32_t a, uint32_t b);
/*
 * Which lives hand their place over, and which have an successor, by job->offsets; those are changed so
 * that more have. No byte is used that was not.
 */
DRY_CHECK_RESULT enum dry_status dryi_packing_find_next(struct dryi_packing_job *job,
                                                        const struct dry_memory *memory);

/* forecast_period.c: a request was recorded; may find a period and become KNOWN. */
void dryi_forecast_learn(struct dryi_forecast *h);
/* Grow a full ring, or make one; false: there is no memory for the first records. */
DRYI_NOINLINE bool dryi_forecast_grow(struct dryi_forecast *h);

/*
 * Make room for one record more. The oldest goes if there are enough of them: while a period is
 * followed its records are there.
 */
static inline bool
dryi_forecast_make_room(struct dryi_forecast *h)
{
    if (h->now - h->oldest < h->ring_count)
        return true;
    if (h->state == FORECAST_LEARNING)
        return dryi_forecast_grow(h);
    h->oldest++;
    return true;
}
/* The period did not last, or is not wanted: not to be taken before request `until`. */
void dryi_forecast_note_misled(struct dryi_forecast *h, uint64_t until, bool is_final);
/* Begin to learn from nothing, but with the records there are. */
void dryi_forecast_begin_learning(struct dryi_forecast *h);

#endif
