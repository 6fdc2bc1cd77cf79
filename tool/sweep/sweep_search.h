/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SWEEP_SEARCH_H
#define TOOL_SWEEP_SEARCH_H

/* `sweep` without a grid: search for the settings that would have helped. */

#include "base/options.h"

/* NULL or 0: not given, the library's default applies. */
struct sweep_search {
    struct option_list without;
    const char *path, *goal, *compat;
    uint64_t capacity, min_gain;
    int64_t device, runs;
    size_t row_max; /* candidates shown */
    bool json;
};

/* Search, and print the result. Returns an exit code. */
int sweep_search_run(const struct sweep_search *wanted);

#endif
