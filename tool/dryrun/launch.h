/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_LAUNCH_H
#define TOOL_LAUNCH_H

/*
 * Run a program on a simulated card.
 *
 *     struct launch launch = {.request = {.arguments = arguments, .card = card, .device_count = 1}};
 *     code = launch_begin(&launch);                finds Python and torch, makes the libraries
 *     if (code == EXIT_FINE)
 *         code = launch_run(&launch, &status);     the program, to its end
 *     ... launch.out has PID.pickle and PID.json for each process that used a device
 *     launch_finish(&launch);                      nothing is left behind
 *
 * LD_PRELOAD gives the program and its children stand-ins for NVIDIA's libraries;
 * PYTHONPATH gives Python the recording hook (standin/hook).
 *
 * Errors    Each function returns an exit_code; failures are printed.
 * Signals   A terminal sends its interrupt to the program, too. We wait for the program's
 *           end and clean up. A program that continues gets SIGTERM, then SIGKILL.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/card.h>

#include "base/options.h"
#include "dryrun/host_use.h"
#include "dryrun/wheel.h"

#define LAUNCH_PATH_BYTES WHEEL_PATH_BYTES

/* The destination of the program's output. */
enum launch_output {
    LAUNCH_OUTPUT_THEIRS, /* our own streams */
    LAUNCH_OUTPUT_ERROR,  /* standard error for both streams */
    LAUNCH_OUTPUT_HIDDEN, /* a file in the folder; progress is shown instead */
};

struct launch_request {
    const char *command; /* the tool's command, for messages */
    const struct option_list *arguments;
    const struct dry_card *card;
    int device_count;
    bool is_boundless;   /* the card gives BOUNDLESS_BYTES, and tells its own total */
    bool is_late;        /* device work completes only when the program waits */
    bool is_other_order; /* hand out addresses in the opposite order of the driver's */
    bool has_values;     /* compute small operations, on the CPU */
    bool may_write;      /* the program may change files that were there before */
    int64_t step_max;    /* 0: run until the program ends */
    bool ends_at_epoch;  /* end it where the steps of a second epoch repeat */
    uint64_t event_max;  /* maximum events in the recorded history */
    bool is_brief;       /* peaks are enough: no verdict, and a history without stacks */
    int64_t patience_s;  /* limit without a step or a new peak */
    int64_t world_size;  /* 0: not a rank of a distributed job */
    int64_t rank;
    int64_t prompt_tokens, answer_tokens; /* lengths of a request; 0: none */
    const char *changes; /* changes for drystone.fit to make: DRYSTONE_FIT; NULL: none */
    const char *package; /* the package's hook, which reads `changes` */
    uint64_t host_bytes; /* host memory that the program may take; 0: not limited */
    const char *title;   /* for the progress line */
    enum launch_output output;
};

struct launch {
    struct launch_request request; /* set by the caller */
    /* Filled by launch_begin(). */
    char folder[LAUNCH_PATH_BYTES]; /* temporary, removed at the end; "": not created */
    char out[LAUNCH_PATH_BYTES];
    char standin[LAUNCH_PATH_BYTES], hook[LAUNCH_PATH_BYTES];
    struct wheel wheel;
    char *preload;
    /* Filled by launch_run(). */
    int signal;          /* the one that ended the program; 0: none */
    size_t orphan_count; /* processes that the program left running */
    struct host_use host;
    unsigned engine_count; /* serving engines that were ready, so the program was ended */
};

/* Prepare a launch: find Python and torch, write the libraries. Requires that `request` is
   set and all else zero. Call launch_finish() in any case. */
int launch_begin(struct launch *launch);
/*
 * Run the program. *status is its exit status, or 128 plus its signal. Returns an
 * exit_code; if we are interrupted, the program is ended and the code EXIT_INTERRUPTED.
 */
int launch_run(struct launch *launch, int *status);
void launch_finish(struct launch *launch);
/* Print the last lines of hidden output to standard error. */
void launch_show_output(const struct launch *launch);

#endif
