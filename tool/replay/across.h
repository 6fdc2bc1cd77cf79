/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_ACROSS_H
#define TOOL_ACROSS_H

/*
 * One program under the rules of several releases of PyTorch: replay --across 2.9,2.12,2.15.
 *
 * Rules are a row of the library's table; several releases may have the same. All rules from
 * the oldest to the newest release asked for are run, on an empty device, so that a
 * difference is put down to the rules that made it. Two runs differ if their decisions do:
 * each decision is kept as a number of 64 bits, and the first that differs is made again to
 * be told.
 */

#include <jansson.h>

#include "replay/replay_report.h"

#define ACROSS_RELEASES_MAX 16
#define ACROSS_RULES_MAX 16
#define ACROSS_VERSION_BYTES 16
#define ACROSS_DECISION_BYTES 128

/* A release as it was asked for. */
struct across_release {
    char version[ACROSS_VERSION_BYTES];
    size_t rules; /* their number in the library */
};

/* Rules, their run, and how it differs from that of the rules before. */
struct across_rules {
    struct dry_replay_release release;
    struct dry_run run;
    bool has_before; /* the rules before were run, too */
    bool differs;
    size_t decision; /* the first that differs, counted from 0 */
    char before[ACROSS_DECISION_BYTES], now[ACROSS_DECISION_BYTES]; /* lines; "": none */
};

struct across {
    struct across_release releases[ACROSS_RELEASES_MAX];
    size_t release_count;
    struct across_rules rules[ACROSS_RULES_MAX]; /* by number, from `first` to `last` */
    size_t first, last;
};

/* Read "2.9,2.12,2.15". An exit_code; what is wrong is said. */
int across_parse(const char *text, struct across *across);

/*
 * Run all rules under `options`, whose `compat`, `begin_anew` and `decisions` are set here.
 * A failure of the library is in *err.
 */
enum dry_status across_run(struct across *across, struct dry_replay *replay,
                           const struct dry_run_options *options, struct dry_error *err);

/* Print what changed from rules to rules, below the table. */
void across_print(const struct across *across);
/* Return the same as a list of JSON; NULL: there was no memory. */
json_t *across_make_json(const struct across *across);

#endif
