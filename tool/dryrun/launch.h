/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LAUNCH_H
#define TOOL_LAUNCH_H

/*
 * Starts a program on a card that is not there.
 *
 *     struct launch launch = {.wish = {.words = words, .card = card, .device_count = 1}};
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
 * Signals   A terminal sends its interrupt to the program, too. We wait for the program's end
 *           and clean up; one that goes on is terminated, then killed.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/card.h>

#include "base/options.h"
#include "dryrun/wheel.h"

#define LAUNCH_PATH_BYTES WHEEL_PATH_BYTES

/* The program's own output. */
enum launch_output {
    LAUNCH_OUTPUT_THEIRS, /* goes where ours goes */
    LAUNCH_OUTPUT_ERROR,  /* standard output, too, goes to standard error */
    LAUNCH_OUTPUT_HIDDEN, /* is kept in the folder; a line of progress is shown */
};

struct launch_wish {
    const char *command; /* of ours, for messages */
    const struct option_list *words;
    const struct dry_card *card;
    int device_count;
    bool is_boundless;   /* the card has more memory than anybody needs */
    bool is_late;        /* work is done only when somebody waits for it */
    bool is_other_order; /* of addresses than the card's driver has */
    bool has_values;     /* small operations are done, on the CPU */
    int64_t step_max;    /* 0: until steps repeat */
    uint64_t event_max;  /* of history */
    int64_t patience_s;  /* without a step or a new peak; then the program is ended */
    int64_t world_size;  /* 0: the program is no rank of a larger job */
    int64_t rank;
    const char *title; /* of the line of progress */
    enum launch_output output;
};

struct launch {
    struct launch_wish wish; /* set by the caller */
    /* Set by launch_begin(). */
    char folder[LAUNCH_PATH_BYTES]; /* of ours, temporary; "": none yet */
    char out[LAUNCH_PATH_BYTES];
    char standin[LAUNCH_PATH_BYTES], hook[LAUNCH_PATH_BYTES];
    struct wheel wheel;
    char *preload;
};

/* Requires `wish`, and zeros otherwise. launch_finish() is due in any case. */
int launch_begin(struct launch *launch);
/*
 * Run the program. *status is its exit status, or 128 and its signal. An interrupt of ours
 * ends the program and is EXIT_INTERRUPTED.
 */
int launch_run(struct launch *launch, int *status);
void launch_finish(struct launch *launch);
/* Print the last lines of output that was hidden, on standard error. */
void launch_show_output(const struct launch *launch);

#endif
