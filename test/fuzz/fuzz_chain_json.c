/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as a chain. What is taken has the stages it claims, within their limit, and sums
 * that were checked; what is not taken says why. After a line feed, the rest is a plan for
 * it: what is read of that covers the chain, is evaluated without a fault, and is written as
 * what is read again.
 */
#include "support/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "plan/chain_json.h"
#include "plan/plan_file.h"
#include "plan/plan_report.h"

#define STAGES_MAX 2000 /* of a chain that is worth a plan */
#define TEXT_BYTES_MAX 4096

static void
require(int condition)
{
    if (!condition)
        abort();
}

static void
check_chain(const struct dry_chain *chain)
{
    size_t count = dry_chain_get_count(chain);
    require(count > 0 && count <= DRY_CHAIN_STAGES_MAX);
    require(dry_chain_get_time(chain) <= INT64_MAX);
    for (size_t i = 0; i < count; i++) {
        const struct dry_stage *s = dry_chain_get_stage(chain, i);
        require(s->saved_bytes >= s->output_bytes && s->saved_bytes <= INT64_MAX);
        require(s->option_count <= DRY_STAGE_OPTIONS_MAX);
        for (size_t k = 0; k < s->option_count; k++)
            require(s->options[k].name && *s->options[k].name);
    }
}

/* The same items, if names are unique in them: written and read once more. */
static void
check_again(const struct chain_file *chain, const struct plan_file *plan,
            const struct dry_plan_cost *cost)
{
    struct dry_error err;
    struct plan_file again;
    struct plan_report report = {.file = "fuzz",
                                 .input = chain,
                                 .judged = plan,
                                 .items = plan->items,
                                 .item_count = plan->count,
                                 .summary = {.cost = *cost, .budget_bytes = UINT64_MAX}};
    json_t *root = plan_json_make(&report, &err);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    require(text != NULL);
    require(plan_file_read(text, strlen(text), chain, &again, &err) == DRY_OK);
    struct dry_plan_cost same;
    require(dry_plan_evaluate(chain->chain, again.items, again.count, NULL, &same,
                              &err) == DRY_OK);
    require(same.peak_bytes == cost->peak_bytes && same.time_ns == cost->time_ns);
    plan_file_finish(&again);
    free(text);
    json_decref(root);
}

static void
check_plan(const struct chain_file *chain, const char *text, size_t length)
{
    struct plan_file plan;
    struct dry_plan_cost cost;
    struct dry_error err = {.text = ""};
    if (plan_file_read(text, length, chain, &plan, &err) != DRY_OK) {
        require(err.text[0] != '\0');
        return;
    }
    if (dry_plan_evaluate(chain->chain, plan.items, plan.count, NULL, &cost, &err) ==
        DRY_OK)
        check_again(chain, &plan, &cost);
    plan_file_finish(&plan);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct chain_file chain;
    struct dry_error err = {.text = ""};
    if (size > TEXT_BYTES_MAX)
        return 0;
    const uint8_t *end = size ? memchr(data, '\n', size) : NULL;
    size_t length = end ? (size_t)(end - data) : size;
    /* A copy, so that a byte too far is seen. */
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    if (size)
        memcpy(text, data, size);
    if (chain_json_read(text, length, NULL, &chain, &err) == DRY_OK) {
        check_chain(chain.chain);
        if (end && dry_chain_get_count(chain.chain) <= STAGES_MAX)
            check_plan(&chain, text + length + 1, size - length - 1);
        chain_file_finish(&chain);
    } else {
        require(err.text[0] != '\0');
    }
    free(text);
    return 0;
}
