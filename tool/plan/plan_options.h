/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PLAN_OPTIONS_H
#define TOOL_PLAN_OPTIONS_H

/* The options of `drystone plan`: the table, what was typed, and the checks of both. */

#include <drystone/plan.h>

#include "base/options.h"

struct plan_values {
    const char *method, *svg, *out, *judge, *lp;
    uint64_t budget, table_max;   /* NOT_GIVEN by default */
    int64_t every, slots, window; /* 0: not given; the library knows the defaults */
    bool curve, compare, timeline, explain, json;
};

#define PLAN_OPTION_COUNT 15
extern const struct option_spec plan_option_specs[PLAN_OPTION_COUNT];

/* Set the values that stand where nothing is given. */
void plan_values_init(struct plan_values *values);

/*
 * Check what was typed, and write what the library is asked into `options`, all but the
 * budget, which FILE may say. `path` is FILE. Returns EXIT_FINE, or EXIT_USAGE and the
 * message is printed.
 */
int plan_values_read(const struct plan_values *values, const char *path,
                     struct dry_plan_options *options);

/* Tell whether `path` is given and names standard output. */
bool plan_is_stdout(const char *path);

#endif
