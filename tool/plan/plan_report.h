/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PLAN_REPORT_H
#define TOOL_PLAN_REPORT_H

/* The report of `drystone plan`, as text, as JSON and as pictures. */

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
    PLAN_FITS, /* the plan is within the budget, or there is no budget */
    PLAN_OVER, /* a plan that was read needs more than the budget */
    PLAN_NONE, /* no plan of the method fits: the summary is of the one without limit */
};

/* A method beside others. */
struct plan_row {
    enum dry_plan_method method;
    bool is_made; /* there is a summary */
    bool fits;    /* else the summary is of the plan without limit */
    struct dry_plan_summary summary;
    char why[232]; /* of what was not made */
};

struct plan_report {
    const char *file;
    const struct chain_file *input;
    enum plan_outcome outcome;
    const struct plan_file *judged; /* NULL: the plan was made here */
    const struct dry_plan_item *items;
    size_t item_count;
    struct dry_plan_summary summary; /* of a judged one: the cost and the budget */
    const struct plan_row *rows;     /* --compare; NULL */
    size_t row_count;
    const struct dry_plan_point *points; /* --curve, --explain; NULL */
    size_t point_count;
    const struct plan_row *nested; /* where one level does not do; NULL */
    bool has_curve, has_timeline, has_explanation;
};

static inline bool
plan_report_has_limit(const struct plan_report *report)
{
    return report->summary.budget_bytes != UINT64_MAX;
}

/* An exit_code; what failed is said. */
int plan_report_print(const struct plan_report *report);

/* --- parts -------------------------------------------------------------------------------- */

/* "612.3 ms". */
const char *plan_format_time(uint64_t ns, char text[TERM_NUMBER_BYTES]);
/* "4.1 %" of `whole`; "-" of nothing. */
const char *plan_format_share(uint64_t part, uint64_t whole,
                              char text[TERM_NUMBER_BYTES]);
/* "the backward of stage 23 (blocks.22)", "the optimizer's step". */
#define PLAN_WHERE_BYTES (CHAIN_NAME_BYTES + 64)
const char *plan_format_where(const struct dry_chain *chain, enum dry_plan_phase phase,
                              uint64_t stage, char text[PLAN_WHERE_BYTES]);
/* `word`, then the text at column 12, broken at 80. */
__attribute__((format(printf, 2, 3))) void plan_print_item(const char *word,
                                                           const char *format, ...);

/* In words: plan_explain.c. An exit_code. */
int plan_explain_print(const struct plan_report *report);

/* plan_plot.c. An exit_code. */
int plan_plot_timeline(const struct plan_report *report);
void plan_plot_curve(const struct plan_report *report);

/* plan_json.c: schema drystone.plan/1. NULL: *err says why. */
json_t *plan_json_make(const struct plan_report *report, struct dry_error *err);
/*
 * A key a line, and of lists an element a line; gives root up. `path` "-" is standard output.
 * Returns an exit code.
 */
int plan_json_save(json_t *root, const char *path);

/* plan_svg.c; failures go into the writer. */
void plan_svg_write(const struct plan_report *report, struct writer *w);

#endif
