/* SPDX-License-Identifier: Apache-2.0 */
/* See graph_report.h. */
#include "plan/graph_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/graph.h>

#include "base/command.h"
#include "base/fail.h"
#include "base/json_out.h"
#include "base/output.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/table.h"
#include "plan/graph_json.h"
#include "plan/plan_report.h"

#define ROWS_MAX 30

struct graph_plan {
    const struct graph_request *request;
    struct graph_file file;
    struct dry_graph_plan *plan; /* NULL: no plan fits */
    struct dry_graph_summary summary;
    const uint32_t *runs;
    size_t run_count;
    uint64_t budget_bytes; /* including always_bytes */
    char why[232];         /* why no plan was found */
};

/* Write a node's index and name: "17 (conv1)". */
static const char *
format_node(const struct graph_plan *g, uint32_t index, char text[PLAN_WHERE_BYTES])
{
    const struct dry_graph_node *node = dry_graph_get_node(g->file.graph, index);
    char name[CHAIN_NAME_BYTES] = "";
    if (node && node->name)
        term_make_printable(name, sizeof name, node->name, strlen(node->name));
    snprintf(text, PLAN_WHERE_BYTES, "%" PRIu32 "%s%s%s", index, *name ? " (" : "", name,
             *name ? ")" : "");
    return text;
}

/* --- the plan ----------------------------------------------------------------------------- */

static int
choose_budget(struct graph_plan *g)
{
    const struct chain_budget *budget = &g->file.budget;
    g->budget_bytes = g->request->budget_bytes;
    if (g->budget_bytes == UINT64_MAX && budget->is_given)
        g->budget_bytes = budget->bytes;
    if (g->budget_bytes == UINT64_MAX)
        return report_usage("plan",
                            "no budget is given: --budget 40GiB, or \"budget\" in "
                            "the file");
    return EXIT_FINE;
}

/* Return the bytes that the library plans with: the budget less always_bytes. */
static uint64_t
get_free_budget(const struct graph_plan *g)
{
    uint64_t always = g->file.always_bytes;
    return g->budget_bytes > always ? g->budget_bytes - always : 0;
}

struct teller {
    struct progress progress;
    uint64_t first, steps; /* calls before the first round; maximum number of rounds */
};

static bool
note_round(void *self, uint64_t step, uint64_t best_ns)
{
    struct teller *teller = self;
    (void)best_ns;
    teller->progress.what = step ? "improving the plan" : "looking for a first plan";
    teller->progress.total = step ? teller->steps : 0;
    return progress_update(&teller->progress, step ? step : ++teller->first);
}

/* Find the limits if there is no plan: the least memory that any plan needs, and the
   memory of the file's order without recomputation. */
static void
find_limits(struct graph_plan *g)
{
    const struct dry_graph *graph = g->file.graph;
    struct dry_graph_cost cost = {0};
    uint32_t node;
    g->summary.floor_bytes = dry_graph_get_floor(graph, &node);
    g->summary.floor_node = node;
    if (dry_graph_evaluate(graph, dry_graph_get_order(graph), dry_graph_get_count(graph),
                           NULL, &cost, NULL) == DRY_OK)
        g->summary.order_bytes = cost.peak_bytes;
}

static enum dry_status
make_plan(struct graph_plan *g, struct dry_error *err)
{
    struct dry_graph_options options;
    dry_graph_options_init(&options);
    struct teller teller = {.steps = options.steps};
    options.progress = note_round;
    options.progress_self = &teller;
    options.budget_bytes = get_free_budget(g);
    progress_begin(&teller.progress, "planning", 0);
    enum dry_status status =
        dry_graph_plan_create(g->file.graph, &options, &g->plan, err);
    progress_end(&teller.progress);
    if (status == DRY_OK) {
        g->summary = *dry_graph_plan_get_summary(g->plan);
        g->runs = dry_graph_plan_get_runs(g->plan, &g->run_count);
    } else {
        find_limits(g);
        snprintf(g->why, sizeof g->why, "%s", err->text);
    }
    return status == DRY_ERR_NO_SPACE ? DRY_OK : status;
}

/* --- text --------------------------------------------------------------------------------- */

struct again {
    uint32_t node;
    uint32_t count; /* runs after the first */
    uint64_t time_ns;
};

static int
compare_again(const void *a, const void *b)
{
    const struct again *x = a, *y = b;
    if (x->time_ns != y->time_ns)
        return x->time_ns < y->time_ns ? 1 : -1;
    return x->node < y->node ? -1 : x->node > y->node;
}

static void
print_again(const struct graph_plan *g, const struct again *again, size_t count)
{
    struct term term;
    struct table t;
    char text[PLAN_WHERE_BYTES];
    term_init(&term, stdout);
    table_init(&t, "<operation >recomputed >time >bytes");
    size_t shown = count < ROWS_MAX ? count : ROWS_MAX;
    for (size_t i = 0; i < shown; i++) {
        const struct dry_graph_node *node =
            dry_graph_get_node(g->file.graph, again[i].node);
        table_add(&t, format_node(g, again[i].node, text));
        table_add(&t, term_format_count(again[i].count, text));
        table_add(&t, plan_format_time(again[i].time_ns, text));
        table_add(&t, term_format_bytes(node->bytes, text));
    }
    printf("\n");
    if (!table_print(&t, &term))
        printf("  (no memory for the table)\n");
    if (shown < count)
        printf("  (%zu more: --json has the sequence)\n", count - shown);
}

/* Print the operations that are run again, the longest recomputation first. */
static int
print_table(const struct graph_plan *g)
{
    size_t node_count = dry_graph_get_count(g->file.graph), count = 0;
    struct again *again = calloc(node_count, sizeof *again);
    if (!again)
        return report_memory("plan", g->request->path);
    for (uint32_t i = 0; i < node_count; i++)
        again[i] = (struct again){.node = i, .count = UINT32_MAX};
    for (size_t i = 0; i < g->run_count; i++)
        again[g->runs[i]].count++; /* starts at -1, so the first run does not count */
    for (uint32_t i = 0; i < node_count; i++) {
        again[i].time_ns = again[i].count * dry_graph_get_node(g->file.graph, i)->time_ns;
        if (again[i].count > 0)
            again[count++] = again[i];
    }
    qsort(again, count, sizeof *again, compare_again);
    if (count > 0)
        print_again(g, again, count);
    free(again);
    return EXIT_FINE;
}

static void
print_head(const struct graph_plan *g)
{
    char a[TERM_NUMBER_BYTES], b[TERM_NUMBER_BYTES];
    char bytes[TERM_NUMBER_BYTES], always[TERM_NUMBER_BYTES];
    struct term term;
    term_init(&term, stdout);
    size_t nodes = dry_graph_get_count(g->file.graph), edges = g->file.edge_count;
    term_print_subject(&term, g->request->path, TERM_BOLD, "%s operation%s, %s edge%s",
                       term_format_count(nodes, a), nodes == 1 ? "" : "s",
                       term_format_count(edges, b), edges == 1 ? "" : "s");
    plan_print_item("always", "%s are there whatever the plan",
                    term_format_bytes(g->file.always_bytes, always));
    plan_print_item("budget", "%s", term_format_bytes(g->budget_bytes, bytes));
}

static void
print_least(const struct graph_plan *g)
{
    char least[TERM_NUMBER_BYTES], node[PLAN_WHERE_BYTES];
    plan_print_item(
        "least", "no plan does with less than %s: operation %s needs it",
        term_format_bytes(g->summary.floor_bytes + g->file.always_bytes, least),
        format_node(g, g->summary.floor_node, node));
}

static int
print_none(const struct graph_plan *g)
{
    char less[TERM_NUMBER_BYTES];
    struct term term;
    term_init(&term, stdout);
    printf("%sno plan was found%s\n", term_style(&term, TERM_RED),
           term_style(&term, TERM_PLAIN));
    print_least(g);
    /* g->why quotes the library's numbers, which exclude always_bytes. It is printed only
       if the budget covers the floor. */
    if (g->budget_bytes >= g->summary.floor_bytes + g->file.always_bytes)
        plan_print_item("because", "%s", g->why);
    else
        plan_print_item("because", "the budget is less by %s",
                        term_format_bytes(g->summary.floor_bytes + g->file.always_bytes -
                                              g->budget_bytes,
                                          less));
    return EXIT_FOUND;
}

static const char *
describe_method(const struct dry_graph_summary *s)
{
    if (s->method == DRY_GRAPH_ORDER)
        return "the order fits as it is, nothing is recomputed";
    if (s->is_proved)
        return "nothing is better";
    return "found by a search; a better one may exist";
}

static int
print_text(const struct graph_plan *g)
{
    const struct dry_graph_summary *s = &g->summary;
    char a[TERM_NUMBER_BYTES], b[TERM_NUMBER_BYTES], c[TERM_NUMBER_BYTES];
    char node[PLAN_WHERE_BYTES];
    print_head(g);
    if (!g->plan)
        return print_none(g);
    plan_print_item("plan", "%s: %s", dry_graph_method_name(s->method),
                    describe_method(s));
    plan_print_item("bound", "no plan takes less than %s; the gap is %s",
                    plan_format_time(s->bound_ns, a),
                    plan_format_share(s->cost.time_ns - s->bound_ns, s->bound_ns, b));
    print_least(g);
    plan_print_item("peak", "%s, in operation %s, run %" PRIu64 " of %" PRIu64,
                    term_format_bytes(s->cost.peak_bytes + g->file.always_bytes, a),
                    format_node(g, s->cost.peak_node, node), s->cost.peak_run + 1,
                    s->cost.run_count);
    if (s->cost.rerun_count == 0)
        plan_print_item("time", "%s, nothing is recomputed",
                        plan_format_time(s->cost.time_ns, a));
    else
        plan_print_item("time", "%s, %s or %s more: %" PRIu64 " second run%s",
                        plan_format_time(s->cost.time_ns, a),
                        plan_format_time(s->cost.extra_ns, b),
                        plan_format_share(s->cost.extra_ns, s->cost.base_ns, c),
                        s->cost.rerun_count, s->cost.rerun_count == 1 ? "" : "s");
    plan_print_item("hash", "%016" PRIx64, s->hash);
    return print_table(g);
}

/* --- JSON --------------------------------------------------------------------------------- */

static json_t *
make_ratio(uint64_t part, uint64_t whole)
{
    return whole ? json_real((double)part / (double)whole) : json_null();
}

static json_t *
make_cost(const struct graph_plan *g)
{
    const struct dry_graph_cost *c = &g->summary.cost;
    return json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "peak_bytes",
        json_out_number(c->peak_bytes + g->file.always_bytes), "peak_node",
        json_integer(c->peak_node), "peak_run", json_out_number(c->peak_run), "time_ns",
        json_out_number(c->time_ns), "base_ns", json_out_number(c->base_ns), "extra_ns",
        json_out_number(c->extra_ns), "overhead", make_ratio(c->extra_ns, c->base_ns),
        "recomputed_count", json_out_number(c->rerun_count));
}

static json_t *
make_runs(const struct graph_plan *g)
{
    json_t *list = json_array();
    for (size_t i = 0; i < g->run_count; i++)
        list = json_out_append(list, json_integer(g->runs[i]));
    return list;
}

static bool
put_plan(const struct graph_plan *g, json_t *root)
{
    const struct dry_graph_summary *s = &g->summary;
    char hash[17];
    snprintf(hash, sizeof hash, "%016" PRIx64, s->hash);
    json_t *more =
        json_pack("{s:s, s:b, s:o, s:o, s:o, s:s, s:o}", "algorithm",
                  dry_graph_method_name(s->method), "proved", s->is_proved, "predicted",
                  make_cost(g), "lower_bound_ns", json_out_number(s->bound_ns), "gap",
                  make_ratio(s->cost.time_ns - s->bound_ns, s->bound_ns), "plan_hash",
                  hash, "runs", make_runs(g));
    int failed = json_object_update(root, more);
    json_decref(more);
    return failed == 0;
}

static json_t *
make_json(const struct graph_plan *g)
{
    const char *path = g->request->path;
    json_t *floor =
        json_pack("{s:o, s:o}", "bytes",
                  json_out_number(g->summary.floor_bytes + g->file.always_bytes), "node",
                  json_integer(g->summary.floor_node));
    json_t *root = json_pack(
        "{s:s, s:s, s:o, s:b, s:o, s:o}", "schema", "drystone.plan/1", "format",
        "ckpt-graph-plan/1", "file", json_out_string(path), "feasible", g->plan != NULL,
        "budget_bytes", json_out_number(g->budget_bytes), "min_feasible_budget", floor);
    if (root && (!g->plan || put_plan(g, root)))
        return root;
    json_decref(root);
    return NULL;
}

static int
write_json(const struct graph_plan *g, const char *path)
{
    json_t *root = make_json(g);
    if (!root)
        return report_memory("plan", g->request->path);
    return plan_json_save(root, path);
}

/* --- the program -------------------------------------------------------------------------- */

struct lp_file {
    struct dry_sink sink;
    struct dry_error err; /* the sink's; the library reports only that writing stopped */
    enum dry_status status;
};

static bool
write_piece(void *self, const char *text, size_t length)
{
    struct lp_file *f = self;
    f->status = f->sink.write(f->sink.self, text, length, &f->err);
    return f->status != DRY_OK;
}

/* Write the integer program. Its memory limit is the budget less always_bytes. */
static int
write_lp(const struct graph_plan *g)
{
    struct output out;
    struct dry_error err;
    int code = output_open(&out, "plan", g->request->lp);
    if (code != EXIT_FINE)
        return code;
    struct lp_file f = {.sink = output_sink(&out), .status = DRY_OK};
    const struct dry_graph_writer writer = {write_piece, &f};
    enum dry_status status =
        dry_graph_write_lp(g->file.graph, get_free_budget(g), &writer, &err);
    if (status == DRY_OK || f.status != DRY_OK)
        return output_close(&out, f.status, &f.err);
    output_discard(&out);
    return report_error("plan", g->request->path, &err);
}

/* --- all of it ---------------------------------------------------------------------------- */

/* Refuse the budget: name the least memory that any plan needs, and a budget that
   suffices without recomputation. */
static int
refuse_budget(const struct graph_plan *g)
{
    const struct dry_graph_summary *s = &g->summary;
    char budget[TERM_NUMBER_BYTES], least[TERM_NUMBER_BYTES], order[TERM_NUMBER_BYTES];
    char node[PLAN_WHERE_BYTES];
    return report_failure(
        "plan", g->request->path, EXIT_FOUND,
        "%s: no plan was found for %s; none does with less than %s, for operation %s; %s "
        "are enough, with nothing recomputed",
        g->request->budget_bytes != UINT64_MAX ? "--budget" : "budget",
        term_format_bytes(g->budget_bytes, budget),
        term_format_bytes(s->floor_bytes + g->file.always_bytes, least),
        format_node(g, s->floor_node, node),
        term_format_bytes(s->order_bytes + g->file.always_bytes, order));
}

static bool
is_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

static int
report(const struct graph_plan *g)
{
    const struct graph_request *q = g->request;
    int code = EXIT_FINE;
    if (q->json)
        code = write_json(g, "-");
    else if (!is_stdout(q->out) && !is_stdout(q->lp))
        code = print_text(g);
    if (q->out && (code == EXIT_FINE || code == EXIT_FOUND)) {
        int written = write_json(g, q->out);
        code = written == EXIT_FINE ? code : written;
    }
    if (q->lp && (code == EXIT_FINE || code == EXIT_FOUND)) {
        int written = write_lp(g);
        code = written == EXIT_FINE ? code : written;
    }
    return (code == EXIT_FINE || code == EXIT_FOUND) && !g->plan ? refuse_budget(g)
                                                                 : code;
}

int
graph_report_make(const struct graph_request *request, json_t *tree)
{
    struct graph_plan g = {.request = request};
    struct dry_error err;
    enum dry_status status = graph_json_read(tree, NULL, &g.file, &err);
    if (status != DRY_OK)
        return report_error("plan", request->path, &err);
    int code = choose_budget(&g);
    if (code == EXIT_FINE) {
        status = make_plan(&g, &err);
        code = status == DRY_OK ? report(&g) : report_error("plan", request->path, &err);
    }
    dry_graph_plan_destroy(g.plan);
    graph_file_finish(&g.file);
    return code;
}
