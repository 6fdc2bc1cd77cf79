/* SPDX-License-Identifier: Apache-2.0 */

/*
 * plan/knapsack: the best of all choices, by trying them all; the 0/1 knapsack by its table;
 * what large problems are sure of; the curve; what is refused; every failed allocation.
 */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include <drystone/knapsack.h>

#include "support/failing_memory.h"
#include "support/random.h"

#define ITEMS_MAX 16
#define INPUTS_MAX 64

struct instance {
    struct dry_keep_item items[ITEMS_MAX];
    struct dry_keep_input inputs[INPUTS_MAX];
    struct dry_keep_problem problem;
};

static struct dry_keep_options
options_of(uint64_t budget)
{
    struct dry_keep_options options;
    dry_keep_options_init(&options);
    options.budget_bytes = budget;
    return options;
}

/* --- random problems ----------------------------------------------------------------------- */

static struct dry_keep_item
make_item(struct random *r, uint32_t i, uint64_t sizes)
{
    struct dry_keep_item item = {.bytes = random_below(r, sizes),
                                 .time_ns = random_below(r, 30)};
    if (random_below(r, 8) == 0)
        item.group = 1 + (uint32_t)random_below(r, 2);
    if (i > 0 && random_below(r, 8) == 0)
        item.tied_to = 1 + (uint32_t)random_below(r, i);
    if (random_below(r, 10) == 0)
        item.rule = 1 + (uint32_t)random_below(r, 2);
    item.is_unread = random_below(r, 3) == 0;
    return item;
}

static void
make_instance(struct instance *in, struct random *r, uint32_t count)
{
    uint64_t sizes = random_below(r, 2) ? 4 : 1000;
    size_t inputs = 0;
    bool is_plain = random_below(r, 5) == 0;
    for (uint32_t i = 0; i < count; i++) {
        in->items[i] = make_item(r, i, sizes);
        if (is_plain)
            in->items[i] = (struct dry_keep_item){.bytes = in->items[i].bytes,
                                                  .time_ns = in->items[i].time_ns};
        for (uint64_t n = random_below(r, 3); n > 0 && i > 0 && inputs < INPUTS_MAX;
             n--) {
            uint32_t from = i - 1 - (uint32_t)random_below(r, i < 3 ? i : 3);
            in->inputs[inputs++] = (struct dry_keep_input){from, i};
        }
    }
    in->problem = (struct dry_keep_problem){in->items, count, in->inputs, inputs};
}

/* --- all choices --------------------------------------------------------------------------- */

static bool
is_allowed(const struct dry_keep_problem *p, uint32_t mask)
{
    for (size_t i = 0; i < p->item_count; i++) {
        const struct dry_keep_item *a = &p->items[i];
        bool is_kept = mask >> i & 1;
        if ((a->rule == DRY_KEEP_ALWAYS && !is_kept) ||
            (a->rule == DRY_KEEP_NEVER && is_kept))
            return false;
        if (a->tied_to && is_kept != (mask >> (a->tied_to - 1) & 1))
            return false;
        for (size_t j = 0; j < i; j++) {
            if (a->group && a->group == p->items[j].group && is_kept != (mask >> j & 1))
                return false;
        }
    }
    return true;
}

/* Word for word: until nothing more is run again. */
static uint64_t
time_naive(const struct dry_keep_problem *p, uint32_t mask)
{
    uint32_t again = 0, before;
    do {
        before = again;
        for (size_t i = 0; i < p->item_count; i++) {
            if (!(mask >> i & 1) && !p->items[i].is_unread)
                again |= 1u << i;
        }
        for (size_t e = 0; e < p->input_count; e++) {
            if ((again >> p->inputs[e].to & 1) && !(mask >> p->inputs[e].from & 1))
                again |= 1u << p->inputs[e].from;
        }
    } while (again != before);
    uint64_t time = 0;
    for (size_t i = 0; i < p->item_count; i++)
        time += again >> i & 1 ? p->items[i].time_ns : 0;
    return time;
}

static uint64_t
bytes_of(const struct dry_keep_problem *p, uint32_t mask)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < p->item_count; i++)
        bytes += mask >> i & 1 ? p->items[i].bytes : 0;
    return bytes;
}

/* UINT64_MAX: none is allowed within the budget; *is_possible: one is without it. */
static uint64_t
best_naive(const struct dry_keep_problem *p, uint64_t budget, bool *is_possible)
{
    uint64_t best = UINT64_MAX;
    *is_possible = false;
    for (uint32_t mask = 0; mask < 1u << p->item_count; mask++) {
        if (!is_allowed(p, mask))
            continue;
        *is_possible = true;
        if (bytes_of(p, mask) > budget)
            continue;
        uint64_t time = time_naive(p, mask);
        best = time < best ? time : best;
    }
    return best;
}

static uint32_t
mask_of(const bool *is_kept, size_t count)
{
    uint32_t mask = 0;
    for (size_t i = 0; i < count; i++)
        mask |= (uint32_t)is_kept[i] << i;
    return mask;
}

static void
require_result(const struct dry_keep_problem *p, const bool *is_kept, uint64_t budget,
               const struct dry_keep_result *result)
{
    uint32_t mask = mask_of(is_kept, p->item_count);
    struct dry_keep_result evaluated;
    assert_true(is_allowed(p, mask));
    assert_int_equal(result->recompute_ns, time_naive(p, mask));
    assert_int_equal(result->kept_bytes, bytes_of(p, mask));
    assert_true(result->kept_bytes <= budget && result->floor_bytes <= budget);
    assert_true(result->bound_ns <= result->recompute_ns);
    assert_int_equal(dry_keep_evaluate(p, is_kept, NULL, &evaluated, NULL), DRY_OK);
    assert_int_equal(evaluated.recompute_ns, result->recompute_ns);
    assert_int_equal(evaluated.kept_bytes, result->kept_bytes);
    assert_int_equal(evaluated.recomputed_bytes, result->recomputed_bytes);
    assert_int_equal(evaluated.kept_count, result->kept_count);
    assert_int_equal(evaluated.recomputed_count, result->recomputed_count);
}

static void
require_best(const struct instance *in, uint64_t budget)
{
    const struct dry_keep_problem *p = &in->problem;
    struct dry_keep_options options = options_of(budget);
    struct dry_keep_result result;
    bool is_kept[ITEMS_MAX];
    bool is_possible;
    uint64_t best = best_naive(p, budget, &is_possible);
    enum dry_status status = dry_keep_solve(p, &options, is_kept, &result, NULL);
    if (best == UINT64_MAX) {
        assert_int_equal(status, is_possible ? DRY_ERR_NO_SPACE : DRY_ERR_ARGUMENT);
        return;
    }
    assert_int_equal(status, DRY_OK);
    assert_int_equal(result.recompute_ns, best);
    assert_true(result.is_proved && result.bound_ns == best);
    require_result(p, is_kept, budget, &result);
}

static void
random_problems_are_solved_as_by_trying_all(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 12000; seed++) {
        struct instance in;
        struct random r;
        random_init(&r, seed);
        uint32_t count = (uint32_t)random_below(&r, seed % 100 == 0 ? 17 : 10);
        make_instance(&in, &r, count);
        uint64_t all = bytes_of(&in.problem, (1u << count) - 1);
        require_best(&in, random_below(&r, all + 2));
    }
}

/* A search that is cut off says what it can be sure of. */
static void
little_effort_gives_a_sound_bound(void **state)
{
    (void)state;
    size_t proved = 0, open = 0;
    for (uint64_t seed = 0; seed < 1000; seed++) {
        struct instance in;
        struct random r;
        struct dry_keep_result result;
        bool is_kept[ITEMS_MAX];
        bool is_possible;
        random_init(&r, seed);
        make_instance(&in, &r, 12);
        uint64_t budget = bytes_of(&in.problem, (1u << 12) - 1) * 2 / 5;
        struct dry_keep_options options = options_of(budget);
        options.effort = random_below(&r, 1000);
        uint64_t best = best_naive(&in.problem, budget, &is_possible);
        if (best == UINT64_MAX)
            continue;
        assert_int_equal(dry_keep_solve(&in.problem, &options, is_kept, &result, NULL),
                         DRY_OK);
        require_result(&in.problem, is_kept, budget, &result);
        assert_true(result.bound_ns <= best && best <= result.recompute_ns);
        assert_int_equal(result.is_proved, result.bound_ns == result.recompute_ns);
        proved += result.is_proved;
        open += !result.is_proved;
    }
    assert_true(proved > 0 && open > 0);
}

/* The same problem, cut off after more and more visits. */
static void
bounds_hold_wherever_a_search_ends(void **state)
{
    (void)state;
    size_t between = 0; /* the bound has risen, and the answer is open */
    for (uint64_t seed = 0; seed < 150; seed++) {
        struct instance in;
        struct random r;
        struct dry_keep_result result;
        bool is_kept[ITEMS_MAX];
        bool is_possible;
        uint64_t first = UINT64_MAX;
        random_init(&r, seed);
        make_instance(&in, &r, 12);
        uint64_t budget = bytes_of(&in.problem, (1u << 12) - 1) * 2 / 5;
        uint64_t best = best_naive(&in.problem, budget, &is_possible);
        struct dry_keep_options options = options_of(budget);
        for (options.effort = 16; best < UINT64_MAX && options.effort < 20000;
             options.effort += options.effort / 8) {
            assert_int_equal(
                dry_keep_solve(&in.problem, &options, is_kept, &result, NULL), DRY_OK);
            assert_true(result.bound_ns <= best && best <= result.recompute_ns);
            first = first == UINT64_MAX ? result.bound_ns : first;
            between += result.bound_ns > first && !result.is_proved;
        }
    }
    assert_true(between > 0);
}

/* Forty items, of which a third are there for others only: proved within the effort. */
static void
items_that_depend_on_each_other_are_settled(void **state)
{
    (void)state;
    enum { COUNT = 40 };
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct dry_keep_item items[COUNT] = {{.bytes = 0}};
        struct dry_keep_input inputs[2 * COUNT];
        struct dry_keep_problem p = {items, COUNT, inputs, 0};
        struct dry_keep_result result;
        bool is_kept[COUNT];
        struct random r;
        uint64_t all = 0;
        random_init(&r, seed);
        for (uint32_t i = 0; i < COUNT; i++) {
            items[i].bytes = 1000000 + random_below(&r, 30000000);
            items[i].time_ns = 1000 + random_below(&r, 900000);
            items[i].is_unread = random_below(&r, 3) == 0;
            all += items[i].bytes;
            for (uint32_t k = 0; k < 2 && i > 0; k++) {
                uint32_t from = i - 1 - (uint32_t)random_below(&r, i < 4 ? i : 4);
                inputs[p.input_count++] = (struct dry_keep_input){from, i};
            }
        }
        struct dry_keep_options options = options_of(all / 10 * (1 + seed % 8));
        assert_int_equal(dry_keep_solve(&p, &options, is_kept, &result, NULL), DRY_OK);
        assert_true(result.is_proved && result.nodes < 20000);
    }
}

/* --- the plain knapsack ------------------------------------------------------------------------ */

#define PLAIN_MAX 60
#define SLOTS 2000

/* PyTorch's dp_knapsack: sizes in slots, the most run time that is kept. */
static uint64_t
most_by_table(const uint64_t *bytes, const uint64_t *time, size_t count, size_t slots)
{
    static uint64_t saved[PLAIN_MAX + 1][SLOTS + 1];
    memset(saved, 0, sizeof saved);
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j <= slots; j++) {
            saved[i + 1][j] = saved[i][j];
            if (bytes[i] <= j && saved[i][j - bytes[i]] + time[i] > saved[i + 1][j])
                saved[i + 1][j] = saved[i][j - bytes[i]] + time[i];
        }
    }
    return saved[count][slots];
}

static void
plain_problems_are_solved_as_by_the_table(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 400; seed++) {
        uint64_t bytes[PLAIN_MAX], time[PLAIN_MAX], all = 0;
        bool is_kept[PLAIN_MAX];
        struct dry_keep_result result;
        struct random r;
        random_init(&r, seed);
        size_t count = 1 + random_below(&r, PLAIN_MAX);
        uint64_t kinds = 1 + random_below(&r, 60);
        for (size_t i = 0; i < count; i++) {
            uint64_t kind = random_below(&r, kinds);
            bytes[i] = 1 + kind * 37 % 101;
            time[i] = random_below(&r, 3) ? 100 + bytes[i] : kind * 997 % 1009;
            all += time[i];
        }
        size_t slots = random_below(&r, SLOTS + 1);
        struct dry_keep_options options = options_of(slots);
        assert_int_equal(dry_keep_plain(bytes, time, count, &options, is_kept, &result),
                         DRY_OK);
        assert_true(result.is_proved && result.kept_bytes <= slots);
        assert_int_equal(all - result.recompute_ns,
                         most_by_table(bytes, time, count, slots));
    }
}

/* 24 blocks of the same seven operations: twins settle it, not luck. */
static void
repeated_blocks_are_settled(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {33554432, 67108864, 33554433, 134217728,
                                     90177536, 90177536, 2097152};
    static const uint64_t times[] = {900, 2100, 905, 3800, 2650, 2651, 70};
    uint64_t bytes[168], time[168], all = 0;
    bool is_kept[168];
    struct dry_keep_result result;
    for (size_t i = 0; i < 168; i++) {
        bytes[i] = sizes[i % 7];
        time[i] = times[i % 7];
        all += bytes[i];
    }
    for (uint64_t part = 0; part <= 10; part++) {
        struct dry_keep_options options = options_of(all / 10 * part);
        assert_int_equal(dry_keep_plain(bytes, time, 168, &options, is_kept, &result),
                         DRY_OK);
        assert_true(result.recompute_ns - result.bound_ns <= 1);
        assert_true(result.nodes < 100000);
    }
}

static void
large_problems_are_within_a_stated_gap(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static uint64_t bytes[COUNT], time[COUNT];
    static bool is_kept[COUNT];
    struct dry_keep_result result, again;
    struct random r;
    uint64_t all = 0, all_time = 0;
    random_init(&r, 5);
    for (size_t i = 0; i < COUNT; i++) {
        bytes[i] = (UINT64_C(1) << 20) + random_below(&r, UINT64_C(1) << 28);
        time[i] = bytes[i] / 1000 + 100000;
        all += bytes[i];
        all_time += time[i];
    }
    struct dry_keep_options options = options_of(all / 3);
    options.effort = 2000000;
    assert_int_equal(dry_keep_plain(bytes, time, COUNT, &options, is_kept, &result),
                     DRY_OK);
    assert_true(result.bound_ns > 0 && result.kept_bytes <= all / 3);
    assert_true(result.recompute_ns - result.bound_ns < all_time / 1000);
    assert_int_equal(dry_keep_plain(bytes, time, COUNT, &options, is_kept, &again),
                     DRY_OK);
    assert_int_equal(result.kept_bytes, again.kept_bytes);
    assert_int_equal(result.recompute_ns, again.recompute_ns);
    assert_int_equal(result.nodes, again.nodes);
}

/* --- the curve --------------------------------------------------------------------------------- */

static void
require_convex(const struct dry_keep_curve *c)
{
    for (size_t k = 1; k < c->count; k++) {
        const struct dry_keep_result *a = &c->points[k - 1], *b = &c->points[k];
        assert_true(a->kept_bytes < b->kept_bytes && a->recompute_ns > b->recompute_ns);
        if (k + 1 == c->count)
            continue;
        const struct dry_keep_result *d = &c->points[k + 1];
        double first = (double)(a->recompute_ns - b->recompute_ns) /
                       (double)(b->kept_bytes - a->kept_bytes);
        double second = (double)(b->recompute_ns - d->recompute_ns) /
                        (double)(d->kept_bytes - b->kept_bytes);
        assert_true(first > second);
    }
}

static void
curves_are_convex_and_their_points_are_choices(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct instance in;
        struct random r;
        struct dry_keep_result points[6];
        bool is_kept[6 * ITEMS_MAX];
        random_init(&r, seed);
        make_instance(&in, &r, (uint32_t)random_below(&r, 13));
        struct dry_keep_curve curve = {points, is_kept, 2 + random_below(&r, 5), 0};
        bool is_possible;
        uint64_t best = best_naive(&in.problem, UINT64_MAX, &is_possible);
        enum dry_status status = dry_keep_curve(&in.problem, NULL, &curve, NULL);
        if (best == UINT64_MAX) {
            assert_int_equal(status, DRY_ERR_ARGUMENT);
            continue;
        }
        assert_int_equal(status, DRY_OK);
        assert_true(curve.count >= 1 && curve.count <= curve.capacity);
        require_convex(&curve);
        assert_int_equal(points[curve.count - 1].recompute_ns, best);
        for (size_t k = 0; k < curve.count; k++)
            require_result(&in.problem, is_kept + k * in.problem.item_count, UINT64_MAX,
                           &points[k]);
        assert_int_equal(points[0].recompute_ns,
                         best_naive(&in.problem, points[0].floor_bytes, &is_possible));
    }
}

/* --- what is refused ----------------------------------------------------------------------------- */

static void
require_refused(struct dry_keep_problem p, enum dry_status status, const char *text)
{
    struct dry_keep_result result = {.nodes = 77};
    bool is_kept[4] = {true, false, true, false};
    struct dry_error err;
    assert_int_equal(dry_keep_solve(&p, NULL, is_kept, &result, &err), status);
    assert_non_null(strstr(err.text, text));
    assert_int_equal(result.nodes, 77);
    assert_true(is_kept[0] && !is_kept[1] && is_kept[2] && !is_kept[3]);
}

static void
contradictions_are_refused(void **state)
{
    (void)state;
    struct dry_keep_item tied[] = {{.tied_to = 1}};
    struct dry_keep_item odd[] = {{.rule = 3}};
    struct dry_keep_item torn[] = {{.group = 7, .rule = DRY_KEEP_ALWAYS},
                                   {.group = 7},
                                   {.tied_to = 2, .rule = DRY_KEEP_NEVER}};
    struct dry_keep_item large[] = {{.bytes = INT64_MAX}, {.bytes = 1}};
    struct dry_keep_item slow[] = {{.time_ns = UINT64_MAX}};
    struct dry_keep_item two[] = {{.bytes = 1}, {.bytes = 2}};
    struct dry_keep_input back[] = {{1, 0}}, self[] = {{1, 1}}, nowhere[] = {{0, 2}};
    require_refused((struct dry_keep_problem){tied, 1, NULL, 0}, DRY_ERR_ARGUMENT,
                    "tied");
    require_refused((struct dry_keep_problem){odd, 1, NULL, 0}, DRY_ERR_ARGUMENT, "rule");
    require_refused((struct dry_keep_problem){torn, 3, NULL, 0}, DRY_ERR_ARGUMENT,
                    "always and never");
    require_refused((struct dry_keep_problem){large, 2, NULL, 0}, DRY_ERR_LIMIT, "63");
    require_refused((struct dry_keep_problem){slow, 1, NULL, 0}, DRY_ERR_LIMIT, "63");
    require_refused((struct dry_keep_problem){two, 2, back, 1}, DRY_ERR_ARGUMENT,
                    "before");
    require_refused((struct dry_keep_problem){two, 2, self, 1}, DRY_ERR_ARGUMENT,
                    "before");
    require_refused((struct dry_keep_problem){two, 2, nowhere, 1}, DRY_ERR_ARGUMENT,
                    "before");
    require_refused((struct dry_keep_problem){two, DRY_KEEP_ITEMS_MAX + 1, NULL, 0},
                    DRY_ERR_LIMIT, "items");
    require_refused((struct dry_keep_problem){two, 2, back, DRY_KEEP_INPUTS_MAX + 1},
                    DRY_ERR_LIMIT, "inputs");
}

static void
evaluation_refuses_what_the_rules_forbid(void **state)
{
    (void)state;
    struct dry_keep_item items[] = {{.bytes = 5, .rule = DRY_KEEP_ALWAYS},
                                    {.bytes = 6, .tied_to = 1}};
    struct dry_keep_problem p = {items, 2, NULL, 0};
    struct dry_keep_result result;
    bool none[2] = {false, false}, half[2] = {true, false}, all[2] = {true, true};
    assert_int_equal(dry_keep_evaluate(&p, none, NULL, &result, NULL), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_keep_evaluate(&p, half, NULL, &result, NULL), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_keep_evaluate(&p, all, NULL, &result, NULL), DRY_OK);
    assert_int_equal(result.kept_bytes, 11);
}

static void
nothing_to_keep_is_fine(void **state)
{
    (void)state;
    struct dry_keep_problem p = {0};
    struct dry_keep_result point[2], result;
    struct dry_keep_curve curve = {point, NULL, 2, 0};
    assert_int_equal(dry_keep_solve(&p, NULL, NULL, &result, NULL), DRY_OK);
    assert_true(result.is_proved && result.kept_bytes == 0);
    assert_int_equal(dry_keep_evaluate(&p, NULL, NULL, &result, NULL), DRY_OK);
    assert_int_equal(dry_keep_curve(&p, NULL, &curve, NULL), DRY_OK);
    assert_int_equal(curve.count, 1);
    curve.capacity = 1;
    assert_int_equal(dry_keep_curve(&p, NULL, &curve, NULL), DRY_ERR_ARGUMENT);
}

/* --- failed allocations ---------------------------------------------------------------------------- */

static void
failed_allocations_leave_nothing(void **state)
{
    (void)state;
    struct instance in;
    struct random r;
    random_init(&r, 3);
    do {
        make_instance(&in, &r, 14);
    } while (dry_keep_solve(&in.problem, NULL, (bool[ITEMS_MAX]){0},
                            &(struct dry_keep_result){0}, NULL) != DRY_OK);
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_keep_options options = options_of(UINT64_MAX);
        struct dry_keep_result points[4];
        struct dry_keep_curve curve = {points, NULL, 4, 0};
        options.memory = &memory;
        enum dry_status status = dry_keep_curve(&in.problem, &options, &curve, NULL);
        failing_memory_finish(&fm);
        if (!fm.failed)
            break;
        assert_int_equal(status, DRY_ERR_MEMORY);
    }
}

/* The table is behind a search that has no effort left. */
static void
failed_allocations_of_the_table_leave_nothing(void **state)
{
    (void)state;
    uint64_t bytes[40], time[40];
    bool is_kept[40];
    for (size_t i = 0; i < 40; i++) {
        bytes[i] = 1000 + 17 * i;
        time[i] = 900 + 19 * i;
    }
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dry_keep_options options = options_of(15555);
        struct dry_keep_result result;
        options.memory = &memory;
        options.effort = 1;
        enum dry_status status =
            dry_keep_plain(bytes, time, 40, &options, is_kept, &result);
        failing_memory_finish(&fm);
        if (!fm.failed) {
            assert_true(fm.peak_bytes > UINT64_C(8) * 10000); /* there was one */
            break;
        }
        assert_int_equal(status, DRY_ERR_MEMORY);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_problems_are_solved_as_by_trying_all),
        cmocka_unit_test(little_effort_gives_a_sound_bound),
        cmocka_unit_test(bounds_hold_wherever_a_search_ends),
        cmocka_unit_test(items_that_depend_on_each_other_are_settled),
        cmocka_unit_test(plain_problems_are_solved_as_by_the_table),
        cmocka_unit_test(repeated_blocks_are_settled),
        cmocka_unit_test(large_problems_are_within_a_stated_gap),
        cmocka_unit_test(curves_are_convex_and_their_points_are_choices),
        cmocka_unit_test(contradictions_are_refused),
        cmocka_unit_test(evaluation_refuses_what_the_rules_forbid),
        cmocka_unit_test(nothing_to_keep_is_fine),
        cmocka_unit_test(failed_allocations_leave_nothing),
        cmocka_unit_test(failed_allocations_of_the_table_leave_nothing),
    };
    return cmocka_run_group_tests_name("knapsack", tests, NULL, NULL);
}
