/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FIT_WORK_H
#define TOOL_FIT_WORK_H

/* One search for `drystone fit`: its runs, and what each of them told. */

#include "dryrun/card_file.h"
#include "dryrun/dry_report.h"
#include "fit/fit_offers.h"

/* The words of a row. */
struct fit_note {
    char label[FIT_LABEL_BYTES];
    char why[FIT_LABEL_BYTES];           /* why the row is no answer; "": it is one */
    char condition[DRY_CONDITION_BYTES]; /* what "fits" depends on; "": nothing */
    double seconds;
    bool is_short; /* its run ended after fit_work.short_steps */
};

struct fit_work {
    struct launch_request
        request; /* the run without changes; but its words are `words` */
    const struct option_list *words; /* the program */
    const struct vary *vary;   /* placeholders of its words; all have as many values */
    struct option_list filled; /* its words in the present run */
    struct card_speed speed;
    uint64_t limit; /* bytes that PyTorch can use */
    /* The program without changes. */
    struct fit_note whole;
    struct fit_result base;
    bool fits;        /* it fits as it is */
    bool is_guess;    /* sizes follow from numbers that no kernel computed */
    const char *pass; /* the pass of its peak; "": not known */
    struct fit_offers offers;
    json_t *refused; /* {NAME: reason} of changes that are not offered; owned */
    struct fit_search search;
    struct fit_note notes[FIT_RUNS_MAX]; /* one for each of search.rows */
    int run_count, run_max;
    int64_t short_steps; /* steps that show the peak as it is; 0: not known */
};

/*
 * Run the program as it is and, unless it fits, search changes in at most `run_max` runs. Requires
 * that `request`, `words`, `vary` and `speed` are set, and all else zero. Returns an exit_code; call fit_work_finish() in any case.
 *
 * Where the peak comes in one of the first steps, the search ends its runs after that step. Then the
 * answers run whole, the best first, as long as runs are left.
 */
int fit_work_run(struct fit_work *work, int run_max);
/* Return the seconds that the card takes for a step's operations and copies, one after the other;
   0: they are not known. */
double fit_work_step_seconds(const struct fit_work *work,
                             const struct fit_result *result);
void fit_work_finish(struct fit_work *work);

#endif
