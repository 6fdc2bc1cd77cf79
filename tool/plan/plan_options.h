/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PLAN_OPTIONS_H
#define TOOL_PLAN_OPTIONS_H

/* The options of `drystone plan`: their table, their values and the checks on them. */

#include <drystone/plan.h>

#include "base/options.h"

struct plan_values {
    const char *method, *svg, *out, *judge, *lp;
    uint64_t budget, table_max;   /* NOT_GIVEN: the default */
    int64_t every, slots, window; /* 0: not given, the library's default applies */
    bool curve, compare, timeline, explain, json;
};

#define PLAN_OPTION_COUNT 15
extern const struct option_spec plan_option_specs[PLAN_OPTION_COUNT];

/* Set the defaults of all options. */
void plan_values_init(struct plan_values *values);

/* Check the values and fill `options` except for the budget, which FILE may set. `path`
   is FILE. Returns EXIT_FINE, or EXIT_USAGE after printing the message. */
int plan_values_read(const struct plan_values *values, const char *path,
                     struct dry_plan_options *options);

/* Tell whether an optional path is given and is "-", standard output. */
bool plan_is_stdout(const char *path);

#endif
