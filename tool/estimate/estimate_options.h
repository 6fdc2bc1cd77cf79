/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ESTIMATE_OPTIONS_H
#define TOOL_ESTIMATE_OPTIONS_H

/*
 * The options of `drystone estimate`: the table, what was typed, and the checks of both.
 *
 * Most options are members of the library's setup and are read straight into it.
 */

#include <drystone/estimate.h>

#include "base/options.h"

struct estimate_values {
    const char *precision, *optimizer, *step, *attention, *checkpointing, *targets, *card;
    int64_t zero, mask_bytes;
    bool layers, chain, list, json;
    struct dry_run_setup setup; /* its `sequence` is 0 if none is given */
};

#define ESTIMATE_OPTION_COUNT 35
extern const struct option_spec estimate_option_specs[ESTIMATE_OPTION_COUNT];

/* Set the values that stand where nothing is given. */
void estimate_values_init(struct estimate_values *values);

/*
 * Check what was typed, and write the words and small numbers into the setup. Returns
 * EXIT_FINE, or EXIT_USAGE and the message is printed.
 */
int estimate_values_read(struct estimate_values *values);

/* Refuse what only transformers have, for a list of layers; degrees and checkpointing the
   library refuses. Returns as estimate_values_read() does. */
int estimate_values_check_conv(const struct estimate_values *values);

#endif
