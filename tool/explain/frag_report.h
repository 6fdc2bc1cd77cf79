/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FRAG_REPORT_H
#define TOOL_FRAG_REPORT_H

/* The layout at a moment: pools, what pins them, and a map in text; for `top --free`. */

#include <stdbool.h>

#include <drystone/owners.h>
#include <drystone/state.h>

#include "record/moment.h"

struct frag_report {
    const char *file;
    const struct dry_trace *trace;
    bool is_simulated; /* the file holds requests; addresses are those of a simulation */
    const struct dry_timeline *timeline;
    const struct dry_state *state;
    struct moment moment;            /* of the state, and why that one */
    const struct dry_owners *owners; /* alive then: they name the lines */
    size_t row_max;                  /* pinners, and segments of the map, shown */
    bool has_map;                    /* all segments are drawn, not the pinners alone */
};

/* False: there was no memory. */
bool frag_report_print(const struct frag_report *report);

/* Prints drystone.frag/1, drystone-top(1); returns an exit code. */
int frag_report_print_json(const char *command, const struct frag_report *report);

#endif
