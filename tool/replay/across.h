/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ACROSS_H
#define TOOL_ACROSS_H

/*
 * Run one program under the rules of several releases of PyTorch (replay --across).
 *
 * Rules are a row of the library's table; several releases may share a row. All rules
 * from the oldest to the newest requested release are run on an empty device, so that a
 * difference is attributed to the rules that caused it. Runs differ if their decisions
 * do. Each decision is kept as a 64-bit hash. The runs are repeated to get the first that
 * differs.
 */

#include <jansson.h>

#include "replay/replay_report.h"

#define ACROSS_RELEASES_MAX 16
#define ACROSS_RULES_MAX 16
#define ACROSS_VERSION_BYTES 16

/* A release that was requested. */
struct across_release {
    char version[ACROSS_VERSION_BYTES];
    size_t rules; /* number of its rules in the library */
};

/* Rules, their run, and its difference from the run of the preceding rules. */
struct across_rules {
    struct dry_replay_release release;
    struct dry_run run;
    bool has_before; /* the preceding rules were run, too */
    bool differs;
    size_t decision; /* index of the first decision that differs */
    /* That decision in both runs. A run that ended before has DRY_ACTION_OTHER. */
    struct dry_decision before, now;
};

struct across {
    struct across_release releases[ACROSS_RELEASES_MAX];
    size_t release_count;
    /* Index: the number of the rules. Only `first` to `last` are set. */
    struct across_rules rules[ACROSS_RULES_MAX];
    size_t first, last;
};

/* Parse "2.9,2.12,2.15". Returns an exit_code, after printing an error. */
int across_parse(const char *text, struct across *across);

/*
 * Run all rules under `options`. Its `compat`, `begin_anew` and `decisions` are ignored.
 * Failures of the library are in *err.
 */
enum dry_status across_run(struct across *across, struct dry_replay *replay,
                           const struct dry_run_options *options, struct dry_error *err);

/* Print the differences between successive rules, below the table. */
void across_print(const struct across *across);
/* Return the differences as a JSON list; NULL if memory ran out. */
json_t *across_make_json(const struct across *across);

#endif
