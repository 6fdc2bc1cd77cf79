/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes are a small chain and a list of items for it. Whatever the judge accepts is a plan
 * that the naive judge can carry out, tensor by tensor, and both say the same of it; what is
 * refused has a text and leaves the cost alone.
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "support/chains.h"

#define STAGES_MAX 10u
#define ITEMS_MAX 128u
#define OPTIONS_MAX 3u

struct input {
    const uint8_t *data;
    size_t left;
};

static void
require(bool condition)
{
    if (!condition)
        abort();
}

static uint8_t
next_byte(struct input *in)
{
    if (!in->left)
        return 0;
    in->left--;
    return *in->data++;
}

/* 255 stands for the largest number there is. */
static uint32_t
next_number(struct input *in)
{
    uint8_t byte = next_byte(in);
    return byte == 255 ? UINT32_MAX : byte;
}

static void
read_option(struct input *in, const struct dry_stage *stage,
            struct dry_stage_option *option)
{
    uint64_t beside = next_byte(in);
    *option = (struct dry_stage_option){.saved_bytes = stage->output_bytes + beside,
                                        .recompute_ns = next_byte(in),
                                        .backward_tmp_bytes = next_byte(in)};
    option->offload_bytes = next_byte(in) % (beside + 1);
}

static void
read_stage(struct input *in, struct dry_chain *chain)
{
    struct dry_stage_option options[OPTIONS_MAX];
    struct dry_stage stage = {.options = options};
    stage.forward_ns = next_byte(in);
    stage.backward_ns = next_byte(in);
    stage.output_bytes = next_byte(in);
    stage.gradient_bytes = next_byte(in);
    stage.saved_bytes = stage.output_bytes + next_byte(in);
    stage.forward_tmp_bytes = stage.backward_tmp_bytes = next_byte(in);
    stage.grads_bytes = next_byte(in);
    uint8_t flags = next_byte(in);
    stage.is_fixed = flags & 1;
    stage.option_count = flags >> 1 & 3;
    for (size_t k = 0; k < stage.option_count; k++)
        read_option(in, &stage, &options[k]);
    require(dry_chain_add(chain, &stage, 1, NULL) == DRY_OK);
}

static struct dry_chain *
read_chain(struct input *in)
{
    uint32_t count = 1 + next_byte(in) % STAGES_MAX;
    struct dry_chain_frame frame = {.input_gradient_bytes = next_byte(in)};
    struct dry_chain *chain;
    frame.step_bytes = next_byte(in);
    require(dry_chain_create(&frame, NULL, &chain, NULL) == DRY_OK);
    while (count--)
        read_stage(in, chain);
    return chain;
}

static size_t
read_items(struct input *in, struct dry_plan_item *items)
{
    size_t count = 0;
    while (in->left && count < ITEMS_MAX) {
        struct dry_plan_item item = {.kind = next_number(in)};
        item.first = next_number(in);
        item.last = next_number(in);
        item.option = next_number(in);
        item.inner_count = next_number(in);
        items[count++] = item;
    }
    return count;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    struct dry_plan_item items[ITEMS_MAX];
    struct dry_plan_cost cost, before;
    struct dry_error err = {.text = ""};
    struct dry_chain *chain = read_chain(&in);
    size_t count = read_items(&in, items);
    memset(&cost, 0x5a, sizeof cost);
    memcpy(&before, &cost, sizeof cost);
    enum dry_status status = dry_plan_judge(chain, items, count, NULL, NULL, &cost, &err);
    if (status == DRY_OK) {
        struct dry_plan_cost naive = chains_judge(chain, items, count);
        require(naive.peak_bytes == cost.peak_bytes && naive.time_ns == cost.time_ns);
        require(naive.peak_stage == cost.peak_stage &&
                naive.peak_phase == cost.peak_phase);
        require(naive.held_bytes == cost.held_bytes && naive.extra_ns == cost.extra_ns);
        require(naive.recomputed_count == cost.recomputed_count);
    } else {
        require(status == DRY_ERR_ARGUMENT && err.text[0] != '\0');
        require(memcmp(&cost, &before, sizeof cost) == 0);
    }
    dry_chain_destroy(chain);
    return 0;
}
