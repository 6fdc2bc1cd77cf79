/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Following a period: comparing requests with the expected ones.
 *
 * Each expected request advances the position in the period. An unexpected one skips its hint; the
 * position is then searched again by the last keys, near the old position. So an added or missing
 * request costs a few hints, not the whole period.
 */
#include "place/forecast/forecast.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "place/forecast/forecast_inside.h"

#define REACH 32u   /* steps to each side searched for the position */
#define CONTEXT 3u  /* consecutive keys that identify a position */
#define PATIENCE 4u /* a broken period is rejected for PATIENCE times its lifetime */
/* Requests of repeated interruptions after which a period is dropped. */
#define PAUSE_MAX (2 * DRYI_FORECAST_PERIOD_MAX)

enum dry_status
dryi_forecast_create(const struct dry_memory *memory, struct dryi_forecast **forecast,
                     struct dry_error *err)
{
    struct dry_memory m = dryi_memory_or_default(memory);
    struct dryi_forecast *h = dryi_memory_zalloc(&m, 1, sizeof *h);
    if (!h)
        return dryi_fail_memory(err, "a forecast");
    h->memory = m;
    dryi_forecast_begin_learning(h);
    *forecast = h;
    return DRY_OK;
}

void
dryi_forecast_destroy(struct dryi_forecast *h)
{
    if (!h)
        return;
    struct dry_memory m = h->memory;
    dryi_memory_free(&m, h->ring, h->ring_count, sizeof *h->ring);
    dryi_memory_free(&m, h->seen, h->ring_count, sizeof *h->seen);
    dryi_memory_free(&m, h->steps, h->step_capacity, sizeof *h->steps);
    dryi_memory_free(&m, h->passes, h->pass_capacity, sizeof *h->passes);
    dryi_memory_free(&m, h, 1, sizeof *h);
}

void
dryi_forecast_drop(struct dryi_forecast *h)
{
    if (h->state == FORECAST_LEARNING)
        return;
    /* A period that lasted longer is not a loop inside another. */
    if (h->followed < DRYI_FORECAST_PERIOD_MAX)
        dryi_forecast_note_misled(h, h->now + PATIENCE * (h->followed + h->step_count),
                                  false);
    h->step_count = 0;
    dryi_forecast_begin_learning(h);
}

void
dryi_forecast_pass_over(struct dryi_forecast *h)
{
    if (h->state == FORECAST_LEARNING)
        return;
    dryi_forecast_note_misled(h, h->now + 2 * DRYI_FORECAST_PERIOD_MAX, true);
    h->step_count = 0;
    dryi_forecast_begin_learning(h);
}

static bool
is_interrupted_for_long(const struct dryi_forecast *h)
{
    return !h->is_calm && h->now - h->interrupted > PAUSE_MAX;
}

/*
 * Count an unexpected request. Too many in one period drop the period. If it is known not to be a
 * loop inside a larger period, it is paused instead: an evaluation may interrupt the training.
 */
static void
skip(struct dryi_forecast *h)
{
    DRYI_ASSERT_SLOW(h->state != FORECAST_LEARNING && h->step_count > 0);
    h->skipped++;
    if (h->skipped <= dryi_forecast_drift(h->step_count))
        return;
    if (h->state != FORECAST_PACKED || is_interrupted_for_long(h) ||
        (h->followed < DRYI_FORECAST_PERIOD_MAX && !h->is_cleared)) {
        dryi_forecast_drop(h);
        return;
    }
    if (h->is_calm)
        h->interrupted = h->now;
    h->is_calm = false;
    h->was_paused = true;
    h->state = FORECAST_PAUSED;
    h->position = h->left;
    h->again = 0;
    h->is_settled = h->is_refused = false;
}

static uint32_t
step_before(const struct dryi_forecast *h, uint32_t position)
{
    DRYI_ASSERT_SLOW(position < h->step_count);
    return (position > 0 ? position : h->step_count) - 1;
}

static uint32_t
step_behind(const struct dryi_forecast *h, uint32_t position)
{
    DRYI_ASSERT_SLOW(position < h->step_count);
    return position + 1 < h->step_count ? position + 1 : 0;
}

/* Do the last `count` keys equal those of the steps before the position? */
static bool
is_context_of(const struct dryi_forecast *h, uint32_t position, uint32_t count)
{
    if (h->now - h->oldest < count)
        return false;
    for (uint32_t k = 1; k <= count; k++) {
        position = step_before(h, position);
        if (h->steps[position].key != forecast_record_at(h, h->now - k)->key)
            return false;
    }
    return true;
}

/* Move to the nearest position whose preceding steps match the last keys. No match: stay. */
static void
find_position(struct dryi_forecast *h)
{
    uint32_t ahead = h->position, behind = ahead;
    for (uint32_t d = 0; d <= REACH && d < h->step_count; d++) {
        bool is_ahead = is_context_of(h, ahead, CONTEXT);
        if (is_ahead || is_context_of(h, behind, CONTEXT)) {
            h->position = is_ahead ? ahead : behind;
            return;
        }
        ahead = step_behind(h, ahead);
        behind = step_before(h, behind);
    }
}

/*
 * End a period. If too many hints were refused in two consecutive periods, other blocks occupy the
 * ranges of the layout. Then, if both periods skipped equally many requests, the program has
 * changed slightly, and its period is learnt again. Otherwise the layout is replaced; each
 * replacement waits for twice as many periods. The first period of a layout does not count, because
 * older blocks still occupy its ranges.
 */
static void
end_period(struct dryi_forecast *h)
{
    DRYI_ASSERT_SLOW(h->position == h->step_count);
    bool was_refused = h->is_refused;
    bool is_changed = h->skipped > 0 && h->skipped == h->skipped_before;
    h->is_refused = h->refused > dryi_forecast_drift(h->step_count);
    h->is_settled = h->state == FORECAST_PACKED && h->skipped + h->refused == 0;
    h->position = 0;
    h->skipped_before = h->skipped;
    h->skipped = h->refused = 0;
    h->periods++;
    h->is_calm = h->is_calm || !h->was_paused;
    h->was_paused = false;
    if (h->state != FORECAST_PACKED || !was_refused || !h->is_refused ||
        h->periods < h->patience)
        return;
    h->state = FORECAST_KNOWN;
    h->patience *= 2;
    if (is_changed) {
        h->step_count = 0;
        dryi_forecast_begin_learning(h);
    }
}

static void
give_hint(const struct dryi_forecast *h, struct dryi_hint *hint)
{
    const struct forecast_step *step = &h->steps[h->position];
    hint->step = h->position;
    hint->offset = step->offset;
    hint->successor = step->successor;
}

/*
 * Set the position by the longest match of the last requests, at the step where the period was left
 * or at its begin.
 */
static void
find_run(struct dryi_forecast *h)
{
    for (uint32_t count = CONTEXT; count > 0; count--) {
        uint32_t behind_left = (h->left + count) % h->step_count;
        bool is_from_left = is_context_of(h, behind_left, count);
        if (is_from_left || is_context_of(h, count, count)) {
            h->again = count - 1;
            h->position = step_before(h, is_from_left ? behind_left : count);
            return;
        }
    }
    h->again = 0;
    h->position = h->left;
}

/*
 * Compare the recorded request with the step where a paused period was left, and with its first
 * step. On a match, hints are given at once. After CONTEXT expected requests the pause ends.
 */
static void
wait_for_period(struct dryi_forecast *h, const struct forecast_record *record,
                struct dryi_hint *hint)
{
    DRYI_ASSERT_SLOW(h->state == FORECAST_PAUSED && h->position < h->step_count);
    if (h->steps[h->position].key != record->key)
        find_run(h);
    if (h->steps[h->position].key == record->key) {
        give_hint(h, hint);
        h->position = step_behind(h, h->position);
        h->again++;
    }
    if (h->again == CONTEXT) {
        h->state = FORECAST_PACKED;
        h->skipped = h->skipped_before = h->refused = 0;
    } else if (is_interrupted_for_long(h)) {
        dryi_forecast_drop(h);
    }
}

/* Compare the recorded request with the expected one, and fill in its hint. */
static void
follow(struct dryi_forecast *h, struct forecast_record *record, struct dryi_hint *hint)
{
    DRYI_ASSERT_SLOW(h->state != FORECAST_LEARNING && h->position < h->step_count);
    const struct forecast_step *step = &h->steps[h->position];
    h->followed++;
    if (step->key != record->key) {
        h->left = h->skipped == 0 || h->again == CONTEXT ? h->position : h->left;
        h->again = 0;
        find_position(h);
        skip(h);
        return;
    }
    h->again += h->again < CONTEXT;
    if (h->state == FORECAST_PACKED)
        give_hint(h, hint);
    if (++h->position == h->step_count)
        end_period(h);
}

static uint32_t
to_grains(uint64_t rounded)
{
    uint64_t grains = rounded / FORECAST_GRAIN;
    return grains < UINT32_MAX ? (uint32_t)grains : UINT32_MAX;
}

/* Advance time without a record. */
static void
miss(struct dryi_forecast *h)
{
    h->oldest = h->seen_to = ++h->now; /* The ring is now empty */
    h->rolling = 0;
    h->rolled = h->now;
}

struct dryi_hint
dryi_forecast_request(struct dryi_forecast *h, uint64_t rounded, uint64_t stream)
{
    DRYI_ASSERT_SLOW(h->sleep == 0 || h->state == FORECAST_LEARNING);
    struct dryi_hint hint = {DRYI_HINT_NONE, (uint32_t)h->now, DRYI_STEP_NONE,
                             DRYI_STEP_NONE};
    if (h->sleep) {
        h->sleep--;
        miss(h);
        if (h->sleep == 0)
            dryi_forecast_begin_learning(h);
        return hint;
    }
    if (!dryi_forecast_make_room(h)) {
        miss(h);
        return hint;
    }
    struct forecast_record *record = forecast_record_at(h, h->now);
    *record = (struct forecast_record){
        .key = dryi_mix64(rounded ^ stream * UINT64_C(0x9e3779b97f4a7c15)),
        .grains = to_grains(rounded),
        .stream = (uint32_t)stream};
    h->now++;
    if (h->state == FORECAST_LEARNING)
        dryi_forecast_learn(h);
    else if (h->state == FORECAST_PAUSED)
        wait_for_period(h, record, &hint);
    else
        follow(h, record, &hint);
    return hint;
}

/* Return the record of a ticket; NULL: no longer in the ring. */
static struct forecast_record *
get_record(const struct dryi_forecast *h, uint32_t ticket)
{
    uint64_t age = (uint32_t)((uint32_t)h->now - ticket); /* 1: the last request */
    return age > 0 && age <= h->now - h->oldest ? forecast_record_at(h, h->now - age)
                                                : NULL;
}

void
dryi_forecast_refused(struct dryi_forecast *h)
{
    DRYI_ASSERT(h->now > h->oldest);
    h->refused++; /* No effect if the refused hint was the last of a dropped period */
    if (h->position == 0)
        /* The refused hint was the last of the period that just ended. */
        h->is_settled = false;
}

void
dryi_forecast_freed(struct dryi_forecast *h, uint32_t ticket, uint64_t epoch)
{
    struct forecast_record *record = get_record(h, ticket);
    if (!record || record->gap > 0)
        return;
    record->gap = (uint32_t)h->now - ticket;
    record->epoch = (uint32_t)epoch;
}

static struct forecast_pass *
last_pass(const struct dryi_forecast *h)
{
    DRYI_ASSERT_SLOW(h->pass_count > 0);
    return &h->passes[(h->pass_count - 1) % FORECAST_PASSES_MAX];
}

void
dryi_forecast_passed(struct dryi_forecast *h, uint32_t from, uint32_t to, uint64_t epoch)
{
    DRYI_ASSERT_SLOW(from != to && from != DRYI_HINT_ANYBODY);
    DRYI_ASSERT_SLOW(h->pass_count == 0 || last_pass(h)->time <= h->now);
    struct forecast_pass pass = {h->now, epoch, from, to};
    if (h->pass_count > 0) {
        struct forecast_pass *last = last_pass(h);
        if (last->time == pass.time && last->from == from && last->to == to) {
            last->epoch = epoch > last->epoch ? epoch : last->epoch;
            return;
        }
    }
    /* If memory runs out the pass is lost: the memory then counts as never passed on. */
    if (h->pass_count < FORECAST_PASSES_MAX &&
        !dryi_memory_grow(&h->memory, &h->passes, &h->pass_capacity,
                          (size_t)h->pass_count + 1, sizeof *h->passes))
        return;
    h->pass_count++;
    *last_pass(h) = pass;
}

bool
dryi_forecast_is_ready(const struct dryi_forecast *h)
{
    DRYI_ASSERT_SLOW(h->state == FORECAST_LEARNING || h->position < h->step_count);
    return h->state == FORECAST_KNOWN && h->position == 0 && h->followed >= h->proof;
}

bool
dryi_forecast_is_settled(const struct dryi_forecast *h)
{
    return h->state == FORECAST_PACKED && h->position == 0 && h->is_settled;
}

bool
dryi_forecast_is_packed(const struct dryi_forecast *h)
{
    return h->state == FORECAST_PACKED || h->state == FORECAST_PAUSED;
}

bool
dryi_forecast_is_step_at(const struct dryi_forecast *h, uint32_t step, uint64_t offset,
                         uint64_t size, uint64_t stream)
{
    if (!dryi_forecast_is_packed(h) || step >= h->step_count)
        return false;
    const struct forecast_step *s = &h->steps[step];
    return s->offset == offset && s->size == size && s->stream == (uint32_t)stream;
}

bool
dryi_forecast_is_passing(const struct dryi_forecast *h, uint32_t ticket)
{
    const struct forecast_record *record = get_record(h, ticket);
    uint32_t age = (uint32_t)h->now - ticket;
    if (!record || age > dryi_forecast_get_period(h))
        return false;
    uint32_t step = (h->position + h->step_count - age) % h->step_count;
    return h->steps[step].key == record->key && forecast_is_packed_step(h, step);
}

uint32_t
dryi_forecast_get_period(const struct dryi_forecast *h)
{
    DRYI_ASSERT_SLOW((h->state == FORECAST_LEARNING) == (h->step_count == 0));
    return h->state == FORECAST_LEARNING ? 0 : h->step_count;
}

void
dryi_forecast_walk(const struct dryi_forecast *h,
                   void (*visit)(void *self, uint64_t offset, uint64_t size), void *self)
{
    if (!dryi_forecast_is_packed(h))
        return;
    for (uint32_t i = 0; i < h->step_count; i++) {
        if (h->steps[i].offset != DRYI_HINT_NONE)
            visit(self, h->steps[i].offset, h->steps[i].size);
    }
}
