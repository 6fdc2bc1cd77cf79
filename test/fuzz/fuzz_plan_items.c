/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes are a small chain and a list of items for it. What the evaluation accepts is a plan
 * that the naive evaluation can carry out, tensor by tensor, and both say the same of it; what is
 * refused has a text and leaves the cost alone.
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "support/chains.h"

#define STAGES_MAX 10u
#define ITEMS_MAX 128u
#define OPTIONS_MAX 3u

/* 255 stands for the largest number there is. */
static uint32_t
next_number(struct fuzz_bytes *in)
{
    uint8_t byte = fuzz_next_byte(in);
    return byte == 255 ? UINT32_MAX : byte;
}

static void
read_option(struct fuzz_bytes *in, const struct dry_stage *stage,
            struct dry_stage_option *option)
{
    uint64_t beside = fuzz_next_byte(in);
    *option = (struct dry_stage_option){.saved_bytes = stage->output_bytes + beside,
                                        .recompute_ns = fuzz_next_byte(in),
                                        .backward_tmp_bytes = fuzz_next_byte(in)};
    option->offload_bytes = fuzz_next_byte(in) % (beside + 1);
    option->forward_tmp_bytes = option->backward_tmp_bytes;
    option->has_forward_tmp = option->backward_tmp_bytes % 2;
}

static void
read_stage(struct fuzz_bytes *in, struct dry_chain *chain)
{
    struct dry_stage_option options[OPTIONS_MAX];
    struct dry_stage stage = {.options = options};
    stage.forward_ns = fuzz_next_byte(in);
    stage.backward_ns = fuzz_next_byte(in);
    stage.output_bytes = fuzz_next_byte(in);
    stage.gradient_bytes = fuzz_next_byte(in);
    stage.saved_bytes = stage.output_bytes + fuzz_next_byte(in);
    stage.forward_tmp_bytes = stage.backward_tmp_bytes = fuzz_next_byte(in);
    stage.grads_bytes = fuzz_next_byte(in);
    uint8_t flags = fuzz_next_byte(in);
    stage.is_fixed = flags & 1;
    stage.option_count = flags >> 1 & 3;
    for (size_t k = 0; k < stage.option_count; k++)
        read_option(in, &stage, &options[k]);
    fuzz_require(dry_chain_add(chain, &stage, 1, NULL) == DRY_OK);
}

static struct dry_chain *
read_chain(struct fuzz_bytes *in)
{
    uint32_t count = 1 + fuzz_next_byte(in) % STAGES_MAX;
    struct dry_chain_frame frame = {.input_gradient_bytes = fuzz_next_byte(in)};
    struct dry_chain *chain;
    frame.step_bytes = fuzz_next_byte(in);
    fuzz_require(dry_chain_create(&frame, NULL, &chain, NULL) == DRY_OK);
    while (count--)
        read_stage(in, chain);
    return chain;
}

static size_t
read_items(struct fuzz_bytes *in, struct dry_plan_item *items)
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
    struct fuzz_bytes in = {data, size};
    struct dry_plan_item items[ITEMS_MAX];
    struct dry_plan_cost cost, before;
    struct dry_error err = {.text = ""};
    struct dry_chain *chain = read_chain(&in);
    size_t count = read_items(&in, items);
    memset(&cost, 0x5a, sizeof cost);
    memcpy(&before, &cost, sizeof cost);
    enum dry_status status = dry_plan_evaluate(chain, items, count, NULL, &cost, &err);
    if (status == DRY_OK) {
        struct dry_plan_cost naive = chains_evaluate(chain, items, count);
        fuzz_require(naive.peak_bytes == cost.peak_bytes &&
                     naive.time_ns == cost.time_ns);
        fuzz_require(naive.peak_stage == cost.peak_stage &&
                     naive.peak_phase == cost.peak_phase);
        fuzz_require(naive.held_bytes == cost.held_bytes &&
                     naive.extra_ns == cost.extra_ns);
        fuzz_require(naive.recomputed_count == cost.recomputed_count);
    } else {
        fuzz_require(status == DRY_ERR_ARGUMENT && err.text[0] != '\0');
        fuzz_require(memcmp(&cost, &before, sizeof cost) == 0);
    }
    dry_chain_destroy(chain);
    return 0;
}
