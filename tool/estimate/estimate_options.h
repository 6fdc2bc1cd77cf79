/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ESTIMATE_OPTIONS_H
#define TOOL_ESTIMATE_OPTIONS_H

/*
 * The options of `drystone estimate`: their table, their values and the checks on them.
 *
 * Most options are read straight into members of the library's setup.
 */

#include <drystone/estimate.h>

#include "base/options.h"

struct estimate_values {
    const char *precision, *optimizer, *step, *attention, *checkpointing, *targets, *card;
    int64_t zero, mask_bytes;
    bool layers, chain, list, json;
    struct dry_run_setup setup; /* `sequence` is 0 if not given */
};

#define ESTIMATE_OPTION_COUNT 35
extern const struct option_spec estimate_option_specs[ESTIMATE_OPTION_COUNT];

/* Set the defaults of all options. */
void estimate_values_init(struct estimate_values *values);

/* Check the values, and write enumerations and small numbers into the setup. Returns
   EXIT_FINE, or EXIT_USAGE after printing the message. */
int estimate_values_read(struct estimate_values *values);

/* Refuse options that apply to transformers only, for a convolutional model. The library
   refuses degrees and checkpointing itself. Returns as estimate_values_read() does. */
int estimate_values_check_conv(const struct estimate_values *values);

#endif
