/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_DRY_REPORT_H
#define TOOL_DRY_REPORT_H

/* The report of a dry run, as text and as JSON. */

#include <jansson.h>

#include "base/term.h"
#include "dryrun/trial.h"

struct dry_report {
    const struct trial *trial;
    const char *snapshot; /* path of the snapshot; NULL: none was made */
    /* The run with work completed as late as possible; NULL: not run. */
    const struct trial *late;
    /* The run with addresses handed out in the opposite order; NULL: not run. */
    const struct trial *other_order;
    /* The run with unlimited memory, after an OOM; NULL: not run. */
    const struct trial *boundless;
    /* The row of one of these runs that did not end, and why not; NULL: all ended. */
    const char *unfinished, *reason;
};

/* Print the report as text. Returns false if memory ran out. */
bool dry_report_print(const struct dry_report *report);
/* Print the modules that own most at the peak. Returns false if memory ran out. */
bool dry_report_print_modules(const struct dry_report *report, const struct term *term);
/* Write what "fits" depends on: what was not run, numbers that no kernel computed, and processes
   that share a device, of which each had it for itself. "": nothing. */
void dry_report_write_condition(const struct trial *trial, char *text, size_t capacity);
#define DRY_CONDITION_BYTES 480
/* A row of a table, and the condition of its "fits"; "": none. */
struct dry_condition {
    const char *label, *text;
};
/* Print each condition of a table's rows once, behind the labels of its rows: "1, 3: if ...".
   Returns false if memory ran out. O(count^2). */
bool dry_report_print_conditions(const struct dry_condition *rows, size_t count,
                                 const struct term *term);
/* Write a serving engine's answer: its KV cache, or its own words for too little memory. False: it
   has none. */
bool dry_report_write_engine(const struct trial *trial, char *text, size_t capacity);
/* Print what takes the rest of the card, as the engine says it. */
void dry_report_print_engine(const struct trial *trial, const struct term *term);
/* Return the step of the peak or the first OOM, as the program counts its steps. Without any it is
   a turn of equal requests; DRY_NONE: not known. Requires a view of the verdict. */
uint32_t dry_report_step(const struct trial *trial);
/* Return the members of drystone.dry-run/1 except for "schema"; NULL: memory ran out. */
json_t *dry_report_make_json(const struct dry_report *report);

/* Return "fits", "fits so far", "does not fit" or "not known". */
const char *dry_report_outcome_name(enum trial_outcome outcome, bool is_unseen);
enum term_style dry_report_style(enum trial_outcome outcome);

/* Return the verdict with the cards that the requests were replayed on; NULL: none. */
const struct trial_verdict *dry_report_find_cards(const struct dry_report *report);

#endif
