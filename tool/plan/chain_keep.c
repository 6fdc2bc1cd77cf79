/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See chain_keep.h. Choosing operations to keep is a knapsack problem, which the library
 * solves (drystone/knapsack.h). The points on its curve of bytes against time become the
 * stage's options.
 */
#include "plan/chain_keep.h"

#include <stdlib.h>
#include <string.h>

#include <drystone/knapsack.h>

#include "base/fail.h"

/* Item visits per stage, a few seconds in all. If the limit stops the search, the best
   solution found so far is used without a proof of optimality. */
#define EFFORT UINT64_C(5000000)

static const char *const operation_keys[] = {
    "name", "bytes", "time", "inputs", "group", "tied_to", "keep", "unread", NULL};

struct reader {
    struct json_in *in;
    const struct json_at *list;
    const struct dry_memory *memory;
    struct chain_keep_used *used;
    struct chain_keep *keep;
    struct dry_keep_problem problem;
    struct dry_keep_item *items;
    struct dry_keep_input *inputs;
    size_t input_capacity;
};

static void
fail_for_memory(struct json_in *in)
{
    if (in->status == DRY_OK)
        in->status = fail_memory(in->err, "no memory for operations");
}

/* --- the operations ----------------------------------------------------------------------- */

/* Read the index of an operation that precedes operation `user`. */
static uint32_t
read_earlier(struct reader *r, const struct json_at *at, size_t user)
{
    uint64_t number = json_in_unsigned(r->in, *at);
    if (r->in->status == DRY_OK && number >= user)
        json_in_fail(r->in, at, "%llu is no operation before this one",
                     (unsigned long long)number);
    return r->in->status == DRY_OK ? (uint32_t)number : 0;
}

static bool
reserve_inputs(struct reader *r, const struct json_at *list, size_t count)
{
    if (count > CHAIN_KEEP_INPUTS_SUM - r->used->inputs) {
        json_in_fail(r->in, list, "more than %u inputs of operations in all",
                     CHAIN_KEEP_INPUTS_SUM);
        return false;
    }
    r->used->inputs += count;
    size_t needed = r->problem.input_count + count;
    if (needed <= r->input_capacity)
        return true;
    size_t capacity = needed > 2 * r->input_capacity ? needed : 2 * r->input_capacity;
    struct dry_keep_input *grown = realloc(r->inputs, capacity * sizeof *r->inputs);
    if (!grown) {
        fail_for_memory(r->in);
        return false;
    }
    r->inputs = grown;
    r->input_capacity = capacity;
    return true;
}

static void
read_inputs(struct reader *r, const struct json_at *operation, size_t user)
{
    struct json_at list = json_in_key(operation, "inputs");
    size_t count = json_in_list(r->in, &list);
    if (!reserve_inputs(r, &list, count))
        return;
    for (size_t i = 0; i < count && r->in->status == DRY_OK; i++) {
        struct json_at input = json_in_element(&list, i);
        r->inputs[r->problem.input_count++] = (struct dry_keep_input){
            .from = read_earlier(r, &input, user), .to = (uint32_t)user};
    }
}

static uint32_t
read_rule(struct reader *r, const struct json_at *operation)
{
    struct json_at at = json_in_key(operation, "keep");
    const char *word = json_in_text(r->in, at, "free");
    if (strcmp(word, "always") == 0)
        return DRY_KEEP_ALWAYS;
    if (strcmp(word, "never") == 0)
        return DRY_KEEP_NEVER;
    if (strcmp(word, "free") != 0)
        json_in_fail(r->in, &at, "expected \"always\", \"never\" or \"free\"");
    return DRY_KEEP_FREE;
}

static void
read_operation(struct reader *r, const struct json_at *at, size_t i)
{
    struct dry_keep_item *item = &r->items[i];
    struct json_at name = json_in_key(at, "name"), group = json_in_key(at, "group");
    struct json_at tie = json_in_key(at, "tied_to");
    if (!json_in_object(r->in, at, operation_keys))
        return;
    if (!*json_in_text(r->in, name, ""))
        json_in_fail(r->in, &name, "a name is needed, it stands in plans");
    item->bytes = json_in_unsigned(r->in, json_in_key(at, "bytes"));
    item->time_ns = json_in_time(r->in, json_in_key(at, "time"));
    uint64_t number = json_in_unsigned_or(r->in, group, 0);
    if (number > UINT32_MAX)
        json_in_fail(r->in, &group, "more than %u", UINT32_MAX);
    item->group = (uint32_t)number;
    if (tie.value && !json_is_null(tie.value))
        item->tied_to = read_earlier(r, &tie, i) + 1;
    item->rule = read_rule(r, at);
    item->is_unread = json_in_flag(r->in, json_in_key(at, "unread"), false);
    read_inputs(r, at, i);
    uint64_t *sum = &r->keep->read_bytes;
    if (!item->is_unread &&
        (__builtin_add_overflow(*sum, item->bytes, sum) || *sum > INT64_MAX))
        json_in_fail(r->in, at, "the sum of bytes is beyond 63 bits");
}

/* --- the points --------------------------------------------------------------------------- */

/* Number the calls of each operation from 0, in the order of the list. */
static bool
count_calls(const struct reader *r, uint32_t *calls)
{
    json_t *counts = json_object();
    bool is_made = counts != NULL;
    for (size_t i = 0; i < r->problem.item_count && is_made; i++) {
        const json_t *operation = json_array_get(r->list->value, i);
        const char *name = json_string_value(json_object_get(operation, "name"));
        json_int_t count = json_integer_value(json_object_get(counts, name));
        calls[i] = (uint32_t)count;
        is_made = json_object_set_new(counts, name, json_integer(count + 1)) == 0;
    }
    json_decref(counts);
    return is_made;
}

static json_t *
make_policy(const struct reader *r, const uint32_t *calls, const bool *is_kept)
{
    json_t *policy = json_object();
    for (size_t i = 0; i < r->problem.item_count && policy; i++) {
        if (!is_kept[i])
            continue;
        const json_t *operation = json_array_get(r->list->value, i);
        const char *name = json_string_value(json_object_get(operation, "name"));
        json_t *list = json_object_get(policy, name);
        bool is_new = !list;
        if (is_new)
            list = json_array();
        int failed = json_array_append_new(list, json_integer(calls[i]));
        if (is_new)
            failed |= json_object_set_new(policy, name, list);
        if (failed) {
            json_decref(policy);
            return NULL;
        }
    }
    return policy;
}

/* Take the points of a curve. Skip points that keep at least as many bytes as the stage
   saves without them: they gain nothing. */
static void
take_points(const struct reader *r, const struct dry_keep_curve *curve,
            const uint32_t *calls)
{
    struct chain_keep *keep = r->keep;
    for (size_t k = 0; k < curve->count; k++) {
        const struct dry_keep_result *from = &curve->points[k];
        if (from->kept_bytes >= keep->read_bytes)
            break;
        struct chain_keep_point *to = &keep->points[keep->count];
        *to = (struct chain_keep_point){.less_bytes = keep->read_bytes - from->kept_bytes,
                                        .recompute_ns = from->recompute_ns,
                                        .recomputed_bytes = from->recomputed_bytes};
        to->policy = make_policy(r, calls, curve->is_kept + k * r->problem.item_count);
        if (!to->policy) {
            fail_for_memory(r->in);
            return;
        }
        keep->count++;
    }
}

static void
solve(const struct reader *r, struct dry_keep_curve *curve, uint32_t *calls)
{
    struct dry_error err;
    struct dry_keep_options options;
    dry_keep_options_init(&options);
    options.memory = r->memory;
    options.effort = EFFORT;
    enum dry_status status = dry_keep_curve(&r->problem, &options, curve, &err);
    if (status == DRY_ERR_ARGUMENT) { /* operations that contradict each other are an
                                         error of the file */
        json_in_fail(r->in, r->list, "%s", err.text);
    } else if (status != DRY_OK) {
        *r->in->err = err;
        r->in->status = status;
    } else if (!count_calls(r, calls)) {
        fail_for_memory(r->in);
    } else {
        take_points(r, curve, calls);
    }
}

static void
make_points(const struct reader *r)
{
    size_t count = r->problem.item_count;
    struct dry_keep_result points[CHAIN_KEEP_POINTS_MAX];
    struct dry_keep_curve curve = {.points = points, .capacity = CHAIN_KEEP_POINTS_MAX};
    uint32_t *calls = calloc(count, sizeof *calls);
    curve.is_kept = calloc(count, CHAIN_KEEP_POINTS_MAX);
    if (calls && curve.is_kept)
        solve(r, &curve, calls);
    else
        fail_for_memory(r->in);
    free(curve.is_kept);
    free(calls);
}

static bool
count_operations(struct reader *r, size_t count)
{
    if (count > CHAIN_KEEP_OPERATIONS_MAX)
        json_in_fail(r->in, r->list, "%zu operations, more than %u", count,
                     CHAIN_KEEP_OPERATIONS_MAX);
    else if (count > CHAIN_KEEP_OPERATIONS_SUM - r->used->operations)
        json_in_fail(r->in, r->list, "more than %u operations in all",
                     CHAIN_KEEP_OPERATIONS_SUM);
    if (r->in->status != DRY_OK)
        return false;
    r->used->operations += count;
    return count > 0;
}

void
chain_keep_read(struct json_in *in, const struct json_at *operations,
                const struct dry_memory *memory, struct chain_keep_used *used,
                struct chain_keep *keep)
{
    struct reader r = {
        .in = in, .list = operations, .memory = memory, .used = used, .keep = keep};
    size_t count = json_in_list(in, operations);
    *keep = (struct chain_keep){0};
    if (!count_operations(&r, count))
        return;
    r.items = calloc(count, sizeof *r.items);
    if (!r.items) {
        fail_for_memory(in);
        return;
    }
    for (size_t i = 0; i < count && in->status == DRY_OK; i++) {
        struct json_at operation = json_in_element(operations, i);
        read_operation(&r, &operation, i);
    }
    r.problem.items = r.items;
    r.problem.item_count = count;
    r.problem.inputs = r.inputs;
    if (in->status == DRY_OK)
        make_points(&r);
    if (in->status != DRY_OK)
        chain_keep_finish(keep);
    free(r.inputs);
    free(r.items);
}

void
chain_keep_finish(struct chain_keep *keep)
{
    for (size_t i = 0; i < keep->count; i++)
        json_decref(keep->points[i].policy);
    keep->count = 0;
}

/* Check that a policy is an object of lists of counts, one list per operation. Only the
   program that runs the plan interprets a policy. */
void
chain_policy_check(struct json_in *in, const struct json_at *policy)
{
    const char *operation;
    json_t *value;
    if (!policy->value)
        return;
    if (!json_is_object(policy->value)) {
        json_in_fail(in, policy, "an object is expected");
        return;
    }
    json_object_foreach(policy->value, operation, value)
    {
        struct json_at list = {.value = value, .parent = policy, .key = operation};
        size_t count = json_in_list(in, &list);
        for (size_t i = 0; i < count && in->status == DRY_OK; i++) {
            json_in_unsigned(in, json_in_element(&list, i));
        }
    }
}
