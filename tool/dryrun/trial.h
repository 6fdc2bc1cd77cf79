/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TRIAL_H
#define TOOL_TRIAL_H

/*
 * One run of a program on a card that is not there, with all that it left behind.
 *
 *     struct trial trial = {.launch = {.wish = wish}};
 *     code = trial_run(&trial);
 *     if (code == EXIT_FINE)
 *         use(trial_outcome(&trial), trial_main(&trial)->reserved_peak);
 *     trial_finish(&trial);
 */

#include "dryrun/facts.h"
#include "dryrun/launch.h"
#include "dryrun/verdict.h"

struct trial {
    struct launch launch; /* the caller sets its wish */
    struct facts facts;
    struct trial_verdict verdict;
    int status; /* of the program */
};

enum trial_outcome {
    TRIAL_FITS,      /* it ran to its end, or to where it was ended */
    TRIAL_FITS_NOT,  /* it ran out of memory */
    TRIAL_NOT_KNOWN, /* something else ended it before */
};

/*
 * Run the program and read what it left. Returns an exit_code; a program that never used a
 * device is EXIT_INPUT. trial_finish() is due in any case.
 */
int trial_run(struct trial *trial);
void trial_finish(struct trial *trial);

/* The process that reserved most. Requires a trial that ran. */
const struct facts_process *trial_main(const struct trial *trial);
enum trial_outcome trial_outcome(const struct trial *trial);

/*
 * Copy a process's snapshot out of the launch's folder; it appears under the name `to` when all
 * of it is there. Requires that there is one. Returns an exit_code.
 */
int trial_keep_snapshot(const char *command, const struct facts_process *process,
                        const char *to);
/* Write "run-BATCH_8.pickle" for "run.pickle" and the label "BATCH=8". NULL: no memory. */
char *trial_name_snapshot(const char *output, const char *label);

#endif
