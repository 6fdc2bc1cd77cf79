/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FACTS_H
#define TOOL_FACTS_H

/*
 * The remains of the processes of a dry run: a snapshot and a few facts each, and the names of
 * functions that nobody wrote. The files are our hook's; they are read strictly all the same.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/options.h"

/* One process that used a device. */
struct facts_process {
    char *snapshot; /* a path in the launch's folder; NULL: it could make none */
    json_t *json;   /* as the hook wrote it */
    int64_t rank;   /* NO_NUMBER: not said */
    uint64_t allocated_peak, reserved_peak,
        requested_peak;  /* bytes, of its fullest device */
    uint64_t nccl_bytes; /* assumed for NCCL on that device */
    uint64_t step_count;
    double seconds;
    const char *stopped; /* why it was ended; NULL: it ended by itself */
    const char *error;   /* the exception that ended it, "Kind: text"; NULL: none */
    const char *torch;
    bool is_counted; /* its allocator told peaks: CUDAPluggableAllocator does not */
    bool has_oom;
    bool is_exact; /* its snapshot replays to the address; the caller says so */
    bool is_stuck; /* it went on without a step or a new peak, until it was ended */
};

/* A function that was called and that nobody wrote. */
struct facts_call {
    char *name;
    uint64_t count;
};

struct facts {
    struct facts_process *processes; /* by rank, then by what they reserve */
    size_t process_count;
    size_t main;              /* the one that reserves most */
    struct facts_call *calls; /* the most called first */
    size_t call_count;
};

/* Read the folder `out` for `command`. An exit_code; facts_finish() is due in any case. */
int facts_read(struct facts *facts, const char *command, const char *out);
void facts_finish(struct facts *facts);

#endif
