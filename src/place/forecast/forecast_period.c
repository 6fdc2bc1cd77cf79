/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Finding the period.
 *
 * A candidate is a distance d: the last FORECAST_WORD keys also occurred d requests ago. Its run is
 * the number of requests equal to those d before. The first unequal request ends the run. The next
 * candidate is then the most recent occurrence of the last keys, this one included. So a loop
 * inside the period is given up at the first request that is not part of the loop. A run as long as
 * d means two equal periods.
 *
 * Equal keys are not sufficient: the layers of a model repeat too, but their allocations stay
 * alive. In a true period, a block is freed before it is as old as the period. This is checked once
 * the run is long enough. After a failure the check is repeated when the run is 1.5 times as long,
 * so the total is O(1) per request.
 *
 * A period that breaks early may be a loop inside the true one. For some time it is rejected,
 * whatever its first step, so that the larger one can be found. It is identified by the sum of its
 * keys. If no larger one appears, it is accepted permanently.
 */
#include "place/forecast/forecast_inside.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"

/* Records of the first ring: 32 KiB with the hash table. */
#define RING_FIRST 1024u
#define RING_MAX (2 * DRYI_FORECAST_PERIOD_MAX)
#define NAP_MAX                                                                          \
    (64 * RING_MAX)   /* requests; the longest sleep, during which no period is learnt */
#define STEPS_MIN 64u /* requests; a shorter period is repeated until it is this long */
#define BACK_MAX 64u  /* keys caught up per request */
#define FACTOR UINT64_C(0xd1342543de82ef95) /* multiplier of the rolling hash; odd */

/* Double the ring, and keep its records. False: out of memory. */
static bool
grow(struct dryi_forecast *h)
{
    DRYI_ASSERT_SLOW(h->ring_count == 0 || dryi_is_power_of_two(h->ring_count));
    size_t count = h->ring_count ? 2 * h->ring_count : RING_FIRST;
    struct dryi_forecast bigger = *h;
    bigger.ring_count = count;
    bigger.ring = dryi_memory_zalloc(&h->memory, count, sizeof *h->ring);
    bigger.seen = dryi_memory_zalloc(&h->memory, count, sizeof *h->seen);
    if (!bigger.ring || !bigger.seen) {
        dryi_memory_free(&h->memory, bigger.ring, count, sizeof *h->ring);
        dryi_memory_free(&h->memory, bigger.seen, count, sizeof *h->seen);
        return false;
    }
    for (uint64_t i = h->oldest; i < h->now; i++)
        *forecast_record_at(&bigger, i) = *forecast_record_at(h, i);
    for (size_t i = 0; i < h->ring_count; i++) {
        /* The new slot depends on the mark, which is not stored: fill both candidates. */
        bigger.seen[i] = bigger.seen[i + h->ring_count] = h->seen[i];
    }
    dryi_memory_free(&h->memory, h->ring, h->ring_count, sizeof *h->ring);
    dryi_memory_free(&h->memory, h->seen, h->ring_count, sizeof *h->seen);
    *h = bigger;
    return true;
}

bool
dryi_forecast_grow(struct dryi_forecast *h)
{
    DRYI_ASSERT_SLOW(h->state == FORECAST_LEARNING &&
                     h->now - h->oldest == h->ring_count);
    if (h->ring_count < RING_MAX && grow(h))
        return true;
    h->oldest += h->ring_count > 0;
    return h->ring_count > 0;
}

static uint64_t
get_size(const struct forecast_record *record)
{
    return record->grains * FORECAST_GRAIN;
}

/* --- is it one? ------------------------------------------------------------------------- */

/*
 * At most this share of the lives, and of the bytes, may outlive a period, because a program keeps
 * some allocations. At most DIFFER_SHARE of the lives may differ in length from the previous
 * period.
 */
#define ALIVE_SHARE 16u
#define ALIVE_BYTES_SHARE 8u
#define DIFFER_SHARE 8u

/*
 * Have nearly all lives of the last period but one ended? And did they last as long as those of the
 * last period, where both have ended?
 */
static bool
is_steady(const struct dryi_forecast *h, uint64_t period)
{
    DRYI_ASSERT_SLOW(period > 0 && 2 * period <= h->now - h->oldest);
    uint64_t bytes = 0, alive_bytes = 0, alive = 0, differ = 0;
    for (uint64_t i = h->now - 2 * period; i < h->now - period; i++) {
        const struct forecast_record *then = forecast_record_at(h, i);
        const struct forecast_record *last = forecast_record_at(h, i + period);
        bytes = dryi_add_saturating(bytes, get_size(then));
        if (then->gap == 0) {
            alive++;
            alive_bytes = dryi_add_saturating(alive_bytes, get_size(then));
        } else if (last->gap != 0 && last->gap != then->gap) {
            differ++;
        }
    }
    return alive <= period / ALIVE_SHARE && alive_bytes <= bytes / ALIVE_BYTES_SHARE &&
           differ <= period / DIFFER_SHARE;
}

/* --- what has misled -------------------------------------------------------------------- */

static uint64_t
sum_of_steps(const struct dryi_forecast *h)
{
    DRYI_ASSERT_SLOW(h->step_count > 0);
    uint64_t sum = 0;
    for (uint32_t i = 0; i < h->step_count; i++)
        sum += h->steps[i].key;
    return sum;
}

static struct forecast_misled *
find_misled(struct dryi_forecast *h, uint64_t sum)
{
    for (uint32_t slot = 0; slot < FORECAST_MISLED_COUNT; slot++) {
        if (h->misled[slot].sum == sum)
            return &h->misled[slot];
    }
    return NULL;
}

void
dryi_forecast_note_misled(struct dryi_forecast *h, uint64_t until, bool is_final)
{
    uint64_t sum = sum_of_steps(h);
    struct forecast_misled *misled = find_misled(h, sum);
    if (misled && misled->is_cleared && !is_final)
        return;
    if (!misled) {
        misled = &h->misled[h->misled_next];
        h->misled_next = (h->misled_next + 1) % FORECAST_MISLED_COUNT;
    }
    *misled = (struct forecast_misled){.sum = sum, .until = until};
}

/* Return for how many more requests the last `period` requests are no period; 0: accepted. */
static uint64_t
sum_wait(struct dryi_forecast *h, uint64_t period)
{
    DRYI_ASSERT_SLOW(period > 0 && period <= h->now - h->oldest);
    uint64_t sum = 0;
    for (uint64_t i = h->now - period; i < h->now; i++)
        sum += forecast_record_at(h, i)->key;
    const struct forecast_misled *misled = find_misled(h, sum);
    return misled && misled->until > h->now ? misled->until - h->now : 0;
}

/* --- what it is made of ----------------------------------------------------------------- */

/* Return a life's length in requests, the longer of two periods; 0: longer than a period. */
static uint32_t
get_end(const struct dryi_forecast *h, uint64_t period, uint64_t number)
{
    uint32_t then = forecast_record_at(h, number)->gap;
    uint32_t last = forecast_record_at(h, number + period)->gap;
    if (then == 0 || then > period || last > period)
        return 0;
    return last > then ? last : then;
}

/*
 * Sum into each step's offset the bytes live across its begin: lives that begin before and end
 * after it, on the circle.
 */
static void
sum_crossing(struct forecast_step *steps, uint32_t count)
{
    uint64_t live = 0;
    for (uint32_t i = 0; i < count; i++)
        steps[i].offset = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (steps[i].end == 0)
            continue;
        DRYI_ASSERT_SLOW(steps[i].end > i && steps[i].end - i <= count);
        /* Intermediate sums may wrap around. */
        steps[(i + 1) % count].offset += steps[i].size;
        steps[steps[i].end % count].offset -= steps[i].size;
        if (steps[i].end > count)
            live += steps[i].size;
    }
    /* `live` now has the lives across step 0; the other steps follow by differences. */
    for (uint32_t i = 0; i < count; i++) {
        if (i > 0)
            live += steps[i].offset;
        steps[i].offset = live;
    }
}

/* Rotate the steps so that `first` becomes step 0. `spare` has space for all steps. */
static void
turn(struct forecast_step *steps, struct forecast_step *spare, uint32_t count,
     uint32_t first)
{
    DRYI_ASSERT_SLOW(first < count);
    for (uint32_t i = 0; i < count; i++) {
        spare[i] = steps[(i + first) % count];
        if (spare[i].end) {
            uint32_t gap = spare[i].end - (i + first) % count;
            spare[i].end = i + gap;
        }
        spare[i].offset = DRYI_HINT_NONE;
    }
    memcpy(steps, spare, count * sizeof *steps);
}

static uint32_t
quietest(const struct forecast_step *steps, uint32_t count)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < count; i++) {
        if (steps[i].offset < steps[best].offset)
            best = i;
    }
    return best;
}

#define TRUSTED_SHARE 8u /* a period longer than 1/8 of all requests is packed at once */
#define PROOF 1024u

/*
 * Return how many requests a period must last before it is packed. A period that is short compared
 * to all requests so far is usually a loop inside the true period. A layout for the loop would move
 * pages that are soon needed at their old addresses.
 */
static uint64_t
get_proof(const struct dryi_forecast *h, uint32_t period)
{
    return h->now / TRUSTED_SHARE <= period ? 0 : PROOF;
}

/* Accept a period: make its steps from the last two periods. False: out of memory. */
static bool
take_period(struct dryi_forecast *h, uint32_t period)
{
    DRYI_ASSERT_SLOW(h->state == FORECAST_LEARNING);
    DRYI_ASSERT_SLOW(period > 0 && 2 * (uint64_t)period <= h->now - h->oldest);
    const struct dry_memory *m = &h->memory;
    struct forecast_step *steps = dryi_memory_zalloc(m, period, 2 * sizeof *steps);
    if (!steps)
        return false;
    for (uint32_t i = 0; i < period; i++) {
        uint64_t number = h->now - 2 * (uint64_t)period + i;
        const struct forecast_record *record = forecast_record_at(h, number);
        uint32_t gap = get_end(h, period, number);
        steps[i] = (struct forecast_step){.key = record->key,
                                          .size = get_size(record),
                                          .end = gap ? i + gap : 0,
                                          .stream = record->stream,
                                          .successor = DRYI_STEP_NONE};
    }
    sum_crossing(steps, period);
    uint32_t first = quietest(steps, period);
    turn(steps, steps + period, period, first);
    dryi_memory_free(m, h->steps, h->step_capacity, sizeof *h->steps);
    h->steps = steps;
    h->step_count = period;
    h->period_number++;
    h->step_capacity = 2 * period;
    h->position = first ? period - first : 0;
    h->skipped = h->skipped_before = h->refused = 0;
    h->followed = 0;
    h->again = 0;
    h->is_calm = true;
    h->was_paused = false;
    struct forecast_misled *misled = find_misled(h, sum_of_steps(h));
    h->is_cleared = misled != NULL;
    if (misled)
        misled->is_cleared = true;
    h->proof = get_proof(h, period);
    h->patience = 2;
    h->state = FORECAST_KNOWN;
    h->nap = 0;
    return true;
}

/* --- learning --------------------------------------------------------------------------- */

/* Add the next key to the rolling hash. Returns the number of keys hashed, including this one. */
static inline uint64_t
roll(struct dryi_forecast *h, uint64_t key)
{
    DRYI_ASSERT_SLOW(h->rolled <= h->seen_to && h->seen_to < h->now);
    uint64_t power = FACTOR; /* FACTOR^FORECAST_WORD, by repeated squaring */
    for (unsigned i = 1; i < FORECAST_WORD; i *= 2)
        power *= power;
    uint64_t last = h->seen_to++;
    uint64_t known = h->seen_to - h->rolled;
    h->rolling = h->rolling * FACTOR + key;
    if (known > FORECAST_WORD)
        h->rolling -= forecast_record_at(h, last - FORECAST_WORD)->key * power;
    return known;
}

/*
 * Return the distance to the last look-up of the word that ends in this request; 0: none. Updates
 * the word's entry.
 */
static uint64_t
look_up(struct dryi_forecast *h, uint64_t mark, uint64_t number)
{
    uint64_t *seen = &h->seen[mark & (h->ring_count - 1)];
    uint64_t before = *seen ? *seen - 1 : number;
    *seen = number + 1;
    return number - before;
}

/* Return the request with the least mark in the window; on ties the last one. */
static uint64_t
find_least(const struct dryi_forecast *h, uint64_t last)
{
    DRYI_ASSERT_SLOW(h->first_mark <= last);
    uint64_t least = last;
    for (uint64_t i = 1; i < FORECAST_WINDOW && last - i >= h->first_mark; i++) {
        if (h->marks[(last - i) % FORECAST_WINDOW] < h->marks[least % FORECAST_WINDOW])
            least = last - i;
    }
    return least;
}

/*
 * Hash the next key. Returns the distance at which the last keys occurred before; 0: unknown.
 *
 * Looking up each word would cost a cache miss per request. So only the word with the least mark of
 * a window is looked up and stored. Equal key sequences select the same words (Schleimer, Wilkerson
 * and Aiken, "Winnowing", SIGMOD 2003).
 */
static inline uint64_t
see_next(struct dryi_forecast *h, uint64_t key)
{
    uint64_t known = roll(h, key), last = h->seen_to - 1;
    if (known < FORECAST_WORD)
        return 0;
    uint64_t mark = dryi_mix64(h->rolling);
    h->marks[last % FORECAST_WINDOW] = mark;
    if (known == FORECAST_WORD)
        h->first_mark = last;
    if (known == FORECAST_WORD || mark <= h->least)
        h->least_at = last;
    else if (last - h->least_at >= FORECAST_WINDOW)
        h->least_at = find_least(h, last);
    else
        return 0;
    h->least = h->marks[h->least_at % FORECAST_WINDOW];
    return look_up(h, h->least, h->least_at);
}

/*
 * Hash a bounded number of requests that came while a period was followed, as far as their records
 * exist: while following, no key is hashed. Returns 0 until the last request is hashed.
 */
DRYI_NOINLINE static uint64_t
see_more(struct dryi_forecast *h)
{
    uint64_t distance = 0,
             needed = h->seen_to > FORECAST_WORD ? h->seen_to - FORECAST_WORD : 0;
    if (needed < h->oldest && h->rolled < h->oldest) {
        h->seen_to = h->seen_to > h->oldest ? h->seen_to : h->oldest;
        h->rolling = 0;
        h->rolled = h->seen_to;
    }
    for (unsigned i = 0; i < BACK_MAX && h->seen_to < h->now; i++)
        distance = see_next(h, forecast_record_at(h, h->seen_to)->key);
    return h->seen_to == h->now ? distance : 0;
}

/* Hash the last request. Usually all earlier ones are hashed already. */
static inline uint64_t
see(struct dryi_forecast *h, uint64_t key)
{
    return h->seen_to + 1 == h->now ? see_next(h, key) : see_more(h);
}

void
dryi_forecast_begin_learning(struct dryi_forecast *h)
{
    DRYI_ASSERT_SLOW(h->step_count == 0);
    h->state = FORECAST_LEARNING;
    h->began = h->now;
    h->distance = h->run = h->next_check = 0;
    h->skipped = 0;
}

/* Count the last keys that equal those `distance` before, up to FORECAST_WORD. */
static uint64_t
count_equal(const struct dryi_forecast *h, uint64_t distance)
{
    DRYI_ASSERT_SLOW(distance > 0 && distance < h->now - h->oldest);
    uint64_t equal = 0;
    uint64_t known = h->now - h->oldest;
    while (equal < FORECAST_WORD && equal + distance < known &&
           forecast_record_at(h, h->now - 1 - equal)->key ==
               forecast_record_at(h, h->now - 1 - equal - distance)->key)
        equal++;
    return equal;
}

static void
go_to_sleep(struct dryi_forecast *h)
{
    DRYI_ASSERT_SLOW(h->state == FORECAST_LEARNING && h->sleep == 0);
    h->nap = h->nap ? 2 * h->nap : 2 * RING_MAX;
    if (h->nap > NAP_MAX)
        h->nap = NAP_MAX;
    h->sleep = h->nap;
}

static void
examine(struct dryi_forecast *h)
{
    DRYI_ASSERT_SLOW(h->distance > 0 && h->distance <= DRYI_FORECAST_PERIOD_MAX);
    uint64_t times = (STEPS_MIN + h->distance - 1) / h->distance;
    uint64_t period = h->distance * times;
    uint64_t known = h->now - h->oldest;
    if (h->run < period || h->run < h->next_check || known < 2 * period)
        return;
    if (!is_steady(h, period)) {
        h->next_check = h->run + h->run / 2 + 1;
        return;
    }
    uint64_t wait = sum_wait(h, period);
    if (wait > 0 || !take_period(h, (uint32_t)period))
        h->next_check = h->run + (wait > 0 ? wait : period);
}

/* Extend the run backwards, some keys per request: it may be much longer than detected so far. */
static void
extend_back(struct dryi_forecast *h)
{
    uint64_t known = h->now - h->oldest;
    for (unsigned i = 0; i < BACK_MAX && !h->is_run_whole; i++) {
        h->is_run_whole =
            h->run + h->distance >= known ||
            forecast_record_at(h, h->now - 1 - h->run)->key !=
                forecast_record_at(h, h->now - 1 - h->run - h->distance)->key;
        h->run += !h->is_run_whole;
    }
}

void
dryi_forecast_learn(struct dryi_forecast *h)
{
    DRYI_ASSERT_SLOW(h->state == FORECAST_LEARNING && h->oldest < h->now &&
                     h->began < h->now);
    uint64_t key = forecast_record_at(h, h->now - 1)->key;
    uint64_t learnt = h->now - h->began;
    uint64_t distance = see(h, key);
    uint64_t known = h->now - h->oldest;
    if (h->distance && h->distance < known &&
        key == forecast_record_at(h, h->now - 1 - h->distance)->key) {
        h->run++;
    } else {
        bool is_candidate = distance > 0 && distance <= DRYI_FORECAST_PERIOD_MAX &&
                            distance < known && count_equal(h, distance) == FORECAST_WORD;
        h->distance = is_candidate ? distance : 0;
        h->run = is_candidate ? FORECAST_WORD : 0;
        h->is_run_whole = false;
        h->next_check = 0;
    }
    if (h->distance) {
        if (!h->is_run_whole)
            extend_back(h);
        examine(h);
    }
    if (h->state == FORECAST_LEARNING && learnt >= 2 * RING_MAX && h->run < h->distance)
        go_to_sleep(h);
}
