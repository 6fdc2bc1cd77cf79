/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_FORECAST_INSIDE_H
#define DRYI_PLACE_FORECAST_INSIDE_H

/*
 * The nouns that the parts of the forecast share.
 *
 * Time is the count of requests. Every request leaves a record in a ring. While no period is found,
 * the ring grows to the last 2 x DRYI_FORECAST_PERIOD_MAX requests. A request's ticket is the
 * number of its record.
 */

#include <stdatomic.h>

#include "base/assert.h"
#include "base/inline.h"
#include "place/forecast/forecast.h"

enum forecast_state {
    FORECAST_LEARNING, /* no period */
    FORECAST_KNOWN,    /* a period is followed, without a layout */
    FORECAST_PACKED,   /* and with one */
    FORECAST_PAUSED,   /* with one; the program does something else meanwhile */
};

struct forecast_record {
    uint64_t key;    /* hash of size and stream */
    uint32_t grains; /* of 512 bytes; no more than fit here */
    uint32_t epoch;  /* low bits of its stream's at the free; 0: alive, or unknown */
    uint32_t gap;    /* requests from it to its free; 0: alive */
    uint32_t stream;
};
#define FORECAST_GRAIN UINT64_C(512)

/* Memory that stream `from` freed up to `epoch` could go to stream `to` before request `time`. */
struct forecast_pass {
    uint64_t time, epoch;
    uint32_t from, to;
};

/* A step: one request of the period. */
struct forecast_step {
    uint64_t key;
    uint64_t offset; /* its hint; DRYI_HINT_NONE: none */
    uint64_t size;
    uint32_t end; /* its free, in requests from the period's begin; 0: it lives longer */
    uint32_t stream;
    uint32_t successor; /* a step; DRYI_STEP_NONE: none */
};

/*
 * A period that did not last, named by the sum of its keys. The period is not taken again before
 * request `until`. If it comes after that, nothing better was found meanwhile: it is cleared, and
 * taken for good.
 */
struct forecast_misled {
    uint64_t sum, until;
    bool is_cleared;
};
/* A program has few loops that look like its period. */
#define FORECAST_MISLED_COUNT 8u

#define FORECAST_WORD 16u   /* keys in a word */
#define FORECAST_WINDOW 16u /* words, of which one is looked up */

struct dryi_forecast {
    struct dry_memory memory;
    enum forecast_state state;
    uint64_t now;   /* requests so far */
    uint64_t sleep; /* requests to let pass before learning goes on */
    uint64_t nap;   /* how long the next sleep is */

    struct forecast_record *ring;
    size_t ring_count; /* a power of two, or 0 */
    uint64_t oldest;   /* number of the oldest record in the ring */

    /* Learning: where were the last keys seen before? */
    uint64_t rolling; /* hash of the last FORECAST_WORD keys */
    uint64_t *seen;   /* by mark: 1 + number of the request; as long as the ring */
    uint64_t rolled;  /* first request whose key is in the hash */
    uint64_t marks[FORECAST_WINDOW]; /* of the words that end in the last requests */
    uint64_t first_mark;             /* number of the first request that has one */
    uint64_t least, least_at;        /* the mark looked up last, and its request */
    uint64_t seen_to;   /* all before this one were seen; stands still while following */
    uint64_t began;     /* request at which learning began */
    uint64_t distance;  /* candidate for the period; 0: none */
    uint64_t run;       /* last requests that equal those a `distance` before */
    bool is_run_whole;  /* the run cannot be followed further back */
    uint64_t next_look; /* the candidate is not examined before the run is so long */
    struct forecast_misled misled[FORECAST_MISLED_COUNT];
    uint32_t misled_next; /* the entry to be overwritten next */

    /* Following. */
    struct forecast_step *steps;
    uint32_t step_count, step_capacity;
    uint64_t period_number;  /* count of the periods found so far */
    uint32_t position;       /* the step that comes next */
    uint32_t skipped;        /* requests of this period that were not expected */
    uint32_t skipped_before; /* and of the period before */
    uint64_t followed;       /* requests since the period was found */
    uint64_t proof;          /* so many of these before the period is packed */
    bool is_cleared;         /* it came again after a break: nothing better was found */
    uint32_t left;           /* where the program left the period, if it did */
    uint32_t again;  /* expected requests in a row, up to those that show a position */
    bool was_paused; /* in this period */
    bool is_calm;    /* a whole period came since the last pause */
    uint64_t interrupted; /* request at which the last calm ended */
    uint32_t refused;     /* hints of this period that could not be taken */
    uint64_t periods;     /* since the layout was made */
    bool is_settled;      /* the last of them skipped and refused nothing */
    bool is_refused;      /* too many hints of the last of them were refused */
    uint64_t patience;    /* periods before a layout that is refused is made anew */

    /* The last passes of memory from stream to stream: a ring, in order of time. */
    struct forecast_pass *passes;
    size_t pass_capacity;
    uint64_t pass_count; /* of all that were noted */
};

#define FORECAST_PASSES_MAX (UINT64_C(1) << 16) /* they take 1.5 MiB */

static inline struct forecast_record *
forecast_record_at(const struct dryi_forecast *h, uint64_t number)
{
    DRYI_ASSERT_SLOW(number >= h->oldest && number - h->oldest < h->ring_count);
    return &h->ring[number & (h->ring_count - 1)];
}

/* Is the block of the step freed before the step comes again? Then the step is packed. */
static inline bool
forecast_is_packed_step(const struct dryi_forecast *h, uint32_t i)
{
    DRYI_ASSERT_SLOW(i < h->step_count && h->steps[i].end <= h->step_count + i);
    return h->steps[i].size > 0 && h->steps[i].end > 0;
}

/* --- forecast_packing.c, forecast_streams.c, forecast_next.c --------------------------------- */

/* A packing within 1/256 of the floor is good enough: a page's rounding is as much. */
#define FORECAST_SPARE_SHIFT 8u

/* A life that is packed. */
struct dryi_packing_life {
    uint64_t size;
    uint32_t step;
    uint32_t begin, end; /* from the period's begin; the end may lie in the next one */
    uint32_t stream;     /* its number in the job */
    bool is_handed;      /* another stream gets the range next */
    uint32_t successor;  /* a step; DRYI_STEP_NONE: none */
};

struct dryi_packing_job {
    struct dry_memory memory;
    uint64_t period_number; /* the forecast's when the job was made */
    uint32_t period, stream_count;
    uint64_t page_bytes;
    size_t count, obstacle_count;
    size_t capacity; /* lives and obstacles */
    struct dryi_packing_life *lives;
    struct dryi_obstacle *obstacles; /* widened to units */
    /*
     * The request from which on a stream may have a life's range, as was seen: by life and stream.
     */
    uint32_t *usable; /* UINT32_MAX: not in this period, nor the next; NULL: no lives */
    bool can_wait;
    uint32_t distance; /* several streams: requests from a free to the wait for it */
    uint32_t handed;   /* lives whose range another stream gets next */
    uint64_t taken;    /* bytes of obstacles that are not passing */
    uint64_t *piece, *fill;
    uint64_t *offsets; /* the better of the two; NULL: not packed */
    uint64_t floor, pages;
    atomic_bool is_cancelled;
};

static inline bool
dryi_packing_job_is_cancelled(const struct dryi_packing_job *job)
{
    return atomic_load_explicit(&job->is_cancelled, memory_order_relaxed);
}

/* Return the size of a life, or of an obstacle: their numbers follow those of the lives. */
static inline uint64_t
packing_size(const struct dryi_packing_job *job, size_t k)
{
    return k < job->count ? job->lives[k].size : job->obstacles[k - job->count].size;
}

/* Fill job->usable from what was seen in the last two periods. */
DRY_CHECK_RESULT enum dry_status dryi_packing_find_usable(const struct dryi_forecast *h,
                                                          const uint32_t *streams,
                                                          struct dryi_packing_job *job);
/*
 * Pack the lives, around the circle that time is, above each other and, if there are obstacles,
 * around them (`fill`). The first packing goes to `piece` if it is lower than *height, the one that
 * is there; UINT64_MAX: none is. Below `enough` it must be lower by a 32nd.
 */
DRY_CHECK_RESULT enum dry_status dryi_packing_pack_circle(struct dryi_packing_job *job,
                                                          const struct dry_memory *memory,
                                                          uint64_t enough,
                                                          uint64_t *height);
/* Must these two lives of a job with `usable` share no byte? */
bool dryi_packing_is_conflict(const struct dryi_packing_job *job, uint32_t a, uint32_t b);
/*
 * Find the lives that hand their range over to another stream, and those that have a successor, by
 * job->offsets. Some offsets are changed before, so that more lives have a successor. No byte is
 * used that was not used before.
 */
DRY_CHECK_RESULT enum dry_status dryi_packing_find_next(struct dryi_packing_job *job,
                                                        const struct dry_memory *memory);

/* forecast_period.c: learn from the request just recorded. The state may become KNOWN. */
void dryi_forecast_learn(struct dryi_forecast *h);
/*
 * Make room in a full ring, or make a ring. A ring that cannot grow loses its oldest record. False:
 * there is no memory for the first records.
 */
DRYI_NOINLINE bool dryi_forecast_grow(struct dryi_forecast *h);

/*
 * Make room for one more record. While a period is followed the oldest record of a full ring goes:
 * the ring has all records of the period.
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
 * Note that the period did not last, or is not wanted: it is not taken again before request
 * `until`. If is_final, this holds even for a period that was cleared.
 */
void dryi_forecast_note_misled(struct dryi_forecast *h, uint64_t until, bool is_final);
/* Begin to learn anew. The records stay. */
void dryi_forecast_begin_learning(struct dryi_forecast *h);

#endif
