/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone plan`: what of a forward pass to keep, so that it fits. */
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
#include "plan/plan_report.h"

#define POINTS_MAX 256
#define ADVICE_STAGES_MAX 1000 /* beyond, ranges in ranges take long and gain little */

struct values {
    const char *method, *svg, *out, *judge, *lp;
    uint64_t budget, table_max;
    int64_t every, slots, window;
    bool curve, compare, timeline, explain, json;
};

static const struct option_spec specs[] = {
    {"budget", 'b', "SIZE", OPTION_SIZE, offsetof(struct values, budget),
     .help = "what the plan may use of the device, weights and all: 40GiB; default: what "
             "FILE "
             "says"},
    {"method", 'm', "NAME", OPTION_STRING, offsetof(struct values, method),
     .help = "one-level, nested, none, block, every, sqrt, greedy or revolve; default "
             "one-level"},
    {"every", 0, "N", OPTION_INT, offsetof(struct values, every),
     .help = "of every: each N-th stage is run again; default 2"},
    {"slots", 0, "N", OPTION_INT, offsetof(struct values, slots),
     .help =
         "of one-level and nested: the tables have the budget in N parts; default 500"},
    {"window", 0, "N", OPTION_INT, offsetof(struct values, window),
     .help = "of nested: ranges with ranges in them have N stages at most; default: "
             "doubled from "
             "16 until nothing changes"},
    {"table-max", 0, "SIZE", OPTION_SIZE, offsetof(struct values, table_max),
     .help = "the tables' memory at most; default 256MiB"},
    {"compare", 'c', NULL, OPTION_FLAG, offsetof(struct values, compare),
     .help = "all methods side by side"},
    {"curve", 0, NULL, OPTION_FLAG, offsetof(struct values, curve),
     .help = "what more memory saves of the time, from the least budget on"},
    {"timeline", 't', NULL, OPTION_FLAG, offsetof(struct values, timeline),
     .help = "memory over the step"},
    {"explain", 'e', NULL, OPTION_FLAG, offsetof(struct values, explain),
     .help = "in words: what binds, what the next budgets buy"},
    {"svg", 0, "OUT", OPTION_STRING, offsetof(struct values, svg),
     .help = "the timeline as a picture"},
    {"out", 'o', "OUT", OPTION_STRING, offsetof(struct values, out),
     .help = "write the plan, as --json prints it; - is standard output"},
    {"lp", 0, "OUT", OPTION_STRING, offsetof(struct values, lp),
     .help = "of a graph: the same problem as a mixed integer program, for solvers from "
             "elsewhere"},
    {"judge", 'j', "FILE", OPTION_STRING, offsetof(struct values, judge),
     .help = "make no plan: say what this one costs on the chain"},
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help = "print JSON, schema drystone.plan/1, see drystone-plan(1)"},
};

static const char about_text[] =
    "FILE is a chain of stages with their times and bytes, see drystone-chain(5). The "
    "plan "
    "says which stages keep what their backward needs and which are run again, so that "
    "the "
    "step fits the budget and takes the least time. Its peak is judged in exact bytes.";

struct session {
    struct values values;
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

/* --- the command line --------------------------------------------------------------------- */

static const char *
method_at(unsigned i)
{
    return i < DRY_METHOD_COUNT ? dry_method_name((enum dry_plan_method)i) : NULL;
}

static int
read_method(struct session *s)
{
    const char *name = s->values.method;
    struct suggestion suggestion = {.word = name};
    char expected[SUGGESTION_BYTES];
    if (!name)
        return EXIT_FINE;
    for (unsigned i = 0; method_at(i); i++) {
        if (strcmp(method_at(i), name) == 0) {
            s->options.method = (enum dry_plan_method)i;
            return EXIT_FINE;
        }
        suggestion_consider(&suggestion, method_at(i));
    }
    return report_usage("plan", "there is no method '%s'%s", name,
                        suggestion_write(&suggestion, method_at, expected));
}

/* 0 where it was not given; the library knows the defaults. */
static int
read_number(const char *option, int64_t value, int64_t most, uint32_t *to)
{
    if (value == NO_NUMBER)
        return EXIT_FINE;
    if (value < 1 || value > most)
        return report_usage("plan", "--%s %lld: expected 1 to %lld", option,
                            (long long)value, (long long)most);
    *to = (uint32_t)value;
    return EXIT_FINE;
}

static int
read_numbers(struct session *s)
{
    const struct values *v = &s->values;
    int code = read_number("every", v->every, DRY_CHAIN_STAGES_MAX, &s->options.every);
    if (code == EXIT_FINE)
        code = read_number("slots", v->slots, 1 << 20, &s->options.slots);
    if (code == EXIT_FINE)
        code = read_number("window", v->window, DRY_CHAIN_STAGES_MAX, &s->options.window);
    if (v->table_max != NOT_GIVEN)
        s->options.table_bytes_max = v->table_max;
    return code;
}

static bool
is_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

/* What is written; two of them must not be one file. */
static int
check_writes(const struct session *s)
{
    const struct values *v = &s->values;
    const struct {
        const char *option, *path;
    } writes[] = {
        {"json", v->json ? "-" : NULL}, {"out", v->out}, {"svg", v->svg}, {"lp", v->lp}};
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        const char *path = writes[i].path;
        if (path && (output_is_input(path, s->path) ||
                     (v->judge && output_is_input(path, v->judge))))
            return report_usage("plan", "%s is read: it cannot be written to", path);
        for (size_t k = 0; path && k < i; k++) {
            const char *other = writes[k].path;
            if (is_stdout(path) && is_stdout(other))
                return report_usage(
                    "plan", "--%s%s and --%s%s both write standard output",
                    writes[k].option, k ? " -" : "", writes[i].option, " -");
            if (other && !is_stdout(path) && !is_stdout(other) &&
                (strcmp(path, other) == 0 || output_is_input(path, other)))
                return report_usage("plan", "--%s and --%s are one file",
                                    writes[k].option, writes[i].option);
        }
    }
    return EXIT_FINE;
}

/* One stream is read once, and written once. */
static int
check_streams(const struct session *s)
{
    if (is_stdout(s->values.judge) && is_stdout(s->path)) /* "-" is either's */
        return report_usage("plan", "the chain and --judge are both standard input");
    return check_writes(s);
}

/* An option that would change nothing is a mistake. */
static int
check_use(const struct session *s)
{
    static const char judge[] = "of planning: --judge looks at a plan that is there";
    static const char text[] = "of the report, whose place something else takes";
    const struct values *v = &s->values;
    enum dry_plan_method m = s->options.method;
    bool is_any = v->compare && !v->judge; /* all methods are asked */
    bool has_tables = m == DRY_METHOD_ONE_LEVEL || m == DRY_METHOD_NESTED;
    bool is_replaced = v->json || is_stdout(v->out) || is_stdout(v->svg);
    bool has_json = v->json || v->out;
    const struct option_misuse all[] = {
        {"method", v->judge && v->method, judge},
        {"compare", v->judge && v->compare, judge},
        {"curve", v->judge && v->curve, judge},
        {"slots", v->judge && v->slots != NO_NUMBER, judge},
        {"window", v->judge && v->window != NO_NUMBER, judge},
        {"table-max", v->judge && v->table_max != NOT_GIVEN, judge},
        {"every", v->judge && v->every != NO_NUMBER, judge},
        {"curve", v->curve && !has_tables, "of the methods one-level and nested"},
        {"every", v->every != NO_NUMBER && m != DRY_METHOD_EVERY && !is_any,
         "of --method every"},
        {"slots", v->slots != NO_NUMBER && !has_tables && !is_any,
         "of the methods one-level and nested"},
        {"table-max", v->table_max != NOT_GIVEN && !has_tables && !is_any,
         "of the methods one-level and nested"},
        {"window", v->window != NO_NUMBER && m != DRY_METHOD_NESTED && !is_any,
         "of --method nested"},
        {"explain", v->explain && is_replaced, text},
        {"timeline", v->timeline && is_replaced && !has_json, text},
        {"compare", v->compare && is_replaced && !has_json, text},
        {"curve", v->curve && is_replaced && !has_json, text},
    };
    return options_refuse_misuse(&command_plan, all, sizeof all / sizeof *all);
}

static int
read_options(struct session *s, const struct option_list *operands)
{
    int code = options_expect_one_file(&command_plan, operands);
    if (code != EXIT_FINE)
        return code;
    s->path = operands->values[0];
    dry_plan_options_init(&s->options);
    code = read_method(s);
    if (code == EXIT_FINE)
        code = read_numbers(s);
    if (code == EXIT_FINE)
        code = check_use(s);
    return code == EXIT_FINE ? check_streams(s) : code;
}

/* --- reading ------------------------------------------------------------------------------ */

/* The tree of FILE, to be released. */
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
    const struct values *v = &s->values;
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
    enum dry_status status = dry_plan_judge(
        s->chain.chain, s->judged.items, s->judged.count, NULL, &r->summary.cost, &err);
    if (status == DRY_ERR_ARGUMENT) /* the file's doing, not the command line's */
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

static int
note_progress(void *self, uint64_t done, uint64_t total)
{
    struct progress *progress = self;
    progress->total = total;
    return progress_update(progress, done);
}

/* The plan of a method, or where none fits the one without a limit; the latter's summary
   says what the least budget is. */
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
    if (status == DRY_ERR_ARGUMENT) /* a method that is not for this chain */
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

/* Of the whole chain, whatever the budget: it shows what others would buy. */
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
    const struct values *v = &s->values;
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
    if (code == EXIT_FINE && !v->judge && has_curve && (v->curve || v->explain))
        code = draw_curve(s);
    s->report.has_curve = v->curve;
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
        return EXIT_FINE; /* there is nothing to draw, and that is told */
    int code = output_open(&out, "plan", s->values.svg);
    if (code != EXIT_FINE)
        return code;
    const struct dry_sink sink = output_sink(&out);
    writer_init(&w, &sink, NULL);
    plan_svg_write(&s->report, &w);
    enum dry_status status = writer_finish(&w, &err);
    return output_close(&out, status, &err);
}

/* `path` "-" is standard output. */
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
    bool is_drawn = is_stdout(s->values.svg) && s->report.outcome != PLAN_NONE;
    if (is_drawn || is_stdout(s->values.out))
        return EXIT_FINE; /* something else stands there */
    return plan_report_print(&s->report);
}

/* A budget that no plan fits is refused input, where it was given. */
static int
refuse_budget(const struct session *s)
{
    const struct dry_plan_summary *summary = &s->report.summary;
    char budget[TERM_NUMBER_BYTES], least[TERM_NUMBER_BYTES], where[PLAN_WHERE_BYTES];
    plan_format_where(s->chain.chain, summary->floor_phase, summary->floor_stage, where);
    return report_failure("plan", s->path, EXIT_INPUT,
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
        return report_usage("plan", "--lp is of graphs: %s is a chain", s->path);
    int code = read_chain(s, tree);
    if (code == EXIT_FINE)
        code = make_report(s);
    return code == EXIT_FINE ? report(s) : code;
}

/* Of a graph there are fewer ways to plan and to look at a plan. */
static int
plan_graph(struct session *s, json_t *tree)
{
    const struct values *v = &s->values;
    bool has_number = v->every != NO_NUMBER || v->slots != NO_NUMBER ||
                      v->window != NO_NUMBER || v->table_max != NOT_GIVEN;
    if (v->method || v->judge || v->svg || v->compare || v->curve || v->timeline ||
        v->explain || has_number)
        return report_usage("plan",
                            "of a graph there is --budget, --json, --out and --lp only");
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
    struct session s = {.values = {.budget = NOT_GIVEN,
                                   .table_max = NOT_GIVEN,
                                   .every = NO_NUMBER,
                                   .slots = NO_NUMBER,
                                   .window = NO_NUMBER}};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_plan, argc, argv, &s.values, &operands, &code)) {
        code = read_options(&s, &operands);
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
    .summary = "what to keep and what to run again, so that a step fits",
    .usage = "[options] FILE",
    .about = about_text,
    .examples = "drystone plan gpt2.json --budget 40GiB\n"
                "drystone plan gpt2.json --budget 40GiB --explain --timeline\n"
                "drystone plan gpt2.json --budget 40GiB --out plan.json\n"
                "drystone plan gpt2.json --judge plan.json\n"
                "drystone plan gpt2.json --budget 40GiB --compare\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
