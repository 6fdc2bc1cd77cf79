/* SPDX-License-Identifier: Apache-2.0 */

/*
 * place/forecast in a harness: a naive place that takes a hint when its range is free, and the
 * lowest gap otherwise. Loops with warm-up, noise, drift and loops inside; sequences without a
 * period; layouts whose overlapping lives never overlap; every failed allocation; a recorded
 * training run.
 */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/trace.h>

#include "base/map.h"
#include "place/forecast/forecast_inside.h"
#include "support/bytes.h"
#include "support/failing_memory.h"
#include "support/random.h"

#define PAGE (UINT64_C(2) << 20)
#define NO_BLOCK SIZE_MAX

struct block {
    uint64_t offset, size;
    uint32_t ticket;
    uint32_t id;
};

/* Blocks by offset. */
struct harness {
    struct dryi_forecast *forecast;
    struct block *blocks;
    size_t count, capacity;
    uint64_t requests, taken, refused, plans;
    uint32_t next_id;
    struct dryi_packing_info info; /* of the last packing */
};

static void
begin_harness(struct harness *p, const struct dry_memory *memory)
{
    *p = (struct harness){.capacity = 1 << 15};
    p->blocks = calloc(p->capacity, sizeof *p->blocks);
    assert_non_null(p->blocks);
    if (dryi_forecast_create(memory, &p->forecast, NULL) != DRY_OK)
        p->forecast = NULL;
}

static void
end_harness(struct harness *p)
{
    dryi_forecast_destroy(p->forecast);
    free(p->blocks);
}

/* Where [offset, offset + size) belongs among the blocks; NO_BLOCK: it is not free. */
static size_t
slot_of(const struct harness *p, uint64_t offset, uint64_t size)
{
    size_t low = 0, high = p->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (p->blocks[middle].offset + p->blocks[middle].size <= offset)
            low = middle + 1;
        else
            high = middle;
    }
    return low < p->count && p->blocks[low].offset < offset + size ? NO_BLOCK : low;
}

static uint64_t
lowest_gap(const struct harness *p, uint64_t size)
{
    uint64_t cursor = 0;
    for (size_t i = 0; i < p->count && p->blocks[i].offset - cursor < size; i++)
        cursor = p->blocks[i].offset + p->blocks[i].size;
    return cursor;
}

/*
 * Make a job, run it and take it. ARGUMENT changes nothing. After any other failure there is no
 * layout, and learning begins anew.
 */
static enum dry_status
pack_at_once(struct dryi_forecast *h, const struct dryi_packing_request *request,
             struct dryi_packing_info *info)
{
    struct dryi_packing_job *job;
    enum dry_status status = dryi_packing_job_create(h, request, &job);
    if (status == DRY_ERR_ARGUMENT)
        return status;
    if (status == DRY_OK) {
        dryi_packing_job_run(job, &h->memory);
        status = dryi_packing_job_take(job, h, info);
        dryi_packing_job_destroy(job);
    }
    if (status != DRY_OK)
        dryi_forecast_drop(h);
    return status;
}

static void
layout(struct harness *p)
{
    struct dryi_obstacle *obstacles = calloc(p->count + 1, sizeof *obstacles);
    assert_non_null(obstacles);
    for (size_t i = 0; i < p->count; i++)
        obstacles[i] =
            (struct dryi_obstacle){p->blocks[i].offset, p->blocks[i].size, false};
    struct dryi_packing_request packing_request = {obstacles, p->count, PAGE, true};
    if (pack_at_once(p->forecast, &packing_request, &p->info) == DRY_OK)
        p->plans++;
    free(obstacles);
}

/* The id of the block. */
static uint32_t
request(struct harness *p, uint64_t size, uint64_t stream)
{
    uint64_t rounded = (size + 511) / 512 * 512;
    if (dryi_forecast_is_ready(p->forecast))
        layout(p);
    struct dryi_hint got = dryi_forecast_request(p->forecast, rounded, stream);
    uint64_t hint = got.offset;
    uint32_t ticket = got.ticket;
    size_t slot = hint == DRYI_HINT_NONE ? NO_BLOCK : slot_of(p, hint, rounded);
    bool by_hint = slot != NO_BLOCK;
    uint64_t offset = by_hint ? hint : lowest_gap(p, rounded);
    if (!by_hint)
        slot = slot_of(p, offset, rounded);
    assert_true(slot != NO_BLOCK && p->count < p->capacity);
    memmove(p->blocks + slot + 1, p->blocks + slot,
            (p->count - slot) * sizeof *p->blocks);
    p->blocks[slot] = (struct block){offset, rounded, ticket, p->next_id};
    p->count++;
    p->requests++;
    p->taken += by_hint;
    p->refused += hint != DRYI_HINT_NONE && !by_hint;
    if (hint != DRYI_HINT_NONE && !by_hint)
        dryi_forecast_refused(p->forecast);
    return p->next_id++;
}

static void
release(struct harness *p, uint32_t id)
{
    size_t i = 0;
    while (i < p->count && p->blocks[i].id != id)
        i++;
    assert_true(i < p->count);
    dryi_forecast_freed(p->forecast, p->blocks[i].ticket, 1 + p->requests);
    p->count--;
    memmove(p->blocks + i, p->blocks + i + 1, (p->count - i) * sizeof *p->blocks);
}

/* --- a program of steps ------------------------------------------------------------------ */

#define LAYERS 12

struct program {
    struct harness *place;
    struct random random;
    unsigned noise; /* one request more in so many; 0: none */
    uint64_t scale; /* of sizes */
    uint32_t weights[LAYERS];
};

static uint32_t
ask(struct program *g, uint64_t size)
{
    if (g->noise && random_below(&g->random, g->noise) == 0)
        release(g->place,
                request(g->place, 512 * (1 + random_below(&g->random, 5000)), 0));
    return request(g->place, size * g->scale, 0);
}

/* Forward and backward through layers that are all alike. */
static void
micro_batch(struct program *g)
{
    uint32_t kept[LAYERS][2];
    for (unsigned i = 0; i < LAYERS; i++) {
        kept[i][0] = ask(g, 300000);
        uint32_t a = ask(g, 4000), b = ask(g, 70000);
        release(g->place, a);
        kept[i][1] = ask(g, 150000);
        release(g->place, b);
    }
    for (unsigned i = LAYERS; i-- > 0;) {
        uint32_t a = ask(g, 500000), b = ask(g, 9000);
        release(g->place, kept[i][1]);
        release(g->place, b);
        uint32_t c = ask(g, 60000);
        release(g->place, kept[i][0]);
        release(g->place, a);
        release(g->place, c);
    }
}

static void
update(struct program *g)
{
    uint32_t old = UINT32_MAX;
    for (unsigned i = 0; i < LAYERS; i++) {
        uint32_t a = ask(g, 333000 + 1024 * i);
        if (old != UINT32_MAX)
            release(g->place, old);
        old = a;
    }
    release(g->place, old);
}

static void
step(struct program *g, unsigned micro_batches)
{
    uint32_t input = ask(g, 1000000);
    for (unsigned i = 0; i < micro_batches; i++)
        micro_batch(g);
    update(g);
    release(g->place, input);
}

static void
begin_program(struct program *g, struct harness *p, uint64_t seed)
{
    *g = (struct program){.place = p, .scale = 1};
    random_init(&g->random, seed);
    for (unsigned i = 0; i < LAYERS; i++)
        g->weights[i] = request(p, 700000 + 512 * i, 0);
    for (unsigned i = 0; i < 50; i++) { /* warm-up */
        uint32_t id = request(p, 512 * (1 + random_below(&g->random, 100000)), 0);
        if (i % 10)
            release(p, id);
    }
}

/* Of the requests in these steps, how many took their hints, in percent. */
static unsigned
percent_hinted(struct program *g, unsigned steps, unsigned micro_batches)
{
    uint64_t requests = g->place->requests, taken = g->place->taken;
    for (unsigned i = 0; i < steps; i++)
        step(g, micro_batches);
    return (unsigned)((g->place->taken - taken) * 100 / (g->place->requests - requests));
}

static void
a_loop_is_learnt(void **state)
{
    (void)state;
    struct harness p;
    struct program g;
    begin_harness(&p, NULL);
    begin_program(&g, &p, 1);
    percent_hinted(&g, 5, 1);
    assert_int_equal(p.plans, 1);
    assert_int_equal(p.info.period, 1 + 7 * LAYERS + LAYERS);
    assert_int_equal(percent_hinted(&g, 20, 1), 100);
    assert_int_equal(p.plans, 1);
    end_harness(&p);
}

/* Two periods are learnt from; the first request of the third has its hint. */
static void
the_third_period_is_packed(void **state)
{
    (void)state;
    struct harness p;
    struct program g;
    begin_harness(&p, NULL);
    begin_program(&g, &p, 1);
    step(&g, 1);
    step(&g, 1);
    assert_int_equal(p.plans, 0);
    assert_int_equal(percent_hinted(&g, 1, 1), 100);
    assert_int_equal(p.plans, 1);
    end_harness(&p);
}

/* A short one late in a program may be a part of something: it is watched for a while. */
static void
a_short_period_must_last(void **state)
{
    (void)state;
    struct harness p;
    struct program g;
    begin_harness(&p, NULL);
    begin_program(&g, &p, 9);
    for (unsigned i = 0; i < 1000; i++)
        release(&p, request(&p, 512 * (1 + random_below(&g.random, 100000)), 0));
    percent_hinted(&g, 8, 1);
    assert_int_equal(p.plans, 0);
    percent_hinted(&g, 8, 1);
    assert_int_equal(p.plans, 1);
    assert_int_equal(percent_hinted(&g, 5, 1), 100);
    end_harness(&p);
}

/* The inner loop repeats long enough to be taken for the period, but not for ever. */
static void
the_period_is_the_outer_loop(void **state)
{
    (void)state;
    for (unsigned batches = 2; batches < 40; batches += 6) {
        struct harness p;
        struct program g;
        begin_harness(&p, NULL);
        begin_program(&g, &p, 2);
        percent_hinted(&g, 12, batches);
        assert_int_equal(percent_hinted(&g, 20, batches), 100);
        assert_int_equal(p.info.period, 1 + 7 * LAYERS * batches + LAYERS);
        end_harness(&p);
    }
}

#define LETTERS 100

/*
 * Run so many requests of a loop of LETTERS keys that are all different, from the one at `at` on.
 */
static void
go_round(struct harness *p, unsigned at, unsigned count)
{
    for (unsigned i = at; i < at + count; i++)
        release(p, request(p, 4096 * (1 + i % LETTERS), 0));
}

/* Three of its keys say where the loop is, ahead of where it should be or behind. */
static void
a_lost_position_is_found_nearby(void **state)
{
    (void)state;
    static const unsigned places[] = {0, 1, 2, 3, 50, 96, 97, 98, 99};
    for (unsigned i = 0; i < 2 * sizeof places / sizeof *places; i++) {
        struct harness p;
        begin_harness(&p, NULL);
        go_round(&p, 0, 5 * LETTERS);
        assert_int_equal(p.plans, 1);
        unsigned at = 5 * LETTERS + places[i / 2];
        go_round(&p, 5 * LETTERS, places[i / 2]);
        uint64_t requests = p.requests, taken = p.taken;
        go_round(&p, i % 2 ? at + 5 : at - 5,
                 LETTERS); /* five are left out, or come again */
        assert_int_equal(p.requests - requests - (p.taken - taken), 3);
        end_harness(&p);
    }
}

static void
noise_costs_a_few_hints(void **state)
{
    (void)state;
    struct harness p;
    struct program g;
    begin_harness(&p, NULL);
    begin_program(&g, &p, 3);
    g.noise = 1000;
    percent_hinted(&g, 50, 1);
    assert_true(percent_hinted(&g, 1000, 1) >= 97);
    end_harness(&p);
}

/* An evaluation: other sizes than a step has. It is never as long as the one before. */
static void
evaluate(struct program *g, unsigned batches)
{
    batches += (unsigned)random_below(&g->random, batches);
    for (unsigned i = 0; i < batches * LAYERS; i++)
        release(g->place, ask(g, 450000 + 512 * (i % LAYERS)));
}

/* A period that lasted long, or came again after a break, stays while something interrupts it. */
static void
an_interruption_costs_no_layout(void **state)
{
    (void)state;
    static const unsigned every[] = {20, 2000}, batches[] = {20, 500};
    for (unsigned i = 0; i < 4; i++) {
        struct harness p;
        struct program g;
        begin_harness(&p, NULL);
        begin_program(&g, &p, 12);
        for (unsigned round = 0; round < 20; round++) {
            percent_hinted(&g, every[i % 2], 1);
            evaluate(&g, batches[i / 2]);
        }
        uint64_t plans = p.plans;
        for (unsigned round = 0; round < 10; round++) {
            assert_int_equal(percent_hinted(&g, every[i % 2], 1), 100);
            evaluate(&g, batches[i / 2]);
        }
        assert_int_equal(p.plans, plans);
        end_harness(&p);
    }
}

#define LONG 1000

/* A program of LONG different sizes, learnt for long, and what interrupts it. */
struct long_loop {
    struct harness place;
    uint64_t sizes[2 * LONG], other[300];
};

/* Run so many sizes, `times` times. Returns the percent of the requests that took hints. */
static unsigned
percent_of_loops(struct harness *p, const uint64_t *sizes, unsigned count, unsigned times)
{
    uint64_t requests = p->requests, taken = p->taken;
    for (unsigned i = 0; i < count * times; i++)
        release(p, request(p, sizes[i % count], 0));
    return (unsigned)((p->taken - taken) * 100 / (p->requests - requests));
}

static void
begin_loop(struct long_loop *l)
{
    begin_harness(&l->place, NULL);
    for (unsigned i = 0; i < 2 * LONG; i++)
        l->sizes[i] = 4096 * (1 + (uint64_t)i * 7919 % (2 * LONG + 1));
    for (unsigned i = 0; i < 300; i++)
        l->other[i] = 512 * (uint64_t)(LONG * 16 + 8 + i);
}

/* A program that changed by more than the drift is interrupted in each period, and learnt anew. */
static void
a_program_that_changed_for_good_is_learnt_anew(void **state)
{
    (void)state;
    enum { TENTH, ONE_LESS, SOME_MORE, ONE_SIZE, CHANGES };
    static const unsigned counts[CHANGES] = {LONG, LONG - 1, LONG + 28, 1};
    for (unsigned change = 0; change < CHANGES; change++) {
        struct long_loop l;
        unsigned count = counts[change];
        begin_loop(&l);
        assert_true(percent_of_loops(&l.place, l.sizes, LONG, 80) > 90);
        uint64_t plans = l.place.plans;
        for (unsigned i = 0; change == TENTH && i < LONG; i += 10)
            l.sizes[i] += 512;
        percent_of_loops(&l.place, l.sizes, count, 200 * LONG / count);
        assert_true(percent_of_loops(&l.place, l.sizes, count, 100 * LONG / count) >= 99);
        assert_true(l.place.plans > plans);
        end_harness(&l.place);
    }
}

/* A stray request earlier in the period does not hide where the interruption began. */
static void
the_period_goes_on_where_it_was_left(void **state)
{
    (void)state;
    struct long_loop l;
    begin_loop(&l);
    percent_of_loops(&l.place, l.sizes, LONG, 80);
    percent_of_loops(&l.place, l.sizes, 50, 1);
    percent_of_loops(&l.place, l.other, 1, 1);
    percent_of_loops(&l.place, l.sizes + 50, 550, 1);
    assert_int_equal(percent_of_loops(&l.place, l.other, 300, 1), 0);
    assert_int_equal(percent_of_loops(&l.place, l.sizes + 600, 400, 1), 100);
    assert_int_equal(percent_of_loops(&l.place, l.sizes, LONG, 10), 100);
    end_harness(&l.place);
}

/* Equal requests at the seam of periods do not keep a pause out of step. */
static void
a_pause_ends_though_the_seam_is_of_equal_requests(void **state)
{
    (void)state;
    struct long_loop l;
    begin_loop(&l);
    l.sizes[0] = l.sizes[1] = l.sizes[LONG - 1] = l.other[299] = 512;
    percent_of_loops(&l.place, l.sizes, LONG, 80);
    for (unsigned i = 0; i < 20; i++) {
        percent_of_loops(&l.place, l.other, 300, 1);
        percent_of_loops(&l.place, l.sizes, LONG, 1);
        assert_true(percent_of_loops(&l.place, l.sizes, LONG, 4) >= 99);
    }
    end_harness(&l.place);
}

/* The forecast learns what goes on for long: that is no interruption. */
static void
the_next_phase_of_a_program_is_learnt(void **state)
{
    (void)state;
    struct harness p;
    struct program g;
    begin_harness(&p, NULL);
    begin_program(&g, &p, 13);
    percent_hinted(&g, 2000, 1);
    uint64_t plans = p.plans, requests = p.requests;
    while (p.plans == plans && p.requests - requests < 8 * DRYI_FORECAST_PERIOD_MAX)
        evaluate(&g, 1);
    assert_int_equal(p.plans, plans + 1);
    assert_true(p.requests - requests > 2 * DRYI_FORECAST_PERIOD_MAX);
    end_harness(&p);
}

static void
drift_is_learnt_anew(void **state)
{
    (void)state;
    struct harness p;
    struct program g;
    begin_harness(&p, NULL);
    begin_program(&g, &p, 4);
    percent_hinted(&g, 10, 2);
    for (g.scale = 2; g.scale < 6; g.scale++) {
        percent_hinted(&g, 20, 2);
        assert_int_equal(percent_hinted(&g, 20, 2), 100);
    }
    /* The loop inside is seen first, each time. */
    assert_true(p.plans >= 5 && p.plans <= 10);
    end_harness(&p);
}

/*
 * Go through a loop of 100 requests and some more; with those all hints are refused. Returns how
 * often the loop was packed.
 */
static unsigned
loop_refused(struct dryi_forecast *h, uint32_t more, uint32_t times)
{
    const struct dryi_packing_request packing_request = {NULL, 0, PAGE, true};
    struct dryi_packing_info info;
    unsigned packed = 0;
    for (uint32_t i = 0; i < times * (100 + more); i++) {
        uint32_t size = 512 * (1 + i % (100 + more));
        if (dryi_forecast_is_ready(h)) {
            assert_int_equal(pack_at_once(h, &packing_request, &info), DRY_OK);
            packed++;
        }
        struct dryi_hint hint = dryi_forecast_request(h, size, 0);
        if (more > 0 && hint.offset != DRYI_HINT_NONE)
            dryi_forecast_refused(h);
        dryi_forecast_freed(h, hint.ticket, 1 + i);
    }
    return packed;
}

static void
a_small_change_whose_hints_are_refused_is_learnt_anew(void **state)
{
    (void)state;
    struct dryi_forecast *h;
    assert_int_equal(dryi_forecast_create(NULL, &h, NULL), DRY_OK);
    assert_int_equal(loop_refused(h, 0, 20), 1);
    assert_int_equal(dryi_forecast_get_period(h), 100);
    assert_int_equal(loop_refused(h, 3, 1) + loop_refused(h, 0, 5),
                     0); /* once is noise */
    assert_int_equal(dryi_forecast_get_period(h), 100);
    assert_true(loop_refused(h, 3, 20) > 0);
    assert_int_equal(dryi_forecast_get_period(h), 103);
    dryi_forecast_destroy(h);
}

/* --- sequences without a period, or with one that is too long ------------------------------ */

enum sequence { RANDOM, ALL_EQUAL, TOO_LONG, GROWING, LEAKING };

static void
ask_in_sequence(struct dryi_forecast *h, enum sequence kind, size_t count)
{
    struct random r;
    uint32_t tickets[64] = {0};
    struct dryi_packing_info info;
    const struct dryi_packing_request packing_request = {NULL, 0, PAGE, true};
    random_init(&r, 5);
    for (size_t i = 0; i < count; i++) {
        uint64_t size = kind == RANDOM     ? 512 * random_below(&r, 1000)
                        : kind == TOO_LONG ? 512 * (i % (DRYI_FORECAST_PERIOD_MAX + 1))
                        : kind == GROWING  ? 512 * i
                                           : 512;
        if (dryi_forecast_is_ready(h))
            assert_true(pack_at_once(h, &packing_request, &info) == DRY_OK);
        struct dryi_hint hint = dryi_forecast_request(h, size, i % 2);
        tickets[i % 64] = hint.ticket;
        if (kind != LEAKING && i >= 20)
            dryi_forecast_freed(h, tickets[(i - 20) % 64], 1);
    }
}

static void
what_has_no_period_gets_no_hints(void **state)
{
    (void)state;
    static const enum sequence kinds[] = {RANDOM, TOO_LONG, GROWING, LEAKING};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
        struct dryi_forecast *h;
        assert_int_equal(dryi_forecast_create(&memory, &h, NULL), DRY_OK);
        ask_in_sequence(h, kinds[k], 600000);
        assert_false(dryi_forecast_is_ready(h));
        assert_true(fm.peak_bytes < 12u << 20);
        dryi_forecast_destroy(h);
        failing_memory_finish(&fm);
    }
}

static void
equal_requests_are_a_period(void **state)
{
    (void)state;
    struct dryi_forecast *h;
    assert_int_equal(dryi_forecast_create(NULL, &h, NULL), DRY_OK);
    ask_in_sequence(h, ALL_EQUAL, 1000);
    assert_true(dryi_forecast_request(h, 512, 0).offset != DRYI_HINT_NONE);
    assert_true(dryi_forecast_request(h, 513, 0).offset == DRYI_HINT_NONE);
    dryi_forecast_drop(h);
    struct dryi_hint hint = dryi_forecast_request(h, 512, 0);
    assert_true(hint.offset == DRYI_HINT_NONE);
    dryi_forecast_freed(h, hint.ticket + 1000, 1); /* never given */
    dryi_forecast_destroy(h);
}

/* --- the plan --------------------------------------------------------------------------- */

struct found {
    uint64_t end;
    size_t count;
};

static void
note_range(void *self, uint64_t offset, uint64_t size)
{
    struct found *found = self;
    found->count++;
    if (offset + size > found->end)
        found->end = offset + size;
}

/*
 * Every block is placed by its hint, and the harness asserts that none overlap. The layout keeps
 * clear of obstacles and touches few pages.
 */
static void
the_plan_lies_between_obstacles(void **state)
{
    (void)state;
    struct harness p;
    struct program g;
    struct found found = {0};
    begin_harness(&p, NULL);
    begin_program(&g, &p, 7);
    percent_hinted(&g, 5, 1);
    dryi_forecast_walk(p.forecast, note_range, &found);
    assert_int_equal(found.count, p.info.period);
    assert_int_equal(found.end, p.info.height);
    assert_true(p.info.floor > 0 && p.info.height >= p.info.floor);
    assert_int_equal(percent_hinted(&g, 3, 1), 100);
    assert_int_equal(p.refused, 0);

    const struct dryi_obstacle crossed[] = {{0, 1024, false}, {512, 512, false}};
    const struct dryi_packing_request packing_request = {crossed, 2, PAGE, true};
    struct dryi_packing_info info;
    assert_int_equal(pack_at_once(p.forecast, &packing_request, &info), DRY_ERR_ARGUMENT);
    end_harness(&p);
}

/* --- who comes next ----------------------------------------------------------------------- */

#define LOOP_MAX 300

/* Requests that come again and again: each is freed before so many later ones. */
struct loop {
    uint32_t count, ids[2 * LOOP_MAX];
    uint64_t sizes[LOOP_MAX], streams[LOOP_MAX];
    uint32_t gaps[LOOP_MAX];
};

static void
make_loop(struct loop *l, uint64_t seed, uint64_t streams)
{
    struct random r;
    random_init(&r, seed);
    *l = (struct loop){.count = 64 + (uint32_t)random_below(&r, LOOP_MAX - 64)};
    for (uint32_t i = 0; i < l->count; i++) {
        bool is_long = random_below(&r, 4) == 0;
        l->sizes[i] = 512 * (1 + 7 * random_below(&r, 6));
        l->streams[i] = random_below(&r, streams);
        l->gaps[i] =
            1 + (uint32_t)random_below(&r, is_long ? l->count - 1 : l->count / 16);
    }
}

/* Now and then note that all memory a stream has freed may go to another stream. */
static void
pass(const struct harness *p, const struct loop *l, uint32_t i, uint32_t often)
{
    if (often == 0 || i % often != 0)
        return;
    uint32_t from = (uint32_t)l->streams[i], to = (uint32_t)l->streams[i / 2];
    to = i % 3 == 0 ? DRYI_HINT_ANYBODY : to;
    if (from != to)
        dryi_forecast_passed(p->forecast, from, to, 1 + p->requests);
}

static void
run_loop(struct harness *p, struct loop *l, uint32_t times, uint32_t often)
{
    for (uint32_t now = 0; now < times * l->count; now++) {
        for (uint32_t ago = 1; ago <= l->count && ago <= now; ago++) {
            if (l->gaps[(now - ago) % l->count] == ago)
                release(p, l->ids[(now - ago) % (2 * LOOP_MAX)]);
        }
        uint32_t i = now % l->count;
        pass(p, l, i, often);
        l->ids[now % (2 * LOOP_MAX)] = request(p, l->sizes[i], l->streams[i]);
    }
}

/*
 * Return the step that begins first after the end of this one, of all whose range shares a byte
 * with its range.
 */
static uint32_t
naive_next(const struct dryi_forecast *h, uint32_t step)
{
    const struct forecast_step *steps = h->steps, *s = &steps[step];
    uint32_t next = step, least = UINT32_MAX, count = h->step_count;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t wait = (k + 2 * count - s->end) % count;
        bool is_beside = steps[k].offset >= s->offset + s->size ||
                         s->offset >= steps[k].offset + steps[k].size;
        if (steps[k].offset == DRYI_HINT_NONE || is_beside || wait >= least)
            continue;
        next = k;
        least = wait;
    }
    return next;
}

/* Check all successors. Returns how many steps have one. */
static uint32_t
check_successors(const struct dryi_forecast *h)
{
    uint32_t successors = 0;
    for (uint32_t i = 0; i < h->step_count; i++) {
        const struct forecast_step *s = &h->steps[i];
        if (s->offset == DRYI_HINT_NONE) {
            assert_int_equal(s->successor, DRYI_STEP_NONE);
            continue;
        }
        const struct forecast_step *next = &h->steps[naive_next(h, i)];
        bool is_successor = next->offset == s->offset && next->size == s->size &&
                            next->stream == s->stream;
        assert_int_equal(s->successor, is_successor ? next - h->steps : DRYI_STEP_NONE);
        successors += is_successor;
    }
    return successors;
}

static void
a_successor_has_the_place_next_and_whole(void **state)
{
    (void)state;
    uint32_t successors[4] = {0}, steps[4] = {0};
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct harness p;
        struct loop loop;
        uint64_t streams = 1 + seed % 3;
        begin_harness(&p, NULL);
        make_loop(&loop, seed, streams);
        run_loop(&p, &loop, 7, 0);
        assert_true(p.plans > 0);
        assert_int_equal(p.refused, 0);
        successors[streams] += check_successors(p.forecast);
        steps[streams] += p.forecast->step_count;
        end_harness(&p);
    }
    assert_true(successors[1] * 10 >= steps[1] * 5);
    /* Streams whose lives go on into the next period are packed lower, with fewer successors. */
    assert_true(successors[2] * 20 >= steps[2] * 9 && successors[3] * 20 >= steps[3] * 6);
}

/* Return the earliest request from which on the stream may have the life's range. */
static uint64_t
naive_usable(const struct dryi_packing_job *job, uint32_t life, uint32_t stream)
{
    const struct dryi_packing_life *l = &job->lives[life];
    if (l->stream == stream)
        return l->end;
    uint64_t seen = job->usable[life * (size_t)job->stream_count + stream];
    if (!job->can_wait)
        return seen;
    for (uint64_t at = l->end; at < seen; at++) {
        if (at - l->end == job->distance || (at > 0 && at % job->period == 0))
            return at; /* the stream waits here */
    }
    return seen;
}

/*
 * Check that the other life does not begin in the same bytes too early: between the begin of this
 * one and the request from which its stream may have them.
 */
static void
check_apart(const struct dryi_packing_job *job, uint32_t life, uint32_t other)
{
    const struct dryi_packing_life *a = &job->lives[life], *b = &job->lives[other];
    uint64_t lo = job->offsets[life], lo_other = job->offsets[other];
    if (life == other || lo + a->size <= lo_other || lo_other + b->size <= lo)
        return;
    uint64_t usable = naive_usable(job, life, b->stream);
    for (uint64_t begin = b->begin; begin < 4 * (uint64_t)job->period;
         begin += job->period)
        assert_false(begin >= a->begin && begin < usable);
}

static void
lives_of_streams_share_what_they_may(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        struct harness p;
        struct loop loop;
        struct dryi_packing_job *job;
        struct dryi_packing_request packing_request = {NULL, 0, PAGE, seed % 2};
        begin_harness(&p, NULL);
        make_loop(&loop, seed, 2 + seed % 3);
        run_loop(&p, &loop, 7, 5 + (uint32_t)seed % 20);
        assert_int_equal(dryi_packing_job_create(p.forecast, &packing_request, &job),
                         DRY_OK);
        dryi_packing_job_run(job, NULL);
        assert_non_null(job->offsets);
        for (uint32_t i = 0; i < job->count * job->count; i++)
            check_apart(job, i / (uint32_t)job->count, i % (uint32_t)job->count);
        dryi_packing_job_destroy(job);
        end_harness(&p);
    }
}

static void
without_memory_nothing_is_learnt(void **state)
{
    (void)state;
    bool was_planned = false;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct harness p;
        struct program g;
        begin_harness(&p, &memory);
        if (p.forecast) {
            begin_program(&g, &p, 8);
            percent_hinted(&g, 8, 1);
        }
        was_planned = was_planned || p.plans;
        assert_true(!fm.failed || p.plans == 0 || p.taken > 0);
        end_harness(&p);
        failing_memory_finish(&fm);
        if (!fm.failed)
            break;
    }
    assert_true(was_planned);
}

/* --- a recorded training run --------------------------------------------------------------- */

struct bytes_at {
    const unsigned char *bytes;
    size_t count, at;
};

static enum dry_status
read_bytes(void *self, void *buffer, size_t capacity, size_t *got, struct dry_error *err)
{
    struct bytes_at *b = self;
    (void)err;
    *got = b->count - b->at < capacity ? b->count - b->at : capacity;
    memcpy(buffer, b->bytes + b->at, *got);
    b->at += *got;
    return DRY_OK;
}

/*
 * One pass over the recording. What it had before its window stays for good; what it has not
 * freed at the end is freed then, so that passes repeat each other.
 */
static void
run_trace(struct harness *p, const struct dry_trace_view *v, bool is_first)
{
    struct dryi_map ids;
    const struct dryi_map_slot *slot;
    size_t at = 0;
    dryi_map_init(&ids, NULL);
    for (size_t i = 0; i < v->event_count; i++) {
        uint32_t *id = dryi_map_find(&ids, v->addr[i]);
        bool is_free = v->action[i] == DRY_ACTION_FREE_REQUESTED ||
                       v->action[i] == DRY_ACTION_FREE_COMPLETED;
        if (v->action[i] == DRY_ACTION_LIVE && is_first)
            request(p, v->size[i], 0);
        if (v->action[i] == DRY_ACTION_ALLOC)
            assert_true(dryi_map_put(&ids, v->addr[i], request(p, v->size[i], 0)));
        if (id && is_free) {
            release(p, *id);
            dryi_map_take(&ids, v->addr[i]);
        }
    }
    while ((slot = dryi_map_next(&ids, &at)) != NULL)
        release(p, slot->value);
    dryi_map_finish(&ids);
}

static void
a_training_run_is_packed(void **state)
{
    (void)state;
    const char *name = "plain/transformer-medium-512-train.trace";
    struct bytes_at b = {0};
    unsigned char *bytes = bytes_of_trace(name, &b.count);
    if (!bytes)
        skip_because("%s is not in $DRY_TEST_TRACES", name);
    b.bytes = bytes;
    struct dry_source source = {read_bytes, &b};
    struct dry_trace *trace;
    struct harness p;
    assert_int_equal(dry_trace_read(&source, NULL, &trace, NULL), DRY_OK);
    begin_harness(&p, NULL);
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    for (unsigned pass = 0; pass < 5; pass++)
        run_trace(&p, v, pass == 0);
    uint64_t requests = p.requests, taken = p.taken, fixed = 0;
    run_trace(&p, v, false);
    assert_int_equal(p.requests - requests, p.info.period);
    assert_int_equal(p.taken - taken, p.info.period);
    for (size_t i = 0; i < p.count; i++)
        fixed += p.blocks[i].size;
    assert_true((double)p.info.used_pages * PAGE <=
                1.01 * (double)(fixed + p.info.floor));
    end_harness(&p);
    dry_trace_destroy(trace);
    free(bytes);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_is_learnt),
        cmocka_unit_test(the_third_period_is_packed),
        cmocka_unit_test(a_short_period_must_last),
        cmocka_unit_test(the_period_is_the_outer_loop),
        cmocka_unit_test(a_lost_position_is_found_nearby),
        cmocka_unit_test(noise_costs_a_few_hints),
        cmocka_unit_test(an_interruption_costs_no_layout),
        cmocka_unit_test(a_program_that_changed_for_good_is_learnt_anew),
        cmocka_unit_test(the_period_goes_on_where_it_was_left),
        cmocka_unit_test(a_pause_ends_though_the_seam_is_of_equal_requests),
        cmocka_unit_test(the_next_phase_of_a_program_is_learnt),
        cmocka_unit_test(drift_is_learnt_anew),
        cmocka_unit_test(a_small_change_whose_hints_are_refused_is_learnt_anew),
        cmocka_unit_test(what_has_no_period_gets_no_hints),
        cmocka_unit_test(equal_requests_are_a_period),
        cmocka_unit_test(the_plan_lies_between_obstacles),
        cmocka_unit_test(lives_of_streams_share_what_they_may),
        cmocka_unit_test(a_successor_has_the_place_next_and_whole),
        cmocka_unit_test(without_memory_nothing_is_learnt),
        cmocka_unit_test(a_training_run_is_packed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
