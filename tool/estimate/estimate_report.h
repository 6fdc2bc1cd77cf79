/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ESTIMATE_REPORT_H
#define TOOL_ESTIMATE_REPORT_H

/* An estimate as text and as JSON. */

#include <stdbool.h>

#include <drystone/estimate.h>

#include "estimate/estimate_remedies.h"
#include "estimate/model_json.h"

struct estimate_report {
    const char *name; /* of the model: a file, or one that we know */
    const struct dry_model *model;
    const char *unknown_family;      /* of it; "": we know it */
    char (*notes)[MODEL_NOTE_BYTES]; /* of what the estimate leaves out */
    size_t note_count;
    const struct dry_run_setup *setup;
    const struct dry_estimate *estimate;            /* without a limit */
    const char *card;                               /* NULL: a size was given, or none */
    uint64_t capacity_bytes;                        /* 0: none was given */
    uint64_t max_batch, max_sequence, max_requests; /* that fit it; 0: none */
    uint64_t sequence_step;
    const struct remedies *remedies; /* if it does not fit, else NULL */
    bool has_units;                  /* print what every unit saves, too */
};

/* False: there was no memory. */
bool estimate_report_print(const struct estimate_report *report);
/* An exit code, as json_out_print(). */
int estimate_report_print_json(const struct estimate_report *report);
/* Print a chain that `drystone plan` reads (estimate_chain.c). Returns an exit code. */
int estimate_report_print_chain(const struct estimate_report *report);

#endif
