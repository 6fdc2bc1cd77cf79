/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The frame of the knapsack: checks a problem, groups its items into clusters, solves it,
 * and evaluates the answer by items. The methods are in knapsack_search.c, knapsack_cut.c
 * and knapsack_table.c.
 */
#include <drystone/knapsack.h>

#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/map.h"
#include "base/memory.h"
#include "base/sized.h"
#include "plan/knapsack/knapsack_state.h"

#define SUM_MAX ((uint64_t)INT64_MAX)
#define EFFORT_DEFAULT UINT64_C(100000000)

void
dry_keep_options_init_sized(struct dry_keep_options *options, size_t struct_size)
{
    const struct dry_keep_options defaults = {.budget_bytes = UINT64_MAX,
                                              .effort = EFFORT_DEFAULT};
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

/* --- checks ------------------------------------------------------------------------------- */

static enum dry_status
check_items(const struct dry_keep_problem *p, struct dry_error *err)
{
    uint64_t bytes = 0, time = 0;
    if (p->item_count > DRY_KEEP_ITEMS_MAX)
        return dryi_fail(err, DRY_ERR_LIMIT, "%zu items, more than %u", p->item_count,
                         DRY_KEEP_ITEMS_MAX);
    for (size_t i = 0; i < p->item_count; i++) {
        const struct dry_keep_item *item = &p->items[i];
        if (item->tied_to > i)
            return dryi_fail(err, DRY_ERR_ARGUMENT,
                             "item %zu is tied to item %u, which is no earlier one", i,
                             item->tied_to - 1);
        if (item->rule > DRY_KEEP_NEVER)
            return dryi_fail(err, DRY_ERR_ARGUMENT, "item %zu: no rule has number %u", i,
                             item->rule);
        if (item->bytes > SUM_MAX - bytes || item->time_ns > SUM_MAX - time)
            return dryi_fail(err, DRY_ERR_LIMIT,
                             "the sums of all items up to %zu are more than 63 bits", i);
        bytes += item->bytes;
        time += item->time_ns;
    }
    return DRY_OK;
}

static enum dry_status
check_problem(const struct dry_keep_problem *p, struct dry_error *err)
{
    if (p->input_count > DRY_KEEP_INPUTS_MAX)
        return dryi_fail(err, DRY_ERR_LIMIT, "%zu inputs, more than %u", p->input_count,
                         DRY_KEEP_INPUTS_MAX);
    for (size_t e = 0; e < p->input_count; e++) {
        const struct dry_keep_input *input = &p->inputs[e];
        if (input->from >= input->to || input->to >= p->item_count)
            return dryi_fail(err, DRY_ERR_ARGUMENT,
                             "input %zu: item %u does not come before item %u of %zu", e,
                             input->from, input->to, p->item_count);
    }
    return check_items(p, err);
}

/* --- clusters ------------------------------------------------------------------------------ */

/* Return the least item of the set, halving paths on the way. */
static uint32_t
find_root(uint32_t *parent, uint32_t i)
{
    while (parent[i] != i)
        i = parent[i] = parent[parent[i]];
    return i;
}

static void
join(uint32_t *parent, uint32_t a, uint32_t b)
{
    a = find_root(parent, a);
    b = find_root(parent, b);
    if (a < b)
        parent[b] = a;
    else
        parent[a] = b;
}

static bool
join_all(struct dryi_keep *k)
{
    struct dryi_map groups;
    bool is_fine = true;
    dryi_map_init(&groups, &k->memory);
    for (uint32_t i = 0; i < k->count; i++)
        k->cluster[i] = i;
    for (uint32_t i = 0; i < k->count && is_fine; i++) {
        const struct dry_keep_item *item = &k->items[i];
        if (item->tied_to)
            join(k->cluster, item->tied_to - 1, i);
        if (!item->group)
            continue;
        const uint32_t *other = dryi_map_find(&groups, item->group);
        if (other)
            join(k->cluster, *other, i);
        else
            is_fine = dryi_map_put(&groups, item->group, i);
    }
    dryi_map_finish(&groups);
    return is_fine;
}

/* Number the clusters. Roots precede the other items of their set, so one pass is enough. */
static void
number_clusters(struct dryi_keep *k)
{
    for (uint32_t i = 0; i < k->count; i++)
        k->cluster[i] = find_root(k->cluster, i);
    for (uint32_t i = 0; i < k->count; i++) {
        bool is_root = k->cluster[i] == i;
        k->cluster[i] =
            is_root ? (uint32_t)k->cluster_count++ : k->cluster[k->cluster[i]];
    }
}

static enum dry_status
fill_clusters(struct dryi_keep *k, struct dry_error *err)
{
    static const uint8_t states[] = {DRYI_KEEP_OPEN, DRYI_KEEP_KEPT, DRYI_KEEP_DROPPED};
    for (size_t i = 0; i < k->count; i++) {
        struct dryi_cluster *c = &k->clusters[k->cluster[i]];
        c->bytes += k->items[i].bytes;
        if (k->items[i].rule == DRY_KEEP_FREE)
            continue;
        uint8_t state = states[k->items[i].rule];
        if (c->state != DRYI_KEEP_OPEN && c->state != state)
            return dryi_fail(err, DRY_ERR_ARGUMENT,
                             "item %zu and one of its group or tied to it are to be kept "
                             "always and never",
                             i);
        c->state = state;
    }
    return DRY_OK;
}

/* Group inputs by user. Unread items that are inputs make the costs of clusters interdependent. */
static void
fill_inputs(struct dryi_keep *k, const struct dry_keep_problem *p)
{
    k->is_additive = true;
    for (size_t e = 0; e < p->input_count; e++) {
        k->first[p->inputs[e].to + 1]++;
        if (p->items[p->inputs[e].from].is_unread)
            k->is_additive = false;
    }
    for (size_t i = 0; i < p->item_count; i++)
        k->first[i + 1] += k->first[i];
    for (size_t e = p->input_count; e-- > 0;)
        k->inputs[k->first[p->inputs[e].to]++] = p->inputs[e].from;
    for (size_t i = p->item_count; i > 0; i--)
        k->first[i] = k->first[i - 1];
    k->first[0] = 0;
}

static void
finish(struct dryi_keep *k)
{
    dryi_memory_free(&k->memory, k->best, k->cluster_count, sizeof *k->best);
    dryi_memory_free(&k->memory, k->clusters, k->cluster_count, sizeof *k->clusters);
    dryi_memory_free(&k->memory, k->is_wanted, k->count, sizeof *k->is_wanted);
    dryi_memory_free(&k->memory, k->cluster, k->count, sizeof *k->cluster);
    dryi_memory_free(&k->memory, k->inputs, k->input_count + 1, sizeof *k->inputs);
    dryi_memory_free(&k->memory, k->first, k->count + 1, sizeof *k->first);
}

/*
 * Initialize the state for a problem. Requires at least one item, whose array must
 * outlive `k`, and finish() even after an error.
 */
static enum dry_status
init(struct dryi_keep *k, const struct dry_keep_problem *p, struct dry_error *err)
{
    k->items = p->items;
    k->count = p->item_count;
    k->input_count = p->input_count;
    k->first = dryi_memory_zalloc(&k->memory, k->count + 1, sizeof *k->first);
    k->inputs = dryi_memory_zalloc(&k->memory, k->input_count + 1, sizeof *k->inputs);
    k->cluster = dryi_memory_zalloc(&k->memory, k->count, sizeof *k->cluster);
    k->is_wanted = dryi_memory_zalloc(&k->memory, k->count, sizeof *k->is_wanted);
    if (!k->first || !k->inputs || !k->cluster || !k->is_wanted || !join_all(k))
        return dryi_fail_memory(err, "items to keep");
    number_clusters(k);
    k->clusters = dryi_memory_zalloc(&k->memory, k->cluster_count, sizeof *k->clusters);
    k->best = dryi_memory_zalloc(&k->memory, k->cluster_count, sizeof *k->best);
    if (!k->clusters || !k->best)
        return dryi_fail_memory(err, "items to keep");
    fill_inputs(k, p);
    return fill_clusters(k, err);
}

/* --- evaluation ----------------------------------------------------------------------------- */

/* Evaluate what the states of the clusters keep, item by item. */
static void
evaluate(struct dryi_keep *k, struct dry_keep_result *result)
{
    result->recompute_ns = dryi_keep_evaluate(k);
    for (size_t i = 0; i < k->count; i++) {
        const struct dryi_cluster *c = &k->clusters[k->cluster[i]];
        bool is_kept = c->state == DRYI_KEEP_KEPT;
        bool is_again = !is_kept && (!k->items[i].is_unread || k->is_wanted[i]);
        result->kept_bytes += is_kept ? k->items[i].bytes : 0;
        result->kept_count += is_kept;
        result->recomputed_bytes += is_again ? k->items[i].bytes : 0;
        result->recomputed_count += is_again;
    }
}

static enum dry_status
take_choice(struct dryi_keep *k, const bool *is_kept, struct dry_error *err)
{
    for (size_t i = 0; i < k->count; i++) {
        struct dryi_cluster *c = &k->clusters[k->cluster[i]];
        uint8_t state = is_kept[i] ? DRYI_KEEP_KEPT : DRYI_KEEP_DROPPED;
        if (c->state != DRYI_KEEP_OPEN && c->state != state)
            return dryi_fail(err, DRY_ERR_ARGUMENT,
                             "item %zu is%s kept, against a rule, group or tie", i,
                             is_kept[i] ? "" : " not");
        c->state = state;
    }
    return DRY_OK;
}

enum dry_status
dry_keep_evaluate(const struct dry_keep_problem *problem, const bool *is_kept,
                  const struct dry_memory *memory, struct dry_keep_result *result,
                  struct dry_error *err)
{
    struct dry_keep_result found = {0};
    enum dry_status status = check_problem(problem, err);
    if (status == DRY_OK && problem->item_count > 0) {
        struct dryi_keep k = {.memory = dryi_memory_or_default(memory)};
        status = init(&k, problem, err);
        if (status == DRY_OK)
            status = take_choice(&k, is_kept, err);
        if (status == DRY_OK)
            evaluate(&k, &found);
        finish(&k);
    }
    if (status == DRY_OK)
        *result = found;
    return status;
}

/* --- solving --------------------------------------------------------------------------------- */

static enum dry_status
check_budget(struct dryi_keep *k, uint64_t budget, struct dry_error *err)
{
    uint64_t all = 0;
    for (size_t c = 0; c < k->cluster_count; c++) {
        all += k->clusters[c].bytes;
        k->always += k->clusters[c].state == DRYI_KEEP_KEPT ? k->clusters[c].bytes : 0;
    }
    k->budget = budget < all ? budget : all;
    if (k->always > k->budget)
        return dryi_fail(err, DRY_ERR_NO_SPACE,
                         "what must be kept has %llu bytes, the budget %llu",
                         (unsigned long long)k->always, (unsigned long long)budget);
    return DRY_OK;
}

/*
 * Drop kept clusters that would not be recomputed if they were dropped: keeping them
 * saves no time. Items are only wanted by recomputed items, whose states do not change.
 */
static void
drop_useless(struct dryi_keep *k)
{
    dryi_keep_evaluate(k);
    for (size_t i = 0; i < k->count; i++) {
        struct dryi_cluster *c = &k->clusters[k->cluster[i]];
        bool is_run = !k->items[i].is_unread || k->is_wanted[i];
        bool is_free = k->items[i].time_ns == 0 &&
                       (k->is_additive || k->first[i] == k->first[i + 1]);
        if (k->items[i].rule == DRY_KEEP_ALWAYS || (is_run && !is_free))
            c->is_certain = true; /* it must be kept */
    }
    for (size_t c = 0; c < k->cluster_count; c++) {
        if (!k->clusters[c].is_certain)
            k->clusters[c].state = DRYI_KEEP_DROPPED;
    }
}

static void
report(struct dryi_keep *k, bool *is_kept, struct dry_keep_result *result)
{
    for (size_t c = 0; c < k->cluster_count; c++)
        k->clusters[c].state = k->best[c] ? DRYI_KEEP_KEPT : DRYI_KEEP_DROPPED;
    drop_useless(k);
    *result = (struct dry_keep_result){
        .floor_bytes = k->always, .bound_ns = k->bound, .nodes = k->nodes};
    evaluate(k, result);
    DRYI_ASSERT(result->recompute_ns == k->best_time);
    DRYI_ASSERT(result->kept_bytes <= k->budget && k->bound <= k->best_time);
    result->is_proved = result->bound_ns == result->recompute_ns;
    for (size_t i = 0; i < k->count; i++)
        is_kept[i] = k->clusters[k->cluster[i]].state == DRYI_KEEP_KEPT;
}

static enum dry_status
solve(struct dryi_keep *k, const struct dry_keep_problem *problem, uint64_t budget,
      struct dry_error *err)
{
    enum dry_status status = init(k, problem, err);
    if (status == DRY_OK)
        status = check_budget(k, budget, err);
    if (status == DRY_OK && dryi_keep_search(k) != DRY_OK)
        status = dryi_fail_memory(err, "the search for items to keep");
    if (status == DRY_OK && k->is_additive && k->bound < k->best_time &&
        dryi_keep_table(k) != DRY_OK)
        status = dryi_fail_memory(err, "a table of items to keep");
    return status;
}

enum dry_status
dry_keep_solve(const struct dry_keep_problem *problem,
               const struct dry_keep_options *options, bool *is_kept,
               struct dry_keep_result *result, struct dry_error *err)
{
    struct dry_keep_options o;
    dry_keep_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, err);
    if (status == DRY_OK)
        status = check_problem(problem, err);
    if (status != DRY_OK)
        return status;
    if (problem->item_count == 0) {
        *result = (struct dry_keep_result){.is_proved = true};
        return DRY_OK;
    }
    struct dryi_keep k = {.memory = dryi_memory_or_default(o.memory), .effort = o.effort};
    status = solve(&k, problem, o.budget_bytes, err);
    if (status == DRY_OK)
        report(&k, is_kept, result);
    finish(&k);
    return status;
}

enum dry_status
dry_keep_plain(const uint64_t *bytes, const uint64_t *time_ns, size_t count,
               const struct dry_keep_options *options, bool *is_kept,
               struct dry_keep_result *result)
{
    struct dry_keep_options o;
    dry_keep_options_init(&o);
    enum dry_status status = dryi_sized_take(&o, sizeof o, options, NULL);
    if (status != DRY_OK || count > DRY_KEEP_ITEMS_MAX)
        return status != DRY_OK ? status : DRY_ERR_LIMIT;
    struct dry_memory memory = dryi_memory_or_default(o.memory);
    struct dry_keep_item *items = dryi_memory_zalloc(&memory, count + 1, sizeof *items);
    if (!items)
        return DRY_ERR_MEMORY;
    for (size_t i = 0; i < count; i++)
        items[i] = (struct dry_keep_item){.bytes = bytes[i], .time_ns = time_ns[i]};
    struct dry_keep_problem problem = {.items = items, .item_count = count};
    status = dry_keep_solve(&problem, &o, is_kept, result, NULL);
    dryi_memory_free(&memory, items, count + 1, sizeof *items);
    return status;
}
