/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FRAG_REPORT_H
#define TOOL_FRAG_REPORT_H

/* The layout at a moment, for `top --free`: pools, the blocks that pin segments, and a
   map in text. */

#include <stdbool.h>

#include <drystone/owners.h>
#include <drystone/state.h>

#include "record/moment.h"

struct frag_report {
    const char *file;
    const struct dry_trace *trace;
    bool is_simulated; /* the trace holds requests only; addresses are simulated */
    const struct dry_timeline *timeline;
    const struct dry_state *state;
    struct moment moment;            /* moment of `state`, and why it was chosen */
    const struct dry_owners *owners; /* alive at that moment; name source lines */
    size_t row_max;                  /* maximum pinning blocks, and segments of the map */
    bool has_map;                    /* draw all segments, not only pinned ones */
};

/* Print the report as text. Returns false if memory ran out. */
bool frag_report_print(const struct frag_report *report);

/* Prints drystone.top-free/1, drystone-top(1); returns an exit code. */
int frag_report_print_json(const char *command, const struct frag_report *report);

#endif
