/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SWEEP_SEARCH_H
#define TOOL_SWEEP_SEARCH_H

/* What `sweep` does without a grid: a search for the settings that would have helped. */

#include "base/options.h"

/* NULL or 0 where nothing was given: the library knows its defaults. */
struct sweep_search {
    struct option_list without;
    const char *path, *goal, *compat;
    uint64_t capacity, min_gain;
    int64_t device, runs;
    bool json;
};

/* Search, and print what was found. Returns an exit code. */
int sweep_search_run(const struct sweep_search *wanted);

#endif
