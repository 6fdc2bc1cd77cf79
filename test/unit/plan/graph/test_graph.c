/* SPDX-License-Identifier: Apache-2.0 */

/*
 * plan/graph: the evaluation against a naive one; the exact search against all sequences; known
 * optima of the unit linear graphs; the local search beside the exact one; floors, bounds,
 * what is refused, every failed allocation.
 */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include <drystone/graph.h>

#include "support/failing_memory.h"
#include "support/random.h"

#define SMALL 7
#define RUNS_MAX 64

/* --- graphs --------------------------------------------------------------------------------- */

static struct dry_graph *
new_graph(void)
{
    struct dry_graph *graph;
    assert_int_equal(dry_graph_create(NULL, &graph, NULL), DRY_OK);
    return graph;
}

static void
add(struct dry_graph *graph, uint64_t time, uint64_t bytes)
{
    struct dry_graph_node node = {.time_ns = time, .bytes = bytes};
    assert_int_equal(dry_graph_add(graph, &node, NULL), DRY_OK);
}

static void
connect_nodes(struct dry_graph *graph, uint32_t from, uint32_t to)
{
    assert_int_equal(dry_graph_connect(graph, from, to, NULL), DRY_OK);
}

static void
seal(struct dry_graph *graph)
{
    assert_int_equal(dry_graph_seal(graph, NULL, NULL), DRY_OK);
}

/* Checkmate's unit linear graph: n forwards and n + 1 backwards. */
static struct dry_graph *
make_linear(uint32_t n)
{
    struct dry_graph *graph = new_graph();
    for (uint32_t i = 0; i < 2 * n + 1; i++)
        add(graph, 1, 1);
    for (uint32_t i = 0; i < 2 * n; i++)
        connect_nodes(graph, i, i + 1);
    for (uint32_t i = 0; i < n; i++)
        connect_nodes(graph, i, 2 * n - i);
    seal(graph);
    return graph;
}

struct instance {
    struct dry_graph *graph;
    uint32_t count;
    struct dry_graph_node nodes[SMALL];
    uint32_t inputs[SMALL]; /* sets */
};

static void
make_instance(struct instance *in, struct random *r, uint32_t count)
{
    in->graph = new_graph();
    in->count = count;
    for (uint32_t i = 0; i < count; i++) {
        in->inputs[i] = 0;
        in->nodes[i] = (struct dry_graph_node){
            .time_ns = random_below(r, 9),
            .bytes = random_below(r, 6),
            .tmp_bytes = random_below(r, 4) ? 0 : random_below(r, 4),
            .is_fixed = random_below(r, 8) == 0,
            .is_output = random_below(r, 8) == 0,
        };
        assert_int_equal(dry_graph_add(in->graph, &in->nodes[i], NULL), DRY_OK);
        for (uint32_t k = 0; k < i; k++) {
            if (random_below(r, 5) < 2) {
                connect_nodes(in->graph, k, i);
                in->inputs[i] |= 1u << k;
            }
        }
    }
    seal(in->graph);
}

/* --- the evaluation --------------------------------------------------------------------------- */

static bool
reads(const struct instance *in, uint32_t node, uint32_t value)
{
    return in->inputs[node] >> value & 1;
}

/* Is what run `at` makes there while run p runs? Word for word. */
static bool
is_there(const struct instance *in, const uint32_t *runs, size_t count, size_t at,
         size_t p)
{
    if (at > p)
        return false;
    bool is_read = at == p;
    for (size_t k = at + 1; k < count; k++) {
        if (runs[k] == runs[at])
            return is_read;
        is_read = is_read || (k >= p && reads(in, runs[k], runs[at]));
    }
    return is_read || in->nodes[runs[at]].is_output;
}

static uint64_t
need_naive(const struct instance *in, const uint32_t *runs, size_t count, size_t p)
{
    uint64_t bytes = in->nodes[runs[p]].tmp_bytes;
    for (size_t at = 0; at < count; at++) {
        bool is_remade = false; /* between its run and p: it went when it was last read */
        for (size_t k = at + 1; k <= p; k++)
            is_remade = is_remade || runs[k] == runs[at];
        if (!is_remade && is_there(in, runs, count, at, p))
            bytes += in->nodes[runs[at]].bytes;
    }
    return bytes;
}

struct watch {
    const struct instance *in;
    const uint32_t *runs;
    size_t count, seen;
    uint64_t time, peak, held;
};

static void
watch_step(void *self, const struct dry_graph_step *step)
{
    struct watch *w = self;
    const struct dry_graph_node *node = &w->in->nodes[step->node];
    assert_int_equal(step->node, w->runs[w->seen]);
    assert_int_equal(step->time_ns, w->time);
    assert_int_equal(step->needed_bytes, need_naive(w->in, w->runs, w->count, w->seen));
    assert_int_equal(step->needed_bytes, w->held + node->bytes + node->tmp_bytes);
    bool is_rerun = false;
    for (size_t k = 0; k < w->seen; k++)
        is_rerun = is_rerun || w->runs[k] == step->node;
    assert_int_equal(step->is_rerun, is_rerun);
    w->held = step->held_bytes;
    w->time += node->time_ns;
    w->peak = step->needed_bytes > w->peak ? step->needed_bytes : w->peak;
    w->seen++;
}

/* In the order, with reruns by chance. */
static size_t
make_runs(const struct instance *in, struct random *r, uint32_t *runs)
{
    size_t count = 0;
    for (uint32_t i = 0; i < in->count; i++) {
        runs[count++] = i;
        while (random_below(r, 2) && count < RUNS_MAX - SMALL) {
            uint32_t node = (uint32_t)random_below(r, i + 1);
            if (!in->nodes[node].is_fixed)
                runs[count++] = node;
        }
    }
    return count;
}

static void
evaluation_agrees_with_the_naive_one(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 5000; seed++) {
        struct instance in;
        struct random r;
        uint32_t runs[RUNS_MAX];
        struct dry_graph_cost cost;
        random_init(&r, seed);
        make_instance(&in, &r, 1 + (uint32_t)random_below(&r, SMALL));
        struct watch w = {.in = &in, .runs = runs};
        w.count = make_runs(&in, &r, runs);
        struct dry_graph_observer observer = {watch_step, &w};
        assert_int_equal(
            dry_graph_evaluate(in.graph, runs, w.count, &observer, &cost, NULL), DRY_OK);
        assert_int_equal(w.seen, w.count);
        assert_int_equal(cost.peak_bytes, w.peak);
        assert_int_equal(cost.time_ns, w.time);
        assert_int_equal(cost.time_ns, cost.base_ns + cost.extra_ns);
        assert_int_equal(cost.rerun_count, w.count - in.count);
        assert_int_equal(cost.peak_node, runs[cost.peak_run]);
        assert_int_equal(need_naive(&in, runs, w.count, cost.peak_run), w.peak);
        uint64_t outputs = 0;
        for (uint32_t i = 0; i < in.count; i++)
            outputs += in.nodes[i].is_output ? in.nodes[i].bytes : 0;
        assert_int_equal(w.held, outputs);
        dry_graph_destroy(in.graph);
    }
}

static void
require_evaluation_refuses(const struct dry_graph *graph, const uint32_t *runs,
                           size_t count, const char *text)
{
    struct dry_graph_cost cost;
    struct dry_error err;
    assert_int_equal(dry_graph_evaluate(graph, runs, count, NULL, &cost, &err),
                     DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, text));
}

static void
evaluation_refuses_what_is_no_sequence(void **state)
{
    (void)state;
    struct dry_graph *graph = new_graph();
    struct dry_graph_node fixed = {.is_fixed = true};
    add(graph, 1, 1);
    assert_int_equal(dry_graph_add(graph, &fixed, NULL), DRY_OK);
    connect_nodes(graph, 0, 1);
    require_evaluation_refuses(graph, (uint32_t[]){0, 1}, 2, "not sealed");
    seal(graph);
    require_evaluation_refuses(graph, (uint32_t[]){1, 0}, 2, "before its input");
    require_evaluation_refuses(graph, (uint32_t[]){0}, 1, "never runs");
    require_evaluation_refuses(graph, (uint32_t[]){0, 1, 1}, 3, "must not run twice");
    require_evaluation_refuses(graph, (uint32_t[]){0, 2}, 2, "of 2 nodes");
    dry_graph_destroy(graph);
}

/* --- planning: all sequences ---------------------------------------------------------------------- */

#define SETS (1u << SMALL)

/* The least time to have run `done` nodes and hold a set: relaxed until nothing changes. */
struct table {
    const struct instance *in;
    uint64_t budget;
    uint64_t time[SMALL + 1][SETS];
    bool has_changed;
};

static uint64_t
bytes_of(const struct instance *in, uint32_t set)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < in->count; i++)
        bytes += set >> i & 1 ? in->nodes[i].bytes : 0;
    return bytes;
}

/* Run a node while any part of what is there is held. */
static void
relax(struct table *t, uint32_t done, uint32_t set, uint32_t node)
{
    const struct dry_graph_node *n = &t->in->nodes[node];
    uint32_t inputs = t->in->inputs[node], bit = 1u << node;
    uint32_t next = done + (node == done);
    if ((set & inputs) != inputs || (n->is_fixed && node < done))
        return;
    for (uint32_t held = set;; held = (held - 1) & set) {
        uint64_t need = bytes_of(t->in, held | bit) + n->tmp_bytes;
        uint64_t time = t->time[done][set] + n->time_ns;
        if ((held & inputs) == inputs && !(held & bit) && need <= t->budget &&
            time < t->time[next][held | bit]) {
            t->time[next][held | bit] = time;
            t->has_changed = true;
        }
        if (held == 0)
            return;
    }
}

static uint64_t
best_naive(const struct instance *in, uint64_t budget)
{
    static struct table t;
    uint64_t best = UINT64_MAX;
    uint32_t outputs = 0;
    memset(t.time, 0xff, sizeof t.time);
    t.in = in;
    t.budget = budget;
    t.time[0][0] = 0;
    do {
        t.has_changed = false;
        for (uint32_t done = 0; done <= in->count; done++) {
            for (uint32_t set = 0; set < 1u << in->count; set++) {
                for (uint32_t node = 0;
                     t.time[done][set] != UINT64_MAX && node <= done && node < in->count;
                     node++)
                    relax(&t, done, set, node);
            }
        }
    } while (t.has_changed);
    for (uint32_t i = 0; i < in->count; i++)
        outputs |= (uint32_t)in->nodes[i].is_output << i;
    for (uint32_t set = 0; set < 1u << in->count; set++) {
        if ((set & outputs) == outputs && t.time[in->count][set] < best)
            best = t.time[in->count][set];
    }
    return best;
}

static struct dry_graph_options
options_of(uint64_t budget)
{
    struct dry_graph_options options;
    dry_graph_options_init(&options);
    options.budget_bytes = budget;
    return options;
}

/* UINT64_MAX: there is no plan; then *bound is, too, if that is proved. */
static uint64_t
plan_and_bound(const struct dry_graph *graph, const struct dry_graph_options *options,
               uint64_t *bound)
{
    struct dry_graph_plan *plan;
    struct dry_graph_cost cost;
    struct dry_error err = {.text = ""};
    size_t count;
    enum dry_status status = dry_graph_plan_create(graph, options, &plan, &err);
    *bound = strstr(err.text, "was found") ? 0 : UINT64_MAX;
    if (status == DRY_ERR_NO_SPACE)
        return UINT64_MAX;
    assert_int_equal(status, DRY_OK);
    const struct dry_graph_summary *s = dry_graph_plan_get_summary(plan);
    const uint32_t *runs = dry_graph_plan_get_runs(plan, &count);
    assert_int_equal(dry_graph_evaluate(graph, runs, count, NULL, &cost, NULL), DRY_OK);
    assert_int_equal(cost.peak_bytes, s->cost.peak_bytes);
    assert_int_equal(cost.peak_run, s->cost.peak_run);
    assert_int_equal(cost.time_ns, s->cost.time_ns);
    assert_int_equal(cost.rerun_count, s->cost.rerun_count);
    assert_true(cost.peak_bytes <= options->budget_bytes);
    assert_true(cost.peak_bytes >= s->floor_bytes);
    assert_true(s->bound_ns <= cost.time_ns);
    assert_int_equal(s->is_proved, s->bound_ns == cost.time_ns);
    if (s->method == DRY_GRAPH_EXACT)
        assert_true(s->is_proved);
    if (s->method == DRY_GRAPH_ORDER)
        assert_true(cost.rerun_count == 0 && s->order_bytes == cost.peak_bytes);
    *bound = s->bound_ns;
    dry_graph_plan_destroy(plan);
    return cost.time_ns;
}

static uint64_t
plan_time(const struct dry_graph *graph, const struct dry_graph_options *options)
{
    uint64_t bound;
    return plan_and_bound(graph, options, &bound);
}

static void
small_graphs_are_planned_as_by_trying_all(void **state)
{
    (void)state;
    size_t plans = 0, equal = 0, none = 0, proved = 0;
    for (uint64_t seed = 0; seed < 3000; seed++) {
        struct instance in;
        struct random r;
        random_init(&r, seed);
        make_instance(&in, &r, 1 + (uint32_t)random_below(&r, SMALL));
        struct dry_graph_options options = options_of(4 + random_below(&r, 14));
        uint64_t best = best_naive(&in, options.budget_bytes);
        assert_int_equal(plan_time(in.graph, &options), best);
        options.state_max = 0;
        options.steps = 100;
        uint64_t bound, found = plan_and_bound(in.graph, &options, &bound);
        assert_true(found >= best && bound <= best);
        proved += bound == best;
        plans += best != UINT64_MAX;
        equal += best != UINT64_MAX && found == best;
        none += best == UINT64_MAX;
        dry_graph_destroy(in.graph);
    }
    print_message("local search: %zu of %zu the best, %zu without a plan, %zu proved\n",
                  equal, plans, none, proved);
    assert_true(none > 100 && equal * 100 >= plans * 99 && proved * 10 >= 3000 * 9);
}

/* Optima of the mixed integer program, by cbc and by trying all. */
static const struct {
    uint32_t n, budget;
    uint64_t time;
} linear[] = {
    {2, 4, 5},   {2, 3, 6},   {4, 6, 9},    {4, 5, 10},   {4, 4, 11},   {4, 3, 15},
    {6, 8, 13},  {6, 7, 14},  {6, 6, 15},   {6, 5, 16},   {6, 4, 18},   {6, 3, 28},
    {8, 10, 17}, {8, 9, 18},  {8, 8, 19},   {8, 7, 20},   {8, 6, 21},   {8, 5, 22},
    {8, 4, 26},  {8, 3, 45},  {10, 12, 21}, {10, 11, 22}, {10, 10, 23}, {10, 9, 24},
    {10, 8, 25}, {10, 7, 26}, {10, 6, 27},  {10, 5, 29},  {10, 4, 35},  {10, 3, 66},
};

static void
unit_linear_graphs_have_known_optima(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof linear / sizeof *linear; k++) {
        struct dry_graph *graph = make_linear(linear[k].n);
        struct dry_graph_options options = options_of(linear[k].budget);
        assert_int_equal(plan_time(graph, &options), linear[k].time);
        options.state_max = 0;
        options.steps = 1000;
        assert_int_equal(plan_time(graph, &options), linear[k].time);
        options.budget_bytes = 2;
        assert_int_equal(plan_time(graph, &options), UINT64_MAX);
        dry_graph_destroy(graph);
    }
}

/* --- properties ---------------------------------------------------------------------------------------- */

static void
more_room_never_takes_more_time(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct instance in;
        struct random r;
        random_init(&r, seed);
        make_instance(&in, &r, SMALL);
        uint64_t last = UINT64_MAX;
        for (uint64_t budget = 0; budget < 30; budget++) {
            struct dry_graph_options options = options_of(budget);
            uint64_t time = plan_time(in.graph, &options);
            assert_true(time <= last);
            last = time;
        }
        assert_int_not_equal(last, UINT64_MAX);
        dry_graph_destroy(in.graph);
    }
}

/* Random layers: every node reads some of the last few. */
static struct dry_graph *
make_layers(uint32_t count, uint64_t unit, uint64_t seed)
{
    struct dry_graph *graph = new_graph();
    struct random r;
    random_init(&r, seed);
    for (uint32_t i = 0; i < count; i++) {
        add(graph, 1 + random_below(&r, 100), unit * (1 + random_below(&r, 100)));
        for (uint32_t k = 0; k < 2 && i > 0; k++) {
            uint32_t reach = i < 10 ? i : (k ? 10 : i);
            connect_nodes(graph, i - 1 - (uint32_t)random_below(&r, reach), i);
        }
    }
    seal(graph);
    return graph;
}

static uint64_t
order_bytes(const struct dry_graph *graph)
{
    struct dry_graph_cost cost;
    assert_int_equal(dry_graph_evaluate(graph, dry_graph_get_order(graph),
                                        dry_graph_get_count(graph), NULL, &cost, NULL),
                     DRY_OK);
    return cost.peak_bytes;
}

static void
units_make_no_difference_and_plans_repeat(void **state)
{
    (void)state;
    struct dry_graph *one = make_layers(120, 1, 4), *many = make_layers(120, 4096, 4);
    uint64_t budget = order_bytes(one) * 4 / 5;
    struct dry_graph_plan *plans[3];
    const struct dry_graph_summary *s[3];
    struct dry_graph_options options = options_of(budget);
    options.steps = 200;
    assert_int_equal(dry_graph_plan_create(one, &options, &plans[0], NULL), DRY_OK);
    assert_int_equal(dry_graph_plan_create(one, &options, &plans[1], NULL), DRY_OK);
    options.budget_bytes = 4096 * budget;
    assert_int_equal(dry_graph_plan_create(many, &options, &plans[2], NULL), DRY_OK);
    for (size_t k = 0; k < 3; k++)
        s[k] = dry_graph_plan_get_summary(plans[k]);
    assert_int_equal(s[0]->hash, s[1]->hash);
    assert_int_equal(s[2]->floor_bytes, 4096 * s[0]->floor_bytes);
    assert_int_equal(s[2]->order_bytes, 4096 * s[0]->order_bytes);
    assert_true(s[0]->cost.extra_ns > 0 && s[0]->method == DRY_GRAPH_SEARCH);
    for (size_t k = 0; k < 3; k++)
        dry_graph_plan_destroy(plans[k]);
    dry_graph_destroy(one);
    dry_graph_destroy(many);
}

static void
more_rounds_never_take_more_time(void **state)
{
    (void)state;
    struct dry_graph *graph = make_layers(150, 1, 9);
    struct dry_graph_options options = options_of(order_bytes(graph) * 3 / 4);
    options.steps = 0;
    uint64_t first = plan_time(graph, &options);
    options.steps = 200;
    uint64_t found = plan_time(graph, &options);
    assert_int_not_equal(first, UINT64_MAX);
    assert_true(found < first);
    dry_graph_destroy(graph);
}

static bool
stop_at_third(void *self, uint64_t step, uint64_t best_ns)
{
    uint64_t *last = self;
    assert_true(step == *last + 1 || (step == 0 && *last == 0));
    assert_true(step == 0 || best_ns != UINT64_MAX);
    *last = step;
    return step == 3;
}

static void
progress_can_end_the_search(void **state)
{
    (void)state;
    struct dry_graph *graph = make_layers(100, 1, 2);
    struct dry_graph_options options = options_of(order_bytes(graph) * 3 / 4);
    struct dry_graph_plan *plan;
    uint64_t last = 0;
    options.progress = stop_at_third;
    options.progress_self = &last;
    assert_int_equal(dry_graph_plan_create(graph, &options, &plan, NULL), DRY_OK);
    assert_int_equal(last, 3);
    assert_int_equal(dry_graph_plan_get_summary(plan)->steps, 3);
    dry_graph_plan_destroy(plan);
    dry_graph_destroy(graph);
}

static void
thousand_nodes_are_planned(void **state)
{
    (void)state;
    struct dry_graph *graph = make_layers(1000, 1 << 20, 1);
    struct dry_graph_options options = options_of(order_bytes(graph) * 4 / 5);
    options.steps = 5;
    assert_int_not_equal(plan_time(graph, &options), UINT64_MAX);
    dry_graph_destroy(graph);
}

/* --- floors --------------------------------------------------------------------------------------------- */

static void
infeasible_budgets_name_the_node_that_binds(void **state)
{
    (void)state;
    struct dry_graph *graph = new_graph();
    struct dry_graph_node large = {.name = "large", .bytes = 50, .tmp_bytes = 7};
    struct dry_graph_plan *plan;
    struct dry_error err;
    uint32_t node;
    add(graph, 1, 20);
    assert_int_equal(dry_graph_add(graph, &large, NULL), DRY_OK);
    add(graph, 1, 10);
    connect_nodes(graph, 0, 1);
    connect_nodes(graph, 1, 2);
    seal(graph);
    assert_int_equal(dry_graph_get_floor(graph, &node), 77);
    assert_int_equal(node, 1);
    struct dry_graph_options options = options_of(76);
    assert_int_equal(dry_graph_plan_create(graph, &options, &plan, &err),
                     DRY_ERR_NO_SPACE);
    assert_non_null(strstr(err.text, "node 1 (large) cannot run in less than 77 bytes"));
    options.budget_bytes = 77;
    assert_int_equal(plan_time(graph, &options), 2);
    dry_graph_destroy(graph);
}

/* Two values of 2 are made of one of 1, and one reads both: never all in 4, though all can run. */
static void
infeasible_budgets_above_the_floor_are_proved(void **state)
{
    (void)state;
    struct dry_graph *graph = new_graph();
    struct dry_graph_plan *plan;
    struct dry_error err;
    add(graph, 1, 1);
    add(graph, 1, 2);
    add(graph, 1, 2);
    add(graph, 1, 0);
    connect_nodes(graph, 0, 1);
    connect_nodes(graph, 0, 2);
    connect_nodes(graph, 1, 3);
    connect_nodes(graph, 2, 3);
    seal(graph);
    assert_int_equal(dry_graph_get_floor(graph, NULL), 4);
    struct dry_graph_options options = options_of(4);
    assert_int_equal(dry_graph_plan_create(graph, &options, &plan, &err),
                     DRY_ERR_NO_SPACE);
    assert_non_null(strstr(err.text, "that is proved"));
    options.state_max = 0;
    assert_int_equal(dry_graph_plan_create(graph, &options, &plan, &err),
                     DRY_ERR_NO_SPACE);
    assert_non_null(strstr(err.text, "was found"));
    dry_graph_destroy(graph);
}

/* What must not run twice, and what stays to the end, counts where others run. */
static void
floors_have_what_cannot_be_made_again(void **state)
{
    (void)state;
    struct dry_graph *graph = new_graph();
    struct dry_graph_node fixed = {.bytes = 10, .is_fixed = true},
                          output = {.bytes = 20, .is_output = true};
    uint32_t node;
    assert_int_equal(dry_graph_add(graph, &fixed, NULL), DRY_OK);
    add(graph, 1, 7);
    assert_int_equal(dry_graph_add(graph, &output, NULL), DRY_OK);
    connect_nodes(graph, 0, 2);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(dry_graph_add(graph, &output, NULL), DRY_OK);
    seal(graph);
    assert_int_equal(dry_graph_get_floor(graph, &node), 80);
    assert_int_equal(node, 5);
    dry_graph_destroy(graph);
    graph = new_graph();
    assert_int_equal(dry_graph_add(graph, &fixed, NULL), DRY_OK);
    add(graph, 1, 7);
    add(graph, 1, 1);
    connect_nodes(graph, 0, 2);
    seal(graph);
    assert_int_equal(dry_graph_get_floor(graph, &node), 17);
    assert_int_equal(node, 1);
    dry_graph_destroy(graph);
}

static void
no_nodes_are_a_plan(void **state)
{
    (void)state;
    struct dry_graph *graph = new_graph();
    struct dry_graph_options options = options_of(0);
    seal(graph);
    assert_int_equal(plan_time(graph, &options), 0);
    dry_graph_destroy(graph);
}

/* --- building -------------------------------------------------------------------------------------------- */

static void
orders_are_found_the_least_number_first(void **state)
{
    (void)state;
    static const uint32_t expected[] = {1, 3, 0, 2, 4};
    struct dry_graph *graph = new_graph();
    for (uint32_t i = 0; i < 5; i++)
        add(graph, 1, 1);
    connect_nodes(graph, 3, 0);
    connect_nodes(graph, 3, 0);
    connect_nodes(graph, 1, 3);
    connect_nodes(graph, 0, 2);
    assert_null(dry_graph_get_order(graph));
    seal(graph);
    assert_memory_equal(dry_graph_get_order(graph), expected, sizeof expected);
    assert_null(dry_graph_get_node(graph, 5));
    dry_graph_destroy(graph);
}

static void
given_orders_are_held_against_the_edges(void **state)
{
    (void)state;
    static const uint32_t twice[] = {0, 0, 1}, nowhere[] = {0, 1, 3}, back[] = {1, 0, 2},
                          fine[] = {2, 0, 1};
    struct dry_graph *graph = new_graph();
    struct dry_error err;
    for (uint32_t i = 0; i < 3; i++)
        add(graph, 1, 1);
    connect_nodes(graph, 0, 1);
    assert_int_equal(dry_graph_seal(graph, twice, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "second time"));
    assert_int_equal(dry_graph_seal(graph, nowhere, &err), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_graph_seal(graph, back, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "before its input"));
    assert_int_equal(dry_graph_seal(graph, fine, &err), DRY_OK);
    assert_memory_equal(dry_graph_get_order(graph), fine, sizeof fine);
    dry_graph_destroy(graph);
}

static void
cycles_are_refused_by_name(void **state)
{
    (void)state;
    struct dry_graph *graph = new_graph();
    struct dry_graph_node node = {.name = "in the ring"};
    struct dry_error err;
    add(graph, 1, 1);
    for (uint32_t i = 1; i < 4; i++)
        assert_int_equal(dry_graph_add(graph, &node, NULL), DRY_OK);
    add(graph, 1, 1);
    for (uint32_t i = 0; i < 4; i++)
        connect_nodes(graph, i, i + 1);
    connect_nodes(graph, 3, 1);
    assert_int_equal(dry_graph_seal(graph, NULL, &err), DRY_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "in the ring"));
    assert_null(dry_graph_get_order(graph));
    dry_graph_destroy(graph);
}

static void
what_is_no_graph_is_refused(void **state)
{
    (void)state;
    struct dry_graph *graph = new_graph();
    struct dry_graph_node large = {.bytes = INT64_MAX}, slow = {.time_ns = INT64_MAX},
                          wide = {.tmp_bytes = UINT64_MAX}, one = {.bytes = 1};
    struct dry_graph_plan *plan;
    add(graph, 1, 1);
    assert_int_equal(dry_graph_connect(graph, 0, 1, NULL), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_graph_connect(graph, 7, 0, NULL), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_graph_connect(graph, 0, 0, NULL), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_graph_add(graph, &large, NULL), DRY_ERR_LIMIT);
    assert_int_equal(dry_graph_add(graph, &slow, NULL), DRY_ERR_LIMIT);
    assert_int_equal(dry_graph_add(graph, &wide, NULL), DRY_ERR_LIMIT);
    assert_int_equal(dry_graph_get_count(graph), 1);
    assert_int_equal(dry_graph_plan_create(graph, NULL, &plan, NULL), DRY_ERR_ARGUMENT);
    seal(graph);
    assert_int_equal(dry_graph_add(graph, &one, NULL), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_graph_connect(graph, 0, 0, NULL), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_graph_seal(graph, NULL, NULL), DRY_ERR_ARGUMENT);
    dry_graph_destroy(graph);
}

/* Sums that no 64 bits hold come up only where nodes run again. */
static void
slow_reruns_do_not_wrap(void **state)
{
    (void)state;
    struct dry_graph *graph = new_graph();
    struct dry_graph_cost cost;
    struct dry_error err;
    add(graph, INT64_MAX - 1, 1);
    add(graph, 1, 1);
    seal(graph);
    assert_int_equal(
        dry_graph_evaluate(graph, (uint32_t[]){0, 0, 0, 1}, 4, NULL, &cost, &err),
        DRY_ERR_LIMIT);
    dry_graph_destroy(graph);
}

/* --- the program for others --------------------------------------------------------------------------------- */

struct pieces {
    size_t left, bytes;
};

static bool
take_pieces(void *self, const char *text, size_t length)
{
    struct pieces *p = self;
    assert_int_equal(strlen(text), length);
    p->bytes += length;
    return p->left-- == 0;
}

static void
programs_are_written_to_the_end_or_to_a_stop(void **state)
{
    (void)state;
    struct dry_graph *graph = make_linear(3), *large = new_graph(), *open = new_graph();
    struct pieces all = {SIZE_MAX, 0}, few = {10, 0};
    struct dry_graph_writer writer = {take_pieces, &all}, stopped = {take_pieces, &few};
    assert_int_equal(dry_graph_write_lp(graph, 5, &writer, NULL), DRY_OK);
    assert_true(all.bytes > 1000);
    assert_int_equal(dry_graph_write_lp(graph, 5, &stopped, NULL), DRY_ERR_CANCELLED);
    assert_true(few.bytes < 1000);
    for (uint32_t i = 0; i < 301; i++)
        add(large, 1, 1);
    seal(large);
    assert_int_equal(dry_graph_write_lp(large, 5, &writer, NULL), DRY_ERR_LIMIT);
    assert_int_equal(dry_graph_write_lp(open, 5, &writer, NULL), DRY_ERR_ARGUMENT);
    dry_graph_destroy(graph);
    dry_graph_destroy(large);
    dry_graph_destroy(open);
}

/* --- failed allocations ------------------------------------------------------------------------------------ */

static enum dry_status
build_and_plan(const struct dry_memory *memory, uint64_t state_max)
{
    struct dry_graph *graph;
    struct dry_graph_plan *plan;
    struct dry_graph_node node = {.name = "n", .time_ns = 1, .bytes = 1};
    enum dry_status status = dry_graph_create(memory, &graph, NULL);
    if (status != DRY_OK)
        return status;
    for (uint32_t i = 0; i < 17 && status == DRY_OK; i++)
        status = dry_graph_add(graph, &node, NULL);
    for (uint32_t i = 0; i < 16 && status == DRY_OK; i++)
        status = dry_graph_connect(graph, i, i + 1, NULL);
    for (uint32_t i = 0; i < 8 && status == DRY_OK; i++)
        status = dry_graph_connect(graph, i, 16 - i, NULL);
    if (status == DRY_OK)
        status = dry_graph_seal(graph, NULL, NULL);
    struct dry_graph_options options = options_of(5);
    options.state_max = state_max;
    options.steps = 2;
    if (status == DRY_OK)
        status = dry_graph_plan_create(graph, &options, &plan, NULL);
    if (status == DRY_OK)
        dry_graph_plan_destroy(plan);
    dry_graph_destroy(graph);
    return status;
}

static void
failed_allocations_leave_nothing(void **state)
{
    (void)state;
    for (uint64_t state_max = 0; state_max <= 1 << 20; state_max += 1 << 20) {
        for (size_t n = 0;; n++) {
            struct failing_memory fm;
            struct dry_memory memory = failing_memory_init(&fm, n);
            enum dry_status status = build_and_plan(&memory, state_max);
            failing_memory_finish(&fm);
            if (!fm.failed)
                break;
            assert_int_equal(status, DRY_ERR_MEMORY);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(evaluation_agrees_with_the_naive_one),
        cmocka_unit_test(evaluation_refuses_what_is_no_sequence),
        cmocka_unit_test(small_graphs_are_planned_as_by_trying_all),
        cmocka_unit_test(unit_linear_graphs_have_known_optima),
        cmocka_unit_test(more_room_never_takes_more_time),
        cmocka_unit_test(units_make_no_difference_and_plans_repeat),
        cmocka_unit_test(more_rounds_never_take_more_time),
        cmocka_unit_test(progress_can_end_the_search),
        cmocka_unit_test(thousand_nodes_are_planned),
        cmocka_unit_test(infeasible_budgets_name_the_node_that_binds),
        cmocka_unit_test(infeasible_budgets_above_the_floor_are_proved),
        cmocka_unit_test(floors_have_what_cannot_be_made_again),
        cmocka_unit_test(no_nodes_are_a_plan),
        cmocka_unit_test(orders_are_found_the_least_number_first),
        cmocka_unit_test(given_orders_are_held_against_the_edges),
        cmocka_unit_test(cycles_are_refused_by_name),
        cmocka_unit_test(what_is_no_graph_is_refused),
        cmocka_unit_test(slow_reruns_do_not_wrap),
        cmocka_unit_test(programs_are_written_to_the_end_or_to_a_stop),
        cmocka_unit_test(failed_allocations_leave_nothing),
    };
    return cmocka_run_group_tests_name("graph", tests, NULL, NULL);
}
