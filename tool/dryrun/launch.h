/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LAUNCH_H
#define TOOL_LAUNCH_H

/*
 * Starts a program on a card that is not there.
 *
 *     struct launch launch = {.words = words, .card = card, .device_count = 1};
 *     code = launch_begin(&launch);                finds Python and torch, makes the libraries
 *     if (code == EXIT_FINE)
 *         code = launch_run(&launch, &status);     the program, to its end
 *     ... launch.out has PID.pickle and PID.json for each process that used a device
 *     launch_finish(&launch);                      nothing is left behind
 *
 * The program finds stand-ins for NVIDIA's libraries in LD_PRELOAD, which its children have,
 * too, and Python finds the hook that records (standin/hook) on PYTHONPATH.
 *
 * Errors    Each function returns an exit_code; what failed is on standard error.
 * Signals   A terminal sends its signals to the program, too: we wait for the program's end and
 *           clean up.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/card.h>

#include "base/options.h"
#include "dryrun/wheel.h"

#define LAUNCH_PATH_BYTES WHEEL_PATH_BYTES

struct launch {
    /* Set by the caller. */
    const char *command; /* of ours, for messages */
    const struct option_list *words;
    const struct dry_card *card;
    int device_count;
    int64_t step_max;         /* 0: until steps repeat */
    uint64_t event_max;       /* of history */
    bool is_late;             /* work is done only when somebody waits for it */
    bool is_output_for_error; /* the program's standard output is our standard error */
    /* Set by launch_begin(). */
    char folder[LAUNCH_PATH_BYTES]; /* of ours, temporary; "": none yet */
    char out[LAUNCH_PATH_BYTES];
    char standin[LAUNCH_PATH_BYTES], hook[LAUNCH_PATH_BYTES];
    struct wheel wheel;
    char *preload;
};

int launch_begin(struct launch *launch);
/* *status is the program's exit status, or 128 and its signal. */
int launch_run(struct launch *launch, int *status);
void launch_finish(struct launch *launch);

#endif
