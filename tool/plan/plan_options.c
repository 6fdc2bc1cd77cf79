/* SPDX-License-Identifier: Apache-2.0 */
/* See plan_options.h. */
#include "plan/plan_options.h"

#include <string.h>

#include "base/command.h"
#include "base/output.h"
#include "base/report.h"

#define AT(member) offsetof(struct plan_values, member)

static const char judging[] = "for planning: --judge looks at a plan that is there";

const struct option_spec plan_option_specs[PLAN_OPTION_COUNT] = {
    {"budget", 0, "SIZE", OPTION_SIZE, AT(budget),
     .help = "what the plan may use of the device, weights and all: 40GiB; default: what "
             "FILE says"},
    {"method", 0, "NAME", OPTION_STRING, AT(method),
     .help = "one-level, nested, none, block, every, sqrt, greedy or revolve; default "
             "one-level",
     .refuses = {{"judge", judging}}},
    {"interval", 0, "N", OPTION_INT, AT(every),
     .help = "of every: each N-th stage is recomputed; default 2", .min = 1,
     .max = DRY_CHAIN_STAGES_MAX, .refuses = {{"judge", judging}}},
    {"slots", 0, "N", OPTION_INT, AT(slots),
     .help =
         "of one-level and nested: the tables have the budget in N parts; default 500",
     .min = 1, .max = 1 << 20, .refuses = {{"judge", judging}}},
    {"window", 0, "N", OPTION_INT, AT(window),
     .help = "of nested: ranges with ranges in them have N stages at most; default: "
             "doubled from 16 until nothing changes",
     .min = 1, .max = DRY_CHAIN_STAGES_MAX, .refuses = {{"judge", judging}}},
    {"table-max", 0, "SIZE", OPTION_SIZE, AT(table_max),
     .help = "the tables' memory at most; default 256MiB",
     .refuses = {{"judge", judging}}},
    {"compare", 0, NULL, OPTION_FLAG, AT(compare), .help = "all methods side by side",
     .refuses = {{"judge", judging}}},
    {"curve", 0, NULL, OPTION_FLAG, AT(curve),
     .help = "what more memory saves of the time, from the least budget on",
     .refuses = {{"judge", judging}}},
    {"timeline", 0, NULL, OPTION_FLAG, AT(timeline), .help = "memory over the step"},
    {"explain", 0, NULL, OPTION_FLAG, AT(explain),
     .help = "in words: what binds, what the next budgets buy"},
    {"svg", 0, "OUT", OPTION_STRING, AT(svg), .help = "the timeline as a picture"},
    {"output", 'o', "OUT", OPTION_STRING, AT(out),
     .help = "write the plan, as --json prints it; - is standard output"},
    {"lp", 0, "OUT", OPTION_STRING, AT(lp),
     .help = "of a graph: the same problem as a mixed integer program, for solvers from "
             "elsewhere"},
    {"judge", 'j', "FILE", OPTION_STRING, AT(judge),
     .help = "make no plan: say what this one costs on the chain"},
    {"json", 0, NULL, OPTION_FLAG, AT(json),
     .help = "print JSON, schema drystone.plan/1, see drystone-plan(1)"},
};

void
plan_values_init(struct plan_values *values)
{
    *values = (struct plan_values){.budget = NOT_GIVEN, .table_max = NOT_GIVEN};
}

bool
plan_is_stdout(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

static const char *
method_at(unsigned i)
{
    return i < DRY_METHOD_COUNT ? dry_method_name((enum dry_plan_method)i) : NULL;
}

static int
read_method(const char *name, struct dry_plan_options *options)
{
    struct suggestion suggestion = {.word = name};
    char expected[SUGGESTION_BYTES];
    if (!name)
        return EXIT_FINE;
    for (unsigned i = 0; method_at(i); i++) {
        if (strcmp(method_at(i), name) == 0) {
            options->method = (enum dry_plan_method)i;
            return EXIT_FINE;
        }
        suggestion_consider(&suggestion, method_at(i));
    }
    return report_usage("plan", "there is no method '%s'%s", name,
                        suggestion_write(&suggestion, method_at, expected));
}

/* Check that all output files differ and that none is an input file. */
static int
check_writes(const struct plan_values *v, const char *input)
{
    const struct {
        const char *option, *path;
    } writes[] = {{"json", v->json ? "-" : NULL},
                  {"output", v->out},
                  {"svg", v->svg},
                  {"lp", v->lp}};
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        const char *path = writes[i].path;
        if (path && (output_is_input(path, input) ||
                     (v->judge && output_is_input(path, v->judge))))
            return report_usage("plan", "%s is read: it cannot be written to", path);
        for (size_t k = 0; path && k < i; k++) {
            const char *other = writes[k].path;
            if (plan_is_stdout(path) && plan_is_stdout(other))
                return report_usage(
                    "plan", "--%s%s and --%s%s both write standard output",
                    writes[k].option, k ? " -" : "", writes[i].option, " -");
            if (other && !plan_is_stdout(path) && !plan_is_stdout(other) &&
                (strcmp(path, other) == 0 || output_is_input(path, other)))
                return report_usage("plan", "--%s and --%s are one file",
                                    writes[k].option, writes[i].option);
        }
    }
    return EXIT_FINE;
}

/* Check that standard input and standard output are each used once at most. */
static int
check_streams(const struct plan_values *v, const char *input)
{
    /* "-" is standard input here and standard output elsewhere */
    if (plan_is_stdout(v->judge) && plan_is_stdout(input))
        return report_usage("plan", "the chain and --judge are both standard input");
    return check_writes(v, input);
}

/* Refuse options that the chosen method ignores. */
static int
check_method(const struct plan_values *v, enum dry_plan_method m)
{
    static const char tables[] = "for the methods one-level and nested";
    bool has_tables = m == DRY_METHOD_ONE_LEVEL || m == DRY_METHOD_NESTED;
    bool is_any = v->compare; /* --compare runs all methods */
    const struct option_misuse all[] = {
        {"curve", v->curve && !has_tables, tables},
        {"every", v->every && m != DRY_METHOD_EVERY && !is_any,
         "for --method every alone"},
        {"slots", v->slots && !has_tables && !is_any, tables},
        {"table-max", v->table_max != NOT_GIVEN && !has_tables && !is_any, tables},
        {"window", v->window && m != DRY_METHOD_NESTED && !is_any,
         "for --method nested alone"},
    };
    return options_refuse_misuse(&command_plan, all, sizeof all / sizeof *all);
}

/* Refuse sections of the text report if another output replaces the report. */
static int
check_report(const struct plan_values *v)
{
    static const char text[] = "for the report, and other output takes its place";
    bool has_json = v->json || v->out;
    const struct option_misuse all[] = {
        {"explain", v->explain, text},
        {"timeline", v->timeline && !has_json, text},
        {"compare", v->compare && !has_json, text},
        {"curve", v->curve && !has_json, text},
    };
    if (!v->json && !plan_is_stdout(v->out) && !plan_is_stdout(v->svg))
        return EXIT_FINE;
    return options_refuse_misuse(&command_plan, all, sizeof all / sizeof *all);
}

int
plan_values_read(const struct plan_values *values, const char *path,
                 struct dry_plan_options *options)
{
    dry_plan_options_init(options);
    if (values->every)
        options->every = (uint32_t)values->every;
    if (values->slots)
        options->slots = (uint32_t)values->slots;
    if (values->window)
        options->window = (uint32_t)values->window;
    if (values->table_max != NOT_GIVEN)
        options->table_bytes_max = values->table_max;
    int code = read_method(values->method, options);
    if (code == EXIT_FINE)
        code = check_method(values, options->method);
    if (code == EXIT_FINE)
        code = check_report(values);
    return code == EXIT_FINE ? check_streams(values, path) : code;
}
