/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone plan`: which activations of a forward pass to keep so that the step fits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/plan.h>

#include "base/command.h"
#include "base/json_in.h"
#include "base/output.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/term.h"
#include "plan/graph_json.h"
#include "plan/graph_report.h"
#include "plan/plan_options.h"
#include "plan/plan_report.h"

#define POINTS_MAX 256
#define ADVICE_STAGES_MAX 1000 /* beyond that, nested plans take long and gain little */

static const char about_text[] =
    "FILE is a chain of stages with their times and bytes, see drystone-chain(5). The "
    "plan says which stages keep what their backward needs and which are recomputed, so "
    "that the step fits the budget and takes the least time. Its peak is judged in "
    "exact bytes.";

struct session {
    struct plan_values values;
    struct dry_plan_options options;
    const char *path;
    struct chain_file chain;
    struct plan_file judged;
    struct dry_plan *plan;
    struct plan_row rows[DRY_METHOD_COUNT];
    struct plan_row nested;
    struct dry_plan_point *points;
    struct plan_report report;
};

/* --- reading ------------------------------------------------------------------------------ */

/* Read FILE as a JSON tree, which the caller releases. */
static int
read_tree(const struct session *s, json_t **tree)
{
    char *text;
    size_t length;
    struct dry_error err;
    enum dry_status status = json_in_read_file(s->path, &text, &length, &err);
    if (status == DRY_OK) {
        status = json_in_parse(text, length, tree, &err);
        free(text);
    }
    return status == DRY_OK ? EXIT_FINE : report_error("plan", s->path, &err);
}

static int
read_chain(struct session *s, json_t *tree)
{
    struct dry_error err;
    enum dry_status status = chain_json_read_tree(tree, NULL, &s->chain, &err);
    return status == DRY_OK ? EXIT_FINE : report_error("plan", s->path, &err);
}

static int
read_plan(struct session *s)
{
    char *text;
    size_t length;
    struct dry_error err;
    enum dry_status status = json_in_read_file(s->values.judge, &text, &length, &err);
    if (status == DRY_OK) {
        status = plan_file_read(text, length, &s->chain, &s->judged, &err);
        free(text);
    }
    return status == DRY_OK ? EXIT_FINE : report_error("plan", s->values.judge, &err);
}

static int
choose_budget(struct session *s)
{
    const struct plan_values *v = &s->values;
    if (v->budget != NOT_GIVEN)
        s->options.budget_bytes = v->budget;
    else if (s->chain.budget.is_given)
        s->options.budget_bytes = s->chain.budget.bytes;
    else if (!v->compare && !v->curve && !v->judge)
        return report_usage("plan",
                            "no budget is given: --budget 40GiB, or \"budget\" in "
                            "the file");
    return EXIT_FINE;
}

/* --- the work ----------------------------------------------------------------------------- */

static int
judge(struct session *s)
{
    struct plan_report *r = &s->report;
    struct dry_error err;
    int code = read_plan(s);
    if (code != EXIT_FINE)
        return code;
    enum dry_status status = dry_plan_evaluate(
        s->chain.chain, s->judged.items, s->judged.count, NULL, &r->summary.cost, &err);
    if (status == DRY_ERR_ARGUMENT) /* an error of the file, not of the command line */
        err.status = DRY_ERR_FORMAT;
    if (status != DRY_OK)
        return report_error("plan", s->values.judge, &err);
    r->summary.hash = dry_plan_hash(s->chain.chain, s->judged.items, s->judged.count);
    r->judged = &s->judged;
    r->items = s->judged.items;
    r->item_count = s->judged.count;
    r->outcome =
        r->summary.cost.peak_bytes > r->summary.budget_bytes ? PLAN_OVER : PLAN_FITS;
    return EXIT_FINE;
}

static bool
note_progress(void *self, uint64_t done, uint64_t total)
{
    struct progress *progress = self;
    progress->total = total;
    return progress_update(progress, done);
}

/* Make the plan of a method. If none fits the budget, make the plan without a limit,
   whose summary holds the least possible budget. */
static enum dry_status
make_plan(const struct session *s, enum dry_plan_method method, struct dry_plan **plan,
          bool *fits, struct dry_error *err)
{
    struct dry_plan_options options = s->options;
    struct progress progress;
    options.method = method;
    options.progress = note_progress;
    options.progress_self = &progress;
    progress_begin(&progress, "planning, rows of tables", 0);
    enum dry_status status = dry_plan_create(s->chain.chain, &options, plan, err);
    *fits = status == DRY_OK;
    options.budget_bytes = UINT64_MAX;
    if (status == DRY_ERR_NO_SPACE)
        status = dry_plan_create(s->chain.chain, &options, plan, err);
    progress_end(&progress);
    return status;
}

static void
make_row(const struct session *s, enum dry_plan_method method, struct plan_row *row)
{
    struct dry_plan *plan;
    struct dry_error err;
    *row = (struct plan_row){.method = method};
    if (make_plan(s, method, &plan, &row->fits, &err) == DRY_OK) {
        row->is_made = true;
        row->summary = *dry_plan_get_summary(plan);
        dry_plan_destroy(plan);
    } else {
        snprintf(row->why, sizeof row->why, "%s", err.text);
    }
}

static int
make(struct session *s)
{
    struct plan_report *r = &s->report;
    struct dry_error err;
    bool fits;
    enum dry_status status = make_plan(s, s->options.method, &s->plan, &fits, &err);
    if (status == DRY_ERR_ARGUMENT) /* the method does not apply to this chain */
        return report_failure("plan", s->path, EXIT_INPUT, "%s", err.text);
    if (status != DRY_OK)
        return report_error("plan", s->path, &err);
    r->summary = *dry_plan_get_summary(s->plan);
    r->summary.budget_bytes = s->options.budget_bytes;
    r->items = dry_plan_get_items(s->plan, &r->item_count);
    r->outcome = fits ? PLAN_FITS : PLAN_NONE;
    if (!fits && s->options.method == DRY_METHOD_ONE_LEVEL &&
        dry_chain_get_count(s->chain.chain) <= ADVICE_STAGES_MAX) {
        make_row(s, DRY_METHOD_NESTED, &s->nested);
        r->nested = s->nested.is_made ? &s->nested : NULL;
    }
    return EXIT_FINE;
}

static void
compare(struct session *s)
{
    for (unsigned i = 0; i < DRY_METHOD_COUNT; i++)
        make_row(s, (enum dry_plan_method)i, &s->rows[i]);
    s->report.rows = s->rows;
    s->report.row_count = DRY_METHOD_COUNT;
}

/* Plan for every budget, whatever budget is given: the curve shows what more buys. */
static int
draw_curve(struct session *s)
{
    struct dry_plan_options options = s->options;
    struct dry_error err;
    size_t count = 0;
    struct progress progress;
    options.budget_bytes = UINT64_MAX;
    options.progress = note_progress;
    options.progress_self = &progress;
    s->points = calloc(POINTS_MAX, sizeof *s->points);
    if (!s->points)
        return report_failure("plan", s->path, EXIT_MACHINE, "no memory for the curve");
    progress_begin(&progress, "planning for many budgets", POINTS_MAX);
    enum dry_status status =
        dry_plan_curve(s->chain.chain, &options, s->points, POINTS_MAX, &count, &err);
    progress_end(&progress);
    if (status != DRY_OK)
        return report_error("plan", s->path, &err);
    s->report.points = s->points;
    s->report.point_count = count;
    return EXIT_FINE;
}

static int
make_report(struct session *s)
{
    const struct plan_values *v = &s->values;
    enum dry_plan_method m = s->options.method;
    bool has_curve = m == DRY_METHOD_ONE_LEVEL || m == DRY_METHOD_NESTED;
    int code = choose_budget(s);
    if (code != EXIT_FINE)
        return code;
    s->report.file = s->path;
    s->report.input = &s->chain;
    s->report.summary.budget_bytes = s->options.budget_bytes;
    code = v->judge ? judge(s) : make(s);
    if (code == EXIT_FINE && v->compare)
        compare(s);
    bool is_refused = code == EXIT_FINE && s->report.outcome == PLAN_NONE;
    /* Skip the curve, which takes many plans, if the budget is refused. */
    bool draws_curve = v->explain || (v->curve && !is_refused);
    if (code == EXIT_FINE && !v->judge && has_curve && draws_curve)
        code = draw_curve(s);
    s->report.has_curve = v->curve && !is_refused;
    s->report.has_timeline = v->timeline;
    s->report.has_explanation = v->explain;
    return code;
}

/* --- the results -------------------------------------------------------------------------- */

static int
write_svg(const struct session *s)
{
    struct output out;
    struct writer w;
    struct dry_error err;
    if (s->report.outcome == PLAN_NONE)
        return EXIT_FINE; /* no plan to draw; the report says so */
    int code = output_open(&out, "plan", s->values.svg);
    if (code != EXIT_FINE)
        return code;
    const struct dry_sink sink = output_sink(&out);
    writer_init(&w, &sink, NULL);
    plan_svg_write(&s->report, &w);
    enum dry_status status = writer_finish(&w, &err);
    return output_close(&out, status, &err);
}

/* Write the plan as JSON; `path` "-" is standard output. */
static int
write_json(const struct session *s, const char *path)
{
    struct dry_error err;
    json_t *root = plan_json_make(&s->report, &err);
    if (!root)
        return report_error("plan", s->path, &err);
    return plan_json_save(root, path);
}

static int
print(const struct session *s)
{
    if (s->values.json)
        return write_json(s, "-");
    bool is_drawn = plan_is_stdout(s->values.svg) && s->report.outcome != PLAN_NONE;
    if (is_drawn || plan_is_stdout(s->values.out))
        return EXIT_FINE; /* the plan or the picture goes to standard output instead */
    return plan_report_print(&s->report);
}

/* Report that no plan fits the budget. The exit code is EXIT_FOUND, as when a model does
   not fit a card. */
static int
refuse_budget(const struct session *s)
{
    const struct dry_plan_summary *summary = &s->report.summary;
    char budget[TERM_NUMBER_BYTES], least[TERM_NUMBER_BYTES], where[PLAN_WHERE_BYTES];
    plan_format_where(s->chain.chain, summary->floor_phase, summary->floor_stage, where);
    return report_failure("plan", s->path, EXIT_FOUND,
                          "%s: no plan of the method %s fits %s; the least is %s, for %s",
                          s->values.budget != NOT_GIVEN ? "--budget" : "budget",
                          dry_method_name(s->options.method),
                          term_format_bytes(summary->budget_bytes, budget),
                          term_format_bytes(summary->floor_bytes, least), where);
}

static int
report(const struct session *s)
{
    int code = print(s);
    if (code == EXIT_FINE && s->values.out)
        code = write_json(s, s->values.out);
    if (code == EXIT_FINE && s->values.svg)
        code = write_svg(s);
    if (code != EXIT_FINE || s->report.outcome == PLAN_FITS)
        return code;
    return s->report.outcome == PLAN_NONE ? refuse_budget(s) : EXIT_FOUND;
}

static int
plan_chain(struct session *s, json_t *tree)
{
    if (s->values.lp)
        return report_usage("plan", "--lp is for graphs: %s is a chain", s->path);
    int code = read_chain(s, tree);
    if (code == EXIT_FINE)
        code = make_report(s);
    return code == EXIT_FINE ? report(s) : code;
}

/* Plan a graph. Most options apply to chains only and are refused here. */
static int
plan_graph(struct session *s, json_t *tree)
{
    const struct plan_values *v = &s->values;
    bool has_number = v->every || v->slots || v->window || v->table_max != NOT_GIVEN;
    if (v->method || v->judge || v->svg || v->compare || v->curve || v->timeline ||
        v->explain || has_number)
        return report_usage("plan",
                            "a graph takes --budget, --json, --output and --lp only");
    const struct graph_request request = {.path = s->path,
                                          .out = v->out,
                                          .lp = v->lp,
                                          .budget_bytes = v->budget,
                                          .json = v->json};
    return graph_report_make(&request, tree);
}

static int
plan_for_file(struct session *s)
{
    json_t *tree = NULL;
    int code = read_tree(s, &tree);
    if (code != EXIT_FINE)
        return code;
    code = graph_json_is(tree) ? plan_graph(s, tree) : plan_chain(s, tree);
    json_decref(tree);
    return code;
}

static int
run(int argc, char **argv)
{
    struct session s = {.path = NULL};
    struct option_list operands = {0};
    int code;
    plan_values_init(&s.values);
    if (options_parse(&command_plan, argc, argv, &s.values, &operands, &code)) {
        code = options_expect_one_file(&command_plan, &operands);
        if (code == EXIT_FINE) {
            s.path = operands.values[0];
            code = plan_values_read(&s.values, s.path, &s.options);
        }
        if (code == EXIT_FINE)
            code = plan_for_file(&s);
    }
    free(s.points);
    dry_plan_destroy(s.plan);
    plan_file_finish(&s.judged);
    chain_file_finish(&s.chain);
    options_finish(&command_plan, &s.values, &operands);
    return code;
}

const struct command command_plan = {
    .name = "plan",
    .summary = "what to keep and what to recompute, so that a step fits",
    .usage = "[options] FILE",
    .about = about_text,
    .examples = "drystone plan gpt2.json --budget 40GiB\n"
                "drystone plan gpt2.json --budget 40GiB --explain --timeline\n"
                "drystone plan gpt2.json --budget 40GiB -o plan.json\n"
                "drystone plan gpt2.json --judge plan.json\n"
                "drystone plan gpt2.json --budget 40GiB --compare\n",
    .options = plan_option_specs,
    .option_count = PLAN_OPTION_COUNT,
    .run = run,
};
