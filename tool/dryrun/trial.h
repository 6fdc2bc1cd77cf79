/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TRIAL_H
#define TOOL_TRIAL_H

/*
 * One run of a program on a simulated card, with everything that the run produced.
 *
 *     struct trial trial = {.launch = {.request = request}};
 *     code = trial_run(&trial);
 *     if (code == EXIT_FINE)
 *         use(trial_outcome(&trial), trial_main(&trial)->reserved_peak);
 *     trial_finish(&trial);
 */

#include "dryrun/facts.h"
#include "dryrun/launch.h"
#include "dryrun/verdict.h"

struct trial {
    struct launch launch; /* the caller sets launch.request */
    struct facts facts;
    struct trial_verdict verdict;
    int status; /* the program's exit status */
};

enum trial_outcome {
    TRIAL_FITS,          /* the program ended, or was ended at its last step */
    TRIAL_FITS_NOT,      /* it ran out of memory */
    TRIAL_FITS_NOT_HOST, /* it takes more of the host's memory than --host */
    TRIAL_NOT_KNOWN,     /* the program failed for another reason */
};

/* Run the program and read its results. Returns an exit_code: EXIT_INPUT if the program
   never used a device. Call trial_finish() in any case. */
int trial_run(struct trial *trial);
void trial_finish(struct trial *trial);

/* Return the process that reserved most. Requires that trial_run() succeeded. */
const struct facts_process *trial_main(const struct trial *trial);
/* Return the lines where unknown numbers decided a size or a branch, of the main process or
   else of another; NULL: there are none. */
const json_t *trial_guesses(const struct trial *trial);
enum trial_outcome trial_outcome(const struct trial *trial);
/* Tell whether a request failed. A trial without one does not fit either if NCCL's buffers
   and what PyTorch reserved are more than the card has. */
bool trial_has_oom(const struct trial *trial);
#define TRIAL_END_BYTES 420
/* Write what ended a program whose memory is not known: "signal 9 (Killed) ended it". */
void trial_tell_end(const struct trial *trial, char text[TRIAL_END_BYTES]);
/* Return the bytes that processes of one device take at their peaks, with a context for each, of the
   device where that is most; 0: no two share a device. In a dry run each has a card of its own. */
uint64_t trial_together_bytes(const struct trial *trial);
/* A figure of how far cuDNN's workspaces are from their models, and who found it. */
struct trial_convolutions {
    uint64_t more_bytes; /* that may be reserved beyond the peak; 0: no convolution ran */
    const char *source;
};
struct trial_convolutions trial_find_convolutions(const struct trial *trial);
/* Tell whether the card's rest is less than what convolutions may take more. */
bool trial_is_card_close(const struct trial *trial);
struct trial_host {
    uint64_t peak_bytes;   /* all that the program's processes take at one time */
    uint64_t most_bytes;   /* the same, if no number of device memory was among it */
    uint64_t pinned_bytes; /* pinned at the peak, exact; a part of the peak */
};
/* Return what the program takes of the host's memory. Resident pages are measured.
   Those that hold numbers of device memory are taken off. Pages of pinned memory that nobody
   wrote are added, as a real driver has them. */
struct trial_host trial_find_host(const struct trial *trial);
/* Tell whether looks that come now and then cannot decide about the limit of the host: its peak is
   not known, or less than a sixteenth below. */
bool trial_is_host_close(const struct trial *trial);
/* Return what of the program was not run, in words; NULL: all of it ran, or repeats. */
const char *trial_find_unseen(const struct trial *trial);

/* Return the process of a serving engine that tells most of its memory, the main one first; NULL:
   no engine was there. */
const struct facts_process *trial_find_engine(const struct trial *trial);
/* Return the process whose engine says in its own words that memory is too small; NULL: none. */
const struct facts_process *trial_find_refusal(const struct trial *trial);

/* Copy a process's snapshot from the launch's folder to `to`, which appears only when
   complete. Requires process->snapshot. Returns an exit_code. */
int trial_keep_snapshot(const char *command, const struct facts_process *process,
                        const char *to);
/* Insert a label into a file name: "run-BATCH_8.pickle" from "run.pickle" and "BATCH=8".
   NULL: memory ran out. The caller frees the result. */
char *trial_name_snapshot(const char *output, const char *label);

#endif
