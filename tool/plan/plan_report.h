/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PLAN_REPORT_H
#define TOOL_PLAN_REPORT_H

/* The report of `drystone plan`, as text, JSON and pictures. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <drystone/plan.h>

#include "base/term.h"
#include "base/writer.h"
#include "plan/chain_json.h"
#include "plan/plan_file.h"

enum plan_outcome {
    PLAN_FITS, /* within the budget, or no budget given */
    PLAN_OVER, /* a plan from a file exceeds the budget */
    PLAN_NONE, /* no plan fits: the summary is of the plan without a limit */
};

/* A method's result, for --compare. */
struct plan_row {
    enum dry_plan_method method;
    bool is_made; /* `summary` is valid */
    bool fits;    /* false: the summary is of the plan without a limit */
    struct dry_plan_summary summary;
    char why[232]; /* why no plan was made */
};

struct plan_report {
    const char *file;
    const struct chain_file *input;
    enum plan_outcome outcome;
    const struct plan_file *judged; /* plan read from a file; NULL: made in this run */
    const struct dry_plan_item *items;
    size_t item_count;
    struct dry_plan_summary summary; /* for a judged plan, only the cost and the budget
                                        are valid */
    const struct plan_row *rows;     /* for --compare; else NULL */
    size_t row_count;
    const struct dry_plan_point *points; /* for --curve and --explain; else NULL */
    size_t point_count;
    const struct plan_row *nested; /* nested plan if one level does not fit; else NULL */
    bool has_curve, has_timeline, has_explanation;
};

static inline bool
plan_report_has_limit(const struct plan_report *report)
{
    return report->summary.budget_bytes != UINT64_MAX;
}

/* Print the report; failures are printed. Returns an exit_code. */
int plan_report_print(const struct plan_report *report);

/* --- parts -------------------------------------------------------------------------------- */

/* Format nanoseconds: "612.3 ms". */
const char *plan_format_time(uint64_t ns, char text[TERM_NUMBER_BYTES]);
/* Format a share of `whole` as "4.1 %"; "-" if `whole` is 0. */
const char *plan_format_share(uint64_t part, uint64_t whole,
                              char text[TERM_NUMBER_BYTES]);
/* Write where a peak is: "the backward of stage 23 (blocks.22)". */
#define PLAN_WHERE_BYTES (CHAIN_NAME_BYTES + 64)
const char *plan_format_where(const struct dry_chain *chain, enum dry_plan_phase phase,
                              uint64_t stage, char text[PLAN_WHERE_BYTES]);
/* Print `word`, then the text from column 12 on, wrapped at column 80. */
__attribute__((format(printf, 2, 3))) void plan_print_item(const char *word,
                                                           const char *format, ...);

/* Print the explanation of --explain (plan_explain.c). Returns an exit_code. */
int plan_explain_print(const struct plan_report *report);

/* Plot memory over time (plan_plot.c). Returns an exit_code. */
int plan_plot_timeline(const struct plan_report *report);
void plan_plot_curve(const struct plan_report *report);

/* Make the plan as drystone.plan/1 (plan_json.c). NULL: *err says why. */
json_t *plan_json_make(const struct plan_report *report, struct dry_error *err);
/* Write `root` with one line per key and per list element, and release `root`. `path` "-"
   is standard output. Returns an exit code. */
int plan_json_save(json_t *root, const char *path);

/* Write the picture (plan_svg.c). The writer keeps the first failure. */
void plan_svg_write(const struct plan_report *report, struct writer *w);

#endif
