/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ESTIMATE_REPORT_H
#define TOOL_ESTIMATE_REPORT_H

/* The report of an estimate, as text and as JSON. */

#include <stdbool.h>

#include <drystone/estimate.h>

#include "estimate/estimate_remedies.h"
#include "estimate/model_json.h"

struct estimate_report {
    const char *name; /* the model's file, or its name in our list */
    const struct dry_model *model;
    const char *unknown_family;      /* the model's unknown type; "": the type is known */
    char (*notes)[MODEL_NOTE_BYTES]; /* parts that the estimate does not cover */
    size_t note_count;
    const struct dry_run_setup *setup;
    const struct dry_estimate *estimate; /* computed without a memory limit */
    /* NULL: a size was given, or nothing */
    const char *card;
    uint64_t capacity_bytes; /* 0: not given */
    /* largest that fit the capacity; 0: none */
    uint64_t max_batch, max_sequence, max_requests;
    uint64_t sequence_step;
    const struct remedies *remedies; /* if the model does not fit; else NULL */
    bool has_units;                  /* also print what each unit saves */
};

/* Print the report as text. Returns false if memory ran out. */
bool estimate_report_print(const struct estimate_report *report);
/* Print the report as JSON. Returns an exit code. */
int estimate_report_print_json(const struct estimate_report *report);
/* Print a chain for `drystone plan` (estimate_chain.c). Returns an exit code. */
int estimate_report_print_chain(const struct estimate_report *report);

#endif
