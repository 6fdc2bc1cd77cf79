/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FACTS_H
#define TOOL_FACTS_H

/*
 * The files that a dry run's processes left: a snapshot and some facts each, and the
 * names of unimplemented functions that were called. Our own hook writes the files, but
 * they are checked as strictly as foreign ones.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/options.h"

/* The memory of a serving engine, as it says. A figure that its release does not tell is 0. */
struct facts_engine {
    const char *name;                     /* NULL: the process is no engine's */
    uint64_t kv_bytes, kv_tokens, length; /* `length`: the longest request, in tokens */
    uint64_t weights_bytes, activation_bytes, outside_bytes, graph_bytes, total_bytes;
    uint64_t request_bytes; /* bytes that a request took beyond what there was */
    uint64_t asleep_bytes;  /* bytes of the card that stay while the engine sleeps */
    uint64_t requests;      /* whole ones of `length` at a time */
    double utilization;
    const char *assumed; /* condition of the figures; NULL: there is none */
};

/* A process that used a device. */
struct facts_process {
    char *snapshot; /* path in the launch's folder; NULL: none was made */
    json_t *json;   /* the hook's file */
    int64_t rank;   /* NO_NUMBER: unknown */
    uint64_t allocated_peak, reserved_peak,
        requested_peak;  /* bytes, on its fullest device */
    uint64_t nccl_bytes; /* assumed for NCCL on that device */
    uint64_t step_count;
    uint64_t peak_step; /* step of the allocated peak, or of the OOM, counted from 0 */
    double seconds;
    const char *stopped; /* why the hook ended it; NULL: the process ended by itself */
    const char *repeats; /* since when its steps repeated; NULL: they did not */
    const char
        *unseen; /* the part that was not run; NULL: nothing is known to be unseen */
    const char *error;   /* text of the exception that ended the process; NULL: none */
    const char *refusal; /* an engine's own words for too little memory; NULL: none */
    const char *torch;
    const char *convolutions; /* "half": all were of 16 bits or less; NULL: none ran */
    struct facts_engine engine;
    bool is_counted; /* the peaks are valid; CUDAPluggableAllocator reports none */
    bool has_oom;
    bool is_exact; /* the snapshot replays with identical addresses; set by the caller */
    bool is_stuck; /* ended for lack of a step or a new peak */
    bool is_by_chance; /* its steps differ in size, and it sets no seed */
};

/* A called function that the stand-in does not implement. */
struct facts_call {
    char *name;
    uint64_t count;
};

/* Processes that used a device and left no facts: a signal ended them. */
struct facts_lost {
    size_t count;    /* processes that had made a step, or left a line */
    size_t begun;    /* processes, with Inductor's compile workers */
    char place[300]; /* "FILE:LINE" of one; "": not known */
};

struct facts {
    struct facts_lost lost;
    struct facts_process *processes; /* sorted by rank, then by reserved bytes */
    size_t process_count;
    size_t main;              /* index of the process that reserved most */
    struct facts_call *calls; /* sorted by count, highest first */
    size_t call_count;
};

/* Read the folder `out`; `command` is for messages. Returns an exit_code; call
   facts_finish() in any case. */
int facts_read(struct facts *facts, const char *command, const char *out);
void facts_finish(struct facts *facts);
/* Write the exception that ended a process, printable: its kind, `length` bytes of its text, its
   place. */
void facts_write_error(const struct facts_process *process, size_t length, char *text,
                       size_t capacity);

#endif
