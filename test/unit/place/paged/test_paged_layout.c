/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layouts of place/paged: a program that repeats itself runs in little more than what is alive,
 * without the driver. Whatever else it does, nothing overlaps and nothing is lost.
 */
#include "support/cmocka.h"

#include <string.h>

#include <drystone/sim.h>

#include "base/bits.h"
#include "place/forecast/forecast.h"
#include "place/paged/paged.h"
#include "place/paged/record/paged_state.h"
#include "place/torch/torch.h"
#include "support/failing_memory.h"
#include "support/random.h"
#include "support/rounds.h"

#define MIB DRYI_MIB

#define WEIGHTS 20
#define LAYERS 24
#define LOOP_REQUESTS (3 * LAYERS)
#define LOOP_HINTS (LOOP_REQUESTS - 2) /* lives across a loop's end may be left out */

/* --- a program ---------------------------------------------------------------------------- */

struct held {
    dryi_block block;
    uint64_t owner, size, stream;
    bool live;
};

struct rig {
    struct dry_sim *sim;
    struct dryi_place place;
    uint64_t owners, live_bytes, live_peak;
    uint64_t unit;    /* bytes that sizes are multiples of */
    uint64_t streams; /* that the layers go around */
    bool waits;       /* a layer's stream waits for that of the one before */
    bool may_fail;    /* requests may be refused: the program does without */
    struct held weights[WEIGHTS], layers[LAYERS];
    unsigned jobs; /* heard of */
};

static void
on_job(void *self)
{
    struct rig *rig = self;
    rig->jobs++;
}

static bool
open_any(struct rig *rig, const char *conf, uint64_t capacity,
         const struct dry_memory *memory, bool takes_jobs)
{
    struct dry_sim_options sim_options;
    struct dryi_paged_options options = {.memory = memory};
    if (takes_jobs)
        options.wants_job = (struct dryi_paged_call){on_job, rig};
    struct dry_error err;
    *rig = (struct rig){.unit = 4 * MIB, .streams = 1};
    dry_sim_options_init(&sim_options);
    sim_options.capacity_bytes = capacity;
    sim_options.check = true;
    assert_int_equal(dry_sim_create(&sim_options, &rig->sim, &err), DRY_OK);
    options.device = dry_sim_get_device(rig->sim);
    dryi_paged_conf_init(&options.conf);
    assert_int_equal(dryi_paged_conf_parse(conf, strlen(conf), dryi_torch_conf_has,
                                           &options.conf, &err),
                     DRY_OK);
    if (dryi_paged_create(&options, &rig->place, &err) == DRY_OK)
        return true;
    dry_sim_destroy(rig->sim);
    return false;
}

static bool
open_rig(struct rig *rig, const char *conf, uint64_t capacity,
         const struct dry_memory *memory)
{
    return open_any(rig, conf, capacity, memory, false);
}

static void
check_rig(const struct rig *rig)
{
    struct dry_error err = {.text = ""};
    struct dry_sim_finding finding = DRY_INIT(struct dry_sim_finding);
    if (dry_sim_get_finding(rig->sim, 0, &finding) == DRY_OK)
        fail_msg("%s", finding.text);
    enum dry_status status = rig->place.ops->check(rig->place.self, &err);
    if (status != DRY_OK && status != DRY_ERR_MEMORY)
        fail_msg("%s", err.text);
}

static struct dry_pool_counters
counters_of(const struct rig *rig)
{
    struct dry_pool_counters counters = DRY_INIT(struct dry_pool_counters);
    rig->place.ops->get_counters(rig->place.self, &counters);
    return counters;
}

static uint64_t
reserved(const struct rig *rig)
{
    struct dry_stats stats;
    rig->place.ops->get_stats(rig->place.self, &stats);
    return (uint64_t)stats.reserved_bytes.all.current;
}

/* The checker knows of the bytes and that the stream works on them. */
static void
get(struct rig *rig, struct held *held, uint64_t size, uint64_t stream)
{
    dryi_block block;
    enum dry_status status = rig->place.ops->alloc(rig->place.self, size, stream, &block);
    *held = (struct held){.block = block, .size = size, .stream = stream};
    if (status != DRY_OK) {
        assert_true(rig->may_fail);
        return;
    }
    uint64_t addr = rig->place.ops->get_address(rig->place.self, block);
    held->live = true;
    held->owner = ++rig->owners;
    assert_int_equal(dry_sim_own(rig->sim, addr, size, stream, held->owner), DRY_OK);
    assert_int_equal(dry_sim_use(rig->sim, stream, addr, size, held->owner), DRY_OK);
    rig->live_bytes += size;
    if (rig->live_bytes > rig->live_peak)
        rig->live_peak = rig->live_bytes;
}

static void
put(struct rig *rig, struct held *held)
{
    if (!held->live)
        return;
    dry_sim_disown(rig->sim, held->owner);
    held->live = false;
    rig->live_bytes -= held->size;
    assert_int_equal(rig->place.ops->free(rig->place.self, held->block), DRY_OK);
}

static void
take_weights(struct rig *rig)
{
    for (unsigned i = 0; i < WEIGHTS; i++)
        get(rig, &rig->weights[i], rig->unit / 2 * (1 + i % 3), 0);
}

/* The layer before or after it is done when this one begins. */
static void
begin_layer(struct rig *rig, uint64_t stream)
{
    for (uint64_t on = 0; on < rig->streams && rig->waits; on++) {
        if (on == stream)
            continue;
        assert_int_equal(dry_sim_stream_waits(rig->sim, stream, on), DRY_OK);
        assert_int_equal(rig->place.ops->stream_waits(rig->place.self, stream, on),
                         DRY_OK);
    }
}

static uint64_t
layer_size(const struct rig *rig, unsigned i, unsigned variant)
{
    return rig->unit * (1 + (i * 5 + variant) % 7) + 512 * i;
}

static uint64_t
scratch_size(const struct rig *rig, unsigned i, unsigned variant)
{
    return rig->unit * (1 + (i + variant) % 5);
}

static uint64_t
gradient_size(const struct rig *rig, unsigned i, unsigned variant)
{
    return rig->unit * (1 + (i * 3 + variant) % 11);
}

/* Forward keeps a block a layer, backward gives it back; each needs some for a while. */
static void
run_loop(struct rig *rig, unsigned variant)
{
    for (unsigned i = 0; i < LAYERS; i++) {
        uint64_t stream = i % rig->streams;
        struct held scratch;
        begin_layer(rig, stream);
        get(rig, &rig->layers[i], layer_size(rig, i, variant), stream);
        get(rig, &scratch, scratch_size(rig, i, variant), stream);
        put(rig, &scratch);
    }
    for (unsigned i = LAYERS; i-- > 0;) {
        struct held gradient;
        begin_layer(rig, i % rig->streams);
        get(rig, &gradient, gradient_size(rig, i, variant), i % rig->streams);
        put(rig, &rig->layers[i]);
        put(rig, &gradient);
    }
    check_rig(rig);
}

static void
run_loops(struct rig *rig, unsigned variant, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        run_loop(rig, variant);
}

/* Nothing may be left on the device. */
static void
finish_rig(struct rig *rig)
{
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    for (unsigned i = 0; i < LAYERS; i++)
        put(rig, &rig->layers[i]);
    for (unsigned i = 0; i < WEIGHTS; i++)
        put(rig, &rig->weights[i]);
    check_rig(rig);
    assert_int_equal(rig->place.ops->trim(rig->place.self, 0), DRY_OK);
    rig->place.ops->destroy(rig->place.self);
    dry_sim_get_account(rig->sim, &account);
    assert_int_equal(account.used_bytes, 0);
    assert_int_equal(account.pages_live, 0);
    assert_int_equal(account.events_live, 0);
    assert_int_equal(account.reserved_address_bytes, 0);
    dry_sim_destroy(rig->sim);
}

/* Open a program in its third period or later, with a layout. */
static void
open_planned(struct rig *rig, const char *conf)
{
    assert_true(open_rig(rig, conf, DRY_SIM_UNLIMITED, NULL));
    take_weights(rig);
    run_loops(rig, 0, 4);
    assert_int_equal(counters_of(rig).plans_made, 1);
}

/* --- what a plan does --------------------------------------------------------------------- */

static void
a_loop_needs_no_driver_and_little_more_than_what_is_alive(void **state)
{
    (void)state;
    struct rig rig;
    assert_true(open_rig(&rig, "", DRY_SIM_UNLIMITED, NULL));
    take_weights(&rig);
    run_loops(&rig, 0, 3);
    struct dry_pool_counters before = counters_of(&rig);
    assert_int_equal(before.plans_made, 1);
    for (unsigned i = 0; i < 5; i++) {
        run_loop(&rig, 0);
        assert_true(reserved(&rig) * 100 <= rig.live_peak * 101);
    }
    struct dry_pool_counters after = counters_of(&rig);
    assert_int_equal(after.driver_calls, before.driver_calls);
    assert_int_equal(after.plans_made, 1);
    assert_int_equal(after.hints_refused, 0);
    assert_true(after.hints_taken - before.hints_taken >= 5 * LOOP_HINTS);
    finish_rig(&rig);
}

static void
without_the_option_nothing_is_packed(void **state)
{
    (void)state;
    static const char *const confs[] = {"plan:False", "remap:False"};
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        assert_true(open_rig(&rig, confs[i], DRY_SIM_UNLIMITED, NULL));
        take_weights(&rig);
        run_loops(&rig, 0, 6);
        assert_int_equal(counters_of(&rig).plans_made, 0);
        assert_int_equal(counters_of(&rig).hints_taken, 0);
        finish_rig(&rig);
    }
}

static void
private_pools_are_not_planned(void **state)
{
    (void)state;
    struct rig rig;
    struct dryi_pool_id pool = {7, 0};
    assert_true(open_rig(&rig, "", DRY_SIM_UNLIMITED, NULL));
    const struct dryi_place_ops *ops = rig.place.ops;
    assert_int_equal(ops->open_pool(rig.place.self, pool, 0), DRY_OK);
    assert_int_equal(
        ops->begin_pool(rig.place.self, pool, (struct dryi_stream_filter){0}), DRY_OK);
    run_loops(&rig, 0, 6);
    assert_int_equal(ops->end_pool(rig.place.self, pool), DRY_OK);
    assert_int_equal(counters_of(&rig).plans_made, 0);
    assert_int_equal(ops->release_pool(rig.place.self, pool), DRY_OK);
    finish_rig(&rig);
}

static void
a_device_hardly_larger_than_what_is_alive_is_enough(void **state)
{
    (void)state;
    struct rig rig;
    open_planned(&rig, "");
    uint64_t peak = rig.live_peak;
    finish_rig(&rig);
    assert_true(open_rig(&rig, "", dryi_round_up(peak + peak / 50, 2 * MIB), NULL));
    take_weights(&rig);
    run_loops(&rig, 0, 8);
    finish_rig(&rig);
}

/* --- what is not as expected -------------------------------------------------------------- */

static void
a_request_more_is_packed_around(void **state)
{
    (void)state;
    struct rig rig;
    open_planned(&rig, "");
    struct held small, noise;
    get(&rig, &small, 1000, 0);
    struct dry_pool_counters before = counters_of(&rig);
    run_loop(&rig, 0);
    assert_int_equal(counters_of(&rig).hints_refused, before.hints_refused);
    get(&rig, &noise, 3 * MIB, 0);
    run_loops(&rig, 0, 40);
    put(&rig, &noise);
    put(&rig, &small);
    before = counters_of(&rig);
    run_loops(&rig, 0, 3);
    struct dry_pool_counters after = counters_of(&rig);
    assert_true(after.hints_taken - before.hints_taken >= 3 * LOOP_HINTS);
    assert_int_equal(after.driver_calls, before.driver_calls);
    finish_rig(&rig);
}

static void
what_lies_in_the_way_is_gone_around(void **state)
{
    (void)state;
    struct rig rig;
    open_planned(&rig, "");
    struct held others[4];
    for (unsigned i = 0; i < 4; i++)
        get(&rig, &others[i], 5 * MIB + 512, 0);
    struct dry_pool_counters before = counters_of(&rig);
    run_loop(&rig, 0);
    assert_true(counters_of(&rig).hints_refused > before.hints_refused);
    /* Its hints are refused for long, so the layout is made anew around the blocks. */
    run_loops(&rig, 0, 40);
    before = counters_of(&rig);
    assert_true(before.plans_made > 1);
    run_loops(&rig, 0, 2);
    assert_int_equal(counters_of(&rig).hints_refused, before.hints_refused);
    for (unsigned i = 0; i < 4; i++)
        put(&rig, &others[i]);
    finish_rig(&rig);
}

static void
another_loop_gets_another_plan(void **state)
{
    (void)state;
    struct rig rig;
    open_planned(&rig, "");
    run_loops(&rig, 3, 40);
    assert_true(counters_of(&rig).plans_made > 1);
    struct dry_pool_counters before = counters_of(&rig);
    run_loops(&rig, 3, 3);
    struct dry_pool_counters after = counters_of(&rig);
    assert_int_equal(after.driver_calls, before.driver_calls);
    assert_true(after.hints_taken - before.hints_taken >= 3 * LOOP_HINTS);
    finish_rig(&rig);
}

static void
given_back_pages_come_back_under_the_plan(void **state)
{
    (void)state;
    struct rig rig;
    open_planned(&rig, "");
    struct dryi_pool_id all = {0, 0};
    assert_int_equal(rig.place.ops->empty_cache(rig.place.self, all), DRY_OK);
    check_rig(&rig);
    run_loop(&rig, 0);
    struct dry_pool_counters before = counters_of(&rig);
    run_loops(&rig, 0, 2);
    assert_int_equal(counters_of(&rig).driver_calls, before.driver_calls);
    assert_true(counters_of(&rig).hints_taken - before.hints_taken >= 2 * LOOP_HINTS);
    finish_rig(&rig);
}

/* Without a weight in it the segment itself goes back. */
static void
the_segment_of_a_plan_may_go(void **state)
{
    (void)state;
    struct rig rig;
    assert_true(open_rig(&rig, "", DRY_SIM_UNLIMITED, NULL));
    run_loops(&rig, 0, 4);
    assert_int_equal(counters_of(&rig).plans_made, 1);
    struct dryi_pool_id all = {0, 0};
    assert_int_equal(rig.place.ops->empty_cache(rig.place.self, all), DRY_OK);
    assert_int_equal(reserved(&rig), 0);
    run_loops(&rig, 0, 40);
    assert_true(counters_of(&rig).plans_made > 1);
    finish_rig(&rig);
}

/* Calls that move memory; events and waits are none. */
static uint64_t
memory_calls(const struct rig *rig)
{
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(rig->sim, &account);
    return account.calls[DRY_SIM_RESERVE] + account.calls[DRY_SIM_CREATE_PAGE] +
           account.calls[DRY_SIM_RELEASE_PAGE] + account.calls[DRY_SIM_MAP_PAGES] +
           account.calls[DRY_SIM_UNMAP_PAGES];
}

#define GRADIENTS 40

/*
 * A step of training: gradients go after the next step's forward pass, and come again in the
 * backward pass. The first step also makes what the optimizer keeps, between what goes.
 */
static void
run_step(struct rig *rig, bool is_first, struct held *gradients, struct held *states)
{
    struct held layers[GRADIENTS], logits;
    for (unsigned i = 0; i < GRADIENTS; i++)
        get(rig, &layers[i], rig->unit * (2 + i % 5), 0);
    for (unsigned k = 0; k < GRADIENTS; k++)
        put(rig, &gradients[k]);
    get(rig, &logits, rig->unit * 3 * GRADIENTS, 0);
    put(rig, &logits);
    for (unsigned i = GRADIENTS; i-- > 0;) {
        get(rig, &gradients[i], rig->unit * (1 + i % 3) + 512 * i, 0);
        put(rig, &layers[i]);
        if (is_first)
            get(rig, &states[i], rig->unit * (1 + i % 2), 0);
    }
}

static void
gradients_of_the_last_step_are_in_nobodys_way(void **state)
{
    (void)state;
    struct rig rig;
    struct held gradients[GRADIENTS] = {{0}}, states[GRADIENTS];
    assert_true(open_rig(&rig, "", DRY_SIM_UNLIMITED, NULL));
    for (unsigned i = 0; i < 8; i++)
        run_step(&rig, i == 0, gradients, states);
    assert_true(counters_of(&rig).plans_made > 0);
    assert_int_equal(counters_of(&rig).hints_refused, 0);
    uint64_t calls = memory_calls(&rig);
    for (unsigned i = 0; i < 4; i++)
        run_step(&rig, false, gradients, states);
    assert_int_equal(memory_calls(&rig), calls);
    assert_true(reserved(&rig) * 100 <= rig.live_peak * 102);
    for (unsigned i = 0; i < GRADIENTS; i++) {
        put(&rig, &gradients[i]);
        put(&rig, &states[i]);
    }
    finish_rig(&rig);
}

static void
pages_that_move_again_and_again_are_bought(void **state)
{
    (void)state;
    struct rig rig;
    struct held gradients[GRADIENTS] = {{0}}, states[GRADIENTS];
    assert_true(open_rig(&rig, "plan:False,budget:1.0", DRY_SIM_UNLIMITED, NULL));
    for (unsigned i = 0; i < 20; i++)
        run_step(&rig, i == 0, gradients, states);
    uint64_t calls = memory_calls(&rig), peak = rig.live_peak / (2 * MIB);
    for (unsigned i = 0; i < 10; i++)
        run_step(&rig, false, gradients, states);
    assert_int_equal(memory_calls(&rig), calls);
    uint64_t moved = counters_of(&rig).pages_remapped;
    assert_true(moved > peak);
    assert_true(moved <= peak + (reserved(&rig) - rig.live_peak) / (2 * MIB) +
                             3 * GRADIENTS * rig.unit / (2 * MIB));
    for (unsigned i = 0; i < GRADIENTS; i++) {
        put(&rig, &gradients[i]);
        put(&rig, &states[i]);
    }
    finish_rig(&rig);
}

/* Ranges go from stream to stream; the checker sees that each time there is an order. */
static void
streams_of_a_loop_share_a_plan(void **state)
{
    (void)state;
    for (uint64_t streams = 2; streams <= 4; streams++) {
        struct rig rig;
        assert_true(open_rig(&rig, "", DRY_SIM_UNLIMITED, NULL));
        rig.streams = streams;
        take_weights(&rig);
        run_loops(&rig, 0, 4);
        assert_int_equal(counters_of(&rig).plans_made, 1);
        struct dry_pool_counters before = counters_of(&rig);
        uint64_t calls = memory_calls(&rig);
        run_loops(&rig, 0, 5);
        struct dry_pool_counters after = counters_of(&rig);
        assert_int_equal(memory_calls(&rig), calls);
        assert_true(reserved(&rig) * 100 <= rig.live_peak * 101);
        assert_int_equal(after.hints_refused, before.hints_refused);
        assert_true(after.reused_waiting > before.reused_waiting);
        assert_true(after.reused_waiting - before.reused_waiting <= 5 * LOOP_REQUESTS);
        finish_rig(&rig);
    }
}

/* Told of the order by the program, none is put in. */
static void
streams_that_wait_for_each_other_need_no_more(void **state)
{
    (void)state;
    struct rig rig;
    assert_true(open_rig(&rig, "reuse_waiting:False", DRY_SIM_UNLIMITED, NULL));
    rig.streams = 3;
    rig.waits = true;
    take_weights(&rig);
    run_loops(&rig, 0, 4);
    struct dry_pool_counters before = counters_of(&rig);
    uint64_t calls = memory_calls(&rig);
    assert_int_equal(before.plans_made, 1);
    run_loops(&rig, 0, 5);
    assert_int_equal(memory_calls(&rig), calls);
    assert_true(reserved(&rig) * 100 <= rig.live_peak * 101);
    assert_int_equal(counters_of(&rig).reused_waiting, 0);
    assert_int_equal(counters_of(&rig).hints_refused, before.hints_refused);
    finish_rig(&rig);
}

/* The checker proves the order: no other stream gets what one frees without an event. */
static void
streams_of_a_loop_keep_apart(void **state)
{
    (void)state;
    for (uint64_t streams = 2; streams <= 4; streams++) {
        struct rig rig;
        assert_true(open_rig(&rig, "reuse_waiting:False", DRY_SIM_UNLIMITED, NULL));
        rig.streams = streams;
        take_weights(&rig);
        for (unsigned i = 0; i < 24; i++) {
            run_loop(&rig, 0);
            if (i % 3 == 0)
                dry_sim_complete_stream(rig.sim, i % streams);
            rig.place.ops->process_events(rig.place.self);
        }
        finish_rig(&rig);
    }
}

/* Another stream works on the block behind what its own did; the place is told of the use. */
static void
use_elsewhere(struct rig *rig, const struct held *held, uint64_t stream)
{
    if (!held->live || held->stream == stream)
        return;
    uint64_t addr = rig->place.ops->get_address(rig->place.self, held->block);
    assert_int_equal(dry_sim_stream_waits(rig->sim, stream, held->stream), DRY_OK);
    assert_int_equal(dry_sim_use(rig->sim, stream, addr, held->size, held->owner),
                     DRY_OK);
    assert_int_equal(rig->place.ops->record_stream(rig->place.self, held->block, stream),
                     DRY_OK);
}

#define NOISE 6

/* The loop, with a request too many now and then, and events that pass when they like. */
static void
run_noisy_loop(struct rig *rig, struct random *r, struct held noise[NOISE])
{
    for (unsigned i = 0; i < LAYERS; i++) {
        uint64_t stream = i % rig->streams;
        struct held scratch;
        get(rig, &rig->layers[i], layer_size(rig, i, 0), stream);
        get(rig, &scratch, scratch_size(rig, i, 0), stream);
        if (i % 3 == 0)
            use_elsewhere(rig, &scratch, (stream + 1) % rig->streams);
        put(rig, &scratch);
        if (random_below(r, 200) == 0) {
            struct held *held = &noise[random_below(r, NOISE)];
            put(rig, held);
            get(rig, held, MIB * (1 + random_below(r, 9)), random_below(r, 4));
        }
        if (random_below(r, 10) == 0)
            dry_sim_complete_stream(rig->sim, random_below(r, rig->streams));
    }
    for (unsigned i = LAYERS; i-- > 0;) {
        struct held gradient;
        get(rig, &gradient, gradient_size(rig, i, 0), i % rig->streams);
        if (random_below(r, 10) == 0)
            use_elsewhere(rig, &rig->layers[i], random_below(r, rig->streams));
        put(rig, &rig->layers[i]);
        put(rig, &gradient);
    }
    check_rig(rig);
}

static void
nothing_is_given_over_too_early(void **state)
{
    (void)state;
    static const char *const confs[] = {"", "reuse_waiting:False", "reuse_passed:False",
                                        "reuse_ordered:False"};
    uint64_t plans = 0, taken = 0, refused = 0, waits = 0;
    for (uint64_t seed = 1; seed <= 32; seed++) {
        struct rig rig;
        struct random r;
        struct held noise[NOISE] = {{0}};
        random_init(&r, seed);
        assert_true(open_rig(&rig, confs[seed % 4], DRY_SIM_UNLIMITED, NULL));
        rig.streams = seed <= 24 ? 2 + seed % 3 : 1;
        take_weights(&rig);
        for (unsigned i = 0; i < 40; i++)
            run_noisy_loop(&rig, &r, noise);
        struct dry_pool_counters counters = counters_of(&rig);
        plans += counters.plans_made;
        taken += counters.hints_taken;
        refused += counters.hints_refused;
        waits += counters.reused_waiting;
        for (unsigned i = 0; i < NOISE; i++)
            put(&rig, &noise[i]);
        finish_rig(&rig);
    }
    assert_true(plans >= 24 && waits > 0);
    assert_true(taken > refused && refused > 0);
}

static void
a_capture_holds_a_plan_off(void **state)
{
    (void)state;
    struct rig rig;
    assert_true(open_rig(&rig, "", DRY_SIM_UNLIMITED, NULL));
    const struct dryi_place_ops *ops = rig.place.ops;
    take_weights(&rig);
    run_loops(&rig, 0, 2);
    assert_int_equal(ops->begin_capture(rig.place.self, (struct dryi_stream_filter){0}),
                     DRY_OK);
    run_loops(&rig, 0, 3);
    assert_int_equal(counters_of(&rig).plans_made, 0);
    assert_int_equal(ops->end_capture(rig.place.self), DRY_OK);
    run_loops(&rig, 0, 3);
    assert_int_equal(counters_of(&rig).plans_made, 1);
    finish_rig(&rig);
}

/* --- successors --------------------------------------------------------------------------- */

static uint32_t
waiting(const struct rig *rig)
{
    const struct dryi_paged *p = rig->place.self;
    return p->layout.parked_count;
}

/* Run forward. Returns how many of its requests got the block parked for them. */
static unsigned
run_forward(struct rig *rig)
{
    unsigned inherited = 0;
    for (unsigned i = 0; i < LAYERS; i++) {
        struct held scratch;
        uint32_t before = waiting(rig);
        get(rig, &rig->layers[i], layer_size(rig, i, 0), 0);
        inherited += waiting(rig) < before;
        before = waiting(rig);
        get(rig, &scratch, scratch_size(rig, i, 0), 0);
        inherited += waiting(rig) < before;
        put(rig, &scratch);
        check_rig(rig);
    }
    return inherited;
}

static void
run_backward(struct rig *rig)
{
    for (unsigned i = LAYERS; i-- > 0;) {
        struct held gradient;
        get(rig, &gradient, gradient_size(rig, i, 0), 0);
        put(rig, &rig->layers[i]);
        put(rig, &gradient);
        check_rig(rig);
    }
}

static void
a_block_waits_for_the_request_that_has_its_place_next(void **state)
{
    (void)state;
    struct rig rig;
    open_planned(&rig, "");
    assert_true(waiting(&rig) > 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_true(run_forward(&rig) > 4); /* few sizes come twice */
        run_backward(&rig);
    }
    finish_rig(&rig);
}

static enum dry_status
note_largest(void *visitor, const struct dryi_segment_info *segment,
             const struct dryi_block_info *blocks, size_t count)
{
    uint64_t *largest = visitor;
    (void)segment;
    for (size_t i = 0; i < count; i++) {
        if (!blocks[i].allocated && !blocks[i].pending && blocks[i].size > *largest)
            *largest = blocks[i].size;
    }
    return DRY_OK;
}

/*
 * Requests that no layout has take parked blocks: no page more is needed, but for small requests,
 * which lie elsewhere. Later blocks are parked again.
 */
static void
what_waits_is_there_for_whoever_needs_it(void **state)
{
    (void)state;
    for (unsigned is_small = 0; is_small < 2; is_small++) {
        struct rig rig;
        struct held others[8000] = {{0}};
        open_planned(&rig, "");
        uint64_t most = reserved(&rig), spare = 0;
        assert_int_equal(rig.place.ops->walk(rig.place.self, note_largest, &spare),
                         DRY_OK);
        uint64_t size = is_small ? 60 * 1024 : spare;
        unsigned count = (unsigned)(spare / size);
        assert_true(count > 0 && count <= 8000);
        for (unsigned i = 0; i < count; i++)
            get(&rig, &others[i], size, 0);
        if (is_small)
            assert_true(reserved(&rig) * 100 <= rig.live_peak * 106);
        else
            assert_int_equal(reserved(&rig), most);
        assert_int_equal(waiting(&rig), 0);
        check_rig(&rig);
        for (unsigned i = 0; i < count; i++)
            put(&rig, &others[i]);
        run_loops(&rig, 0, 3); /* the pages of small blocks come back */
        struct dry_pool_counters before = counters_of(&rig);
        run_loops(&rig, 0, 3);
        assert_int_equal(counters_of(&rig).hints_refused, before.hints_refused);
        assert_int_equal(counters_of(&rig).driver_calls, before.driver_calls);
        assert_true(waiting(&rig) > 0);
        finish_rig(&rig);
    }
}

/*
 * A step that lives longer than the period has no range in the layout. Parked blocks are taken for
 * it before a page is made, though the budget has room for some.
 */
static void
what_waits_is_there_for_a_step_without_a_place(void **state)
{
    (void)state;
    struct rig rig;
    struct held longs[2] = {{0}};
    assert_true(open_rig(&rig, "", DRY_SIM_UNLIMITED, NULL));
    take_weights(&rig);
    for (unsigned n = 0; n < 5; n++) {
        get(&rig, &longs[n % 2], rig.unit * 75, 0);
        put(&rig, &longs[(n + 1) % 2]);
        run_forward(&rig);
        run_backward(&rig);
        assert_true(n < 2 || reserved(&rig) * 100 <= rig.live_peak * 101);
    }
    assert_int_equal(counters_of(&rig).plans_made, 1);
    for (unsigned i = 0; i < 2; i++)
        put(&rig, &longs[i]);
    finish_rig(&rig);
}

/*
 * Run forward but for one request, or with its block freed at the end. Hints are refused to the
 * end.
 */
static uint64_t
run_unexpected(struct rig *rig, unsigned layer, bool is_late)
{
    struct dry_pool_counters before = counters_of(rig);
    struct held late = {0};
    for (unsigned i = 0; i < LAYERS; i++) {
        struct held scratch = {0};
        get(rig, &rig->layers[i], layer_size(rig, i, 0), 0);
        if (i != layer || is_late)
            get(rig, &scratch, scratch_size(rig, i, 0), 0);
        if (i == layer)
            late = scratch;
        else
            put(rig, &scratch);
    }
    put(rig, &late);
    run_backward(rig);
    return counters_of(rig).hints_refused - before.hints_refused;
}

static void
a_successor_that_does_not_come_costs_no_hint(void **state)
{
    (void)state;
    for (unsigned layer = 0; layer < LAYERS; layer++) {
        struct rig rig;
        open_planned(&rig, "");
        struct dry_pool_counters before = counters_of(&rig);
        assert_int_equal(run_unexpected(&rig, layer, false), 0);
        run_loops(&rig, 0, 2);
        struct dry_pool_counters after = counters_of(&rig);
        assert_int_equal(after.hints_refused, before.hints_refused);
        assert_true(after.hints_taken - before.hints_taken >= 3 * LOOP_HINTS - 4);
        finish_rig(&rig);
    }
}

/* A block freed when its successor was there already is parked for that of the next period. */
static void
what_waits_in_vain_makes_way(void **state)
{
    (void)state;
    static const unsigned layers[] = {13, 18};
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        open_planned(&rig, "");
        assert_true(run_unexpected(&rig, layers[i], true) <= 2);
        finish_rig(&rig);
    }
}

static void
what_waits_goes_back_with_the_rest(void **state)
{
    (void)state;
    struct rig rig;
    struct dryi_pool_id all = {0, 0};
    open_planned(&rig, "");
    assert_true(waiting(&rig) > 0);
    assert_int_equal(rig.place.ops->empty_cache(rig.place.self, all), DRY_OK);
    assert_int_equal(waiting(&rig), 0);
    assert_true(reserved(&rig) <= rig.live_bytes + (WEIGHTS + 1) * 2 * MIB);
    run_loops(&rig, 0, 2);
    assert_true(waiting(&rig) > 0);
    rig.place.caches->share(rig.place.self, true);
    assert_int_equal(waiting(&rig), 0);
    check_rig(&rig);
    finish_rig(&rig);
}

static bool
has_successor(const struct rig *rig, const struct held *held)
{
    const struct dryi_paged *p = rig->place.self;
    const struct block *b = &p->blocks[held->block];
    return b->has_ticket && b->bin_next != NONE;
}

/* Blocks that one layout has placed are freed under another one, which has none of them. */
static void
what_an_older_plan_placed_has_no_successor(void **state)
{
    (void)state;
    struct rig rig;
    struct held older[LAYERS];
    unsigned count = 0;
    open_planned(&rig, "");
    for (unsigned i = 0; i < LAYERS; i++) {
        struct held scratch;
        get(&rig, &rig.layers[i], layer_size(&rig, i, 0), 0);
        get(&rig, &scratch, scratch_size(&rig, i, 0), 0);
        if (has_successor(&rig, &scratch))
            older[count++] = scratch;
        else
            put(&rig, &scratch);
    }
    run_backward(&rig);
    assert_true(count > 2);
    run_loops(&rig, 3, 60);
    assert_true(counters_of(&rig).plans_made > 1);
    for (unsigned i = 0; i < count; i++) {
        uint32_t before = waiting(&rig);
        put(&rig, &older[i]);
        assert_int_equal(waiting(&rig), before);
        check_rig(&rig);
    }
    run_loops(&rig, 3, 3);
    finish_rig(&rig);
}

/* The layout is given up: blocks parked for it are free for the best fit. */
static void
without_a_plan_nothing_waits(void **state)
{
    (void)state;
    struct rig rig;
    open_planned(&rig, "");
    assert_true(waiting(&rig) > 0);
    for (unsigned i = 0; i < 30; i++) {
        struct held other;
        get(&rig, &other, 2 * MIB + 512 * i, 0);
        put(&rig, &other);
    }
    assert_int_equal(waiting(&rig), 0);
    finish_rig(&rig);
}

/* A capture asks for what the layout does not have; a private pool has memory of its own. */
static void
what_waits_is_the_default_pools(void **state)
{
    (void)state;
    struct rig rig;
    struct held other;
    struct dryi_pool_id pool = {7, 0};
    open_planned(&rig, "");
    const struct dryi_place_ops *ops = rig.place.ops;
    uint32_t before = waiting(&rig);
    assert_true(before > 0);
    assert_int_equal(ops->open_pool(rig.place.self, pool, 0), DRY_OK);
    assert_int_equal(
        ops->begin_pool(rig.place.self, pool, (struct dryi_stream_filter){0}), DRY_OK);
    get(&rig, &other, 2 * MIB, 0);
    put(&rig, &other);
    assert_int_equal(waiting(&rig), before);
    assert_int_equal(ops->end_pool(rig.place.self, pool), DRY_OK);
    assert_int_equal(ops->release_pool(rig.place.self, pool), DRY_OK);
    assert_int_equal(ops->begin_capture(rig.place.self, (struct dryi_stream_filter){0}),
                     DRY_OK);
    get(&rig, &other, 2 * MIB, 0);
    assert_int_equal(waiting(&rig), 0);
    assert_int_equal(ops->end_capture(rig.place.self), DRY_OK);
    put(&rig, &other);
    finish_rig(&rig);
}

#define MANY (PARKED_MAX + PARKED_MAX / 2)

/*
 * More blocks are freed at once than may be parked: the rest is merged, and parked blocks are
 * found.
 */
static void
only_so_many_wait(void **state)
{
    (void)state;
    struct rig rig;
    static struct held held[MANY];
    assert_true(open_rig(&rig, "", DRY_SIM_UNLIMITED, NULL));
    for (unsigned n = 0; n < 5; n++) {
        for (unsigned i = 0; i < MANY; i++)
            get(&rig, &held[i], (128 + i % 7) * 1024, 0);
        for (unsigned i = 0; i < MANY; i++)
            put(&rig, &held[i]);
        check_rig(&rig);
    }
    assert_int_equal(counters_of(&rig).plans_made, 1);
    assert_int_equal(waiting(&rig), PARKED_MAX);
    get(&rig, &held[0], 5 * MIB, 0);
    assert_int_equal(waiting(&rig), 0);
    put(&rig, &held[0]);
    finish_rig(&rig);
}

/* --- packed elsewhere --------------------------------------------------------------------- */

/* A program whose period is known, and the job that its place has for it. */
static struct dryi_packing_job *
open_with_job(struct rig *rig, uint64_t streams)
{
    assert_true(open_any(rig, "", DRY_SIM_UNLIMITED, NULL, true));
    rig->streams = streams;
    take_weights(rig);
    assert_null(rig->place.ops->take_job(rig->place.self));
    run_loops(rig, 0, 4);
    assert_int_equal(rig->jobs, 1); /* nobody came for it: it is not asked for again */
    assert_int_equal(counters_of(rig).plans_made, 0);
    struct dryi_packing_job *job = rig->place.ops->take_job(rig->place.self);
    assert_non_null(job);
    assert_null(rig->place.ops->take_job(rig->place.self));
    return job;
}

static void
give_job_back(struct rig *rig, struct dryi_packing_job *job)
{
    rig->place.ops->return_job(rig->place.self, job);
}

static void
a_packing_is_adopted_when_the_next_period_begins(void **state)
{
    (void)state;
    for (uint64_t streams = 1; streams <= 3; streams++) {
        struct rig rig;
        struct dryi_packing_job *job = open_with_job(&rig, streams);
        run_loops(&rig, 0, 3);
        dryi_packing_job_run(job, NULL);
        run_loops(&rig, 0, 2);
        assert_int_equal(counters_of(&rig).plans_made, 0);
        give_job_back(&rig, job);
        run_loops(&rig, 0, 2);
        assert_int_equal(counters_of(&rig).plans_made, 1);
        struct dry_pool_counters before = counters_of(&rig);
        uint64_t calls = memory_calls(&rig);
        run_loops(&rig, 0, 5);
        assert_int_equal(memory_calls(&rig), calls);
        assert_true(reserved(&rig) * 100 <= rig.live_peak * 101);
        assert_int_equal(counters_of(&rig).hints_refused, before.hints_refused);
        finish_rig(&rig);
    }
}

/*
 * Blocks lie by now where the layout would be: the packing is not taken, and another one is made.
 */
static void
a_packing_that_comes_too_late_makes_nothing_worse(void **state)
{
    (void)state;
    struct rig rig;
    struct held others[40];
    struct dryi_packing_job *job = open_with_job(&rig, 1);
    dryi_packing_job_run(job, NULL);
    for (unsigned i = 0; i < 40; i++)
        get(&rig, &others[i], 2 * MIB + 512 * i, 0);
    uint64_t most = 0;
    give_job_back(&rig, job);
    for (unsigned i = 0; i < 3; i++) {
        run_loop(&rig, 0);
        most = reserved(&rig) > most ? reserved(&rig) : most;
    }
    assert_int_equal(counters_of(&rig).plans_made, 0);
    assert_true(most * 100 <= rig.live_peak * 106);
    run_loops(&rig, 0, 80); /* the place makes no layout for a while */
    job = rig.place.ops->take_job(rig.place.self);
    assert_non_null(job);
    dryi_packing_job_run(job, NULL);
    give_job_back(&rig, job);
    run_loops(&rig, 0, 2);
    assert_int_equal(counters_of(&rig).plans_made, 1);
    uint64_t calls = memory_calls(&rig);
    run_loops(&rig, 0, 3);
    assert_int_equal(memory_calls(&rig), calls);
    assert_true(reserved(&rig) * 100 <= rig.live_peak * 101);
    for (unsigned i = 0; i < 40; i++)
        put(&rig, &others[i]);
    finish_rig(&rig);
}

/* A job that is cancelled, not run at all, or of a former period makes no layout. */
static void
a_job_may_come_back_undone(void **state)
{
    (void)state;
    for (unsigned how = 0; how < 3; how++) {
        struct rig rig;
        struct dryi_packing_job *job = open_with_job(&rig, 2);
        if (how == 0)
            dryi_packing_job_cancel(job);
        if (how != 1)
            dryi_packing_job_run(job, NULL);
        if (how == 2)
            run_loops(&rig, 3, 6); /* another period */
        give_job_back(&rig, job);
        run_loops(&rig, how == 2 ? 3 : 0, 3);
        assert_int_equal(counters_of(&rig).plans_made, 0);
        assert_int_equal(counters_of(&rig).hints_taken, 0);
        finish_rig(&rig);
    }
}

static void
a_packing_without_memory_is_no_plan(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct rig rig;
        struct dryi_packing_job *job = open_with_job(&rig, 3);
        dryi_packing_job_run(job, &memory);
        bool failed = fm.failed;
        failing_memory_finish(&fm);
        give_job_back(&rig, job);
        run_loop(&rig, 0);
        assert_int_equal(counters_of(&rig).plans_made, failed ? 0 : 1);
        finish_rig(&rig);
        if (!failed)
            break;
    }
}

/* --- failures ----------------------------------------------------------------------------- */

static uint64_t
calls_made(const struct dry_sim *sim)
{
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    uint64_t made = 0;
    dry_sim_get_account(sim, &account);
    for (int i = 0; i < DRY_SIM_CALL_COUNT; i++)
        made += account.calls[i];
    return made;
}

/*
 * A smaller program, so that there are fewer calls; a hole in the pages on the way to the layout.
 */
static void
run_failing(struct rig *rig)
{
    rig->unit = MIB / 2;
    rig->may_fail = true;
    take_weights(rig);
    run_loops(rig, 0, 1);
    struct held other;
    get(rig, &other, 40 * MIB, 0);
    put(rig, &other);
    run_loops(rig, 0, 4);
}

static void
every_device_call_may_fail(void **state)
{
    (void)state;
    uint64_t made = 0, plans = 0;
    for (uint64_t n = 0; n / 2 <= made; n += IS_SANITIZED ? 3 : 1) {
        struct rig rig;
        uint64_t call = n / 2;
        assert_true(open_rig(&rig, "", DRY_SIM_UNLIMITED, NULL));
        rig.streams = n % 2 ? 3 : 1;
        dry_sim_fail_at(rig.sim, call);
        run_failing(&rig);
        made = calls_made(rig.sim) > made ? calls_made(rig.sim) : made;
        plans += counters_of(&rig).plans_made;
        dry_sim_fail_at(rig.sim, UINT64_MAX);
        run_loops(&rig, 0, 2);
        finish_rig(&rig);
    }
    assert_true(plans > 0);
}

static void
fail_every_request_for_memory(uint64_t streams)
{
    uint64_t plans = 0;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct rig rig;
        bool opened = open_rig(&rig, "", DRY_SIM_UNLIMITED, &memory), failed = false;
        if (opened) {
            rig.streams = streams;
            run_failing(&rig);
            failed = fm.failed;
            fm.failed = false; /* from here on there is memory again */
            fm.left = SIZE_MAX;
            plans += counters_of(&rig).plans_made;
            run_loops(&rig, 0, 2);
            finish_rig(&rig);
        }
        failing_memory_finish(&fm);
        if (opened && !failed)
            break;
    }
    assert_true(plans > 0);
}

static void
every_request_for_memory_may_fail(void **state)
{
    (void)state;
    fail_every_request_for_memory(1);
    fail_every_request_for_memory(3);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_loop_needs_no_driver_and_little_more_than_what_is_alive),
        cmocka_unit_test(without_the_option_nothing_is_packed),
        cmocka_unit_test(private_pools_are_not_planned),
        cmocka_unit_test(a_device_hardly_larger_than_what_is_alive_is_enough),
        cmocka_unit_test(a_request_more_is_packed_around),
        cmocka_unit_test(what_lies_in_the_way_is_gone_around),
        cmocka_unit_test(another_loop_gets_another_plan),
        cmocka_unit_test(given_back_pages_come_back_under_the_plan),
        cmocka_unit_test(the_segment_of_a_plan_may_go),
        cmocka_unit_test(gradients_of_the_last_step_are_in_nobodys_way),
        cmocka_unit_test(pages_that_move_again_and_again_are_bought),
        cmocka_unit_test(streams_of_a_loop_share_a_plan),
        cmocka_unit_test(streams_that_wait_for_each_other_need_no_more),
        cmocka_unit_test(streams_of_a_loop_keep_apart),
        cmocka_unit_test(nothing_is_given_over_too_early),
        cmocka_unit_test(a_capture_holds_a_plan_off),
        cmocka_unit_test(a_block_waits_for_the_request_that_has_its_place_next),
        cmocka_unit_test(what_waits_is_there_for_whoever_needs_it),
        cmocka_unit_test(what_waits_is_there_for_a_step_without_a_place),
        cmocka_unit_test(a_successor_that_does_not_come_costs_no_hint),
        cmocka_unit_test(what_waits_in_vain_makes_way),
        cmocka_unit_test(what_waits_goes_back_with_the_rest),
        cmocka_unit_test(what_an_older_plan_placed_has_no_successor),
        cmocka_unit_test(without_a_plan_nothing_waits),
        cmocka_unit_test(what_waits_is_the_default_pools),
        cmocka_unit_test(only_so_many_wait),
        cmocka_unit_test(a_packing_is_adopted_when_the_next_period_begins),
        cmocka_unit_test(a_packing_that_comes_too_late_makes_nothing_worse),
        cmocka_unit_test(a_job_may_come_back_undone),
        cmocka_unit_test(a_packing_without_memory_is_no_plan),
        cmocka_unit_test(every_device_call_may_fail),
        cmocka_unit_test(every_request_for_memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
