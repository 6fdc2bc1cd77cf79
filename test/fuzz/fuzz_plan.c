/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes are a chain, up to the largest numbers there are, and the options of a planner. A
 * plan is what the evaluation says of its items and within the budget; between the bound and the
 * floor everything is as summaries promise; what is refused says why.
 */
#include "support/fuzz.h"

#include <stdlib.h>

#include <drystone/plan.h>

#define STAGES_MAX 48u
#define OPTIONS_MAX 3u

/* A byte shifted by another: from 0 to beyond 63 bits. */
static uint64_t
next_number(struct fuzz_bytes *in)
{
    uint64_t value = fuzz_next_byte(in);
    uint8_t shift = fuzz_next_byte(in);
    return shift < 128 ? value : value << (shift & 63);
}

static void
read_stage(struct fuzz_bytes *in, struct dry_chain *chain)
{
    struct dry_stage_option options[OPTIONS_MAX];
    struct dry_stage stage = {.options = options};
    uint8_t flags = fuzz_next_byte(in);
    stage.forward_ns = next_number(in);
    stage.backward_ns = next_number(in);
    stage.output_bytes = next_number(in);
    stage.gradient_bytes = flags & 1 ? stage.output_bytes : next_number(in);
    stage.saved_bytes = next_number(in) + stage.output_bytes;
    stage.forward_tmp_bytes = flags & 2 ? next_number(in) : 0;
    stage.backward_tmp_bytes = flags & 4 ? next_number(in) : 0;
    stage.grads_bytes = flags & 8 ? next_number(in) : 0;
    stage.is_fixed = (flags & 48) == 48;
    stage.option_count = flags >> 6;
    for (size_t k = 0; k < stage.option_count; k++) {
        options[k] = (struct dry_stage_option){
            .saved_bytes = stage.output_bytes + next_number(in),
            .recompute_ns = next_number(in),
            .backward_tmp_bytes = next_number(in),
            .offload_bytes = next_number(in),
            .forward_tmp_bytes = stage.backward_tmp_bytes,
            .has_forward_tmp = flags & 4,
        };
    }
    uint8_t repeat = fuzz_next_byte(in);
    if (dry_chain_get_count(chain) + repeat <= STAGES_MAX)
        (void)dry_chain_add(chain, &stage, repeat, NULL);
}

static void
check_plan(const struct dry_chain *chain, const struct dry_plan *plan)
{
    const struct dry_plan_summary *s = dry_plan_get_summary(plan);
    struct dry_plan_cost cost;
    size_t count;
    const struct dry_plan_item *items = dry_plan_get_items(plan, &count);
    fuzz_require(dry_plan_evaluate(chain, items, count, NULL, &cost, NULL) == DRY_OK);
    fuzz_require(cost.peak_bytes == s->cost.peak_bytes &&
                 cost.time_ns == s->cost.time_ns);
    fuzz_require(cost.peak_bytes <= s->budget_bytes && cost.peak_bytes >= s->floor_bytes);
    fuzz_require(cost.base_ns <= s->bound_ns && s->bound_ns <= cost.time_ns);
    fuzz_require(dry_plan_hash(chain, items, count) == s->hash);
    fuzz_require((s->plan_class == DRY_CLASS_OPTIMAL) >= (cost.extra_ns == 0));
}

static bool
has_offload(const struct dry_chain *chain)
{
    for (size_t i = 0; i < dry_chain_get_count(chain); i++) {
        const struct dry_stage *stage = dry_chain_get_stage(chain, i);
        for (size_t k = 0; k < stage->option_count; k++) {
            if (stage->options[k].offload_bytes)
                return true;
        }
    }
    return false;
}

/*
 * Is the least budget one that something fits, and does nothing fit less? Not by the nested
 * planner where bytes are offloaded, which its tables hold all the time, or where the tables
 * may not grow until the window is wide enough.
 */
static bool
has_sharp_floor(const struct dry_chain *chain, const struct dry_plan_options *options)
{
    struct dry_plan_options plain;
    dry_plan_options_init(&plain);
    return options->method != DRY_METHOD_NESTED ||
           (!has_offload(chain) && options->table_bytes_max == plain.table_bytes_max);
}

static void
check_floor(const struct dry_chain *chain, struct dry_plan_options options,
            uint64_t floor)
{
    struct dry_plan *plan;
    struct dry_error err = {.text = ""};
    options.budget_bytes = floor;
    enum dry_status status = dry_plan_create(chain, &options, &plan, &err);
    fuzz_require(status == DRY_OK || status == DRY_ERR_LIMIT);
    if (status == DRY_OK) {
        fuzz_require(dry_plan_get_summary(plan)->floor_bytes == floor);
        check_plan(chain, plan);
        dry_plan_destroy(plan);
    }
    if (floor == 0)
        return;
    options.budget_bytes = floor - 1;
    status = dry_plan_create(chain, &options, &plan, &err);
    fuzz_require(status == DRY_ERR_NO_SPACE || status == DRY_ERR_LIMIT);
}

static struct dry_plan_options
read_options(struct fuzz_bytes *in)
{
    struct dry_plan_options options;
    dry_plan_options_init(&options);
    options.method = (enum dry_plan_method)(fuzz_next_byte(in) % DRY_METHOD_COUNT);
    options.slots = 1 + fuzz_next_byte(in) / 2u;
    options.window = fuzz_next_byte(in);
    options.every = 1 + fuzz_next_byte(in);
    uint8_t tables = fuzz_next_byte(in);
    if (tables)
        options.table_bytes_max = (uint64_t)tables << 12;
    return options;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes in = {data, size};
    struct dry_plan_options options = read_options(&in);
    struct dry_chain_frame frame = {.persistent_bytes = next_number(&in)};
    struct dry_chain *chain;
    frame.input_bytes = next_number(&in);
    frame.input_gradient_bytes = next_number(&in);
    frame.step_bytes = next_number(&in);
    uint8_t tightness = fuzz_next_byte(&in);
    if (dry_chain_create(&frame, NULL, &chain, NULL) != DRY_OK)
        return 0;
    while (in.left)
        read_stage(&in, chain);
    struct dry_plan *plan;
    struct dry_error err = {.text = ""};
    enum dry_status status = dry_plan_create(chain, &options, &plan, &err);
    fuzz_require(status == DRY_OK || err.text[0] != '\0');
    if (status == DRY_OK) {
        const struct dry_plan_summary s = *dry_plan_get_summary(plan);
        check_plan(chain, plan);
        dry_plan_destroy(plan);
        if (has_sharp_floor(chain, &options))
            check_floor(chain, options, s.floor_bytes);
        else
            tightness = 0;
        options.budget_bytes =
            s.cost.peak_bytes - (s.cost.peak_bytes - s.floor_bytes) / 256 * tightness;
        status = dry_plan_create(chain, &options, &plan, &err);
        fuzz_require(status == DRY_OK || status == DRY_ERR_LIMIT);
        if (status == DRY_OK) {
            check_plan(chain, plan);
            dry_plan_destroy(plan);
        }
    }
    dry_chain_destroy(chain);
    return 0;
}
