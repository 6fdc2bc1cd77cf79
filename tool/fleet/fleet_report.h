/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_REPORT_H
#define TOOL_FLEET_REPORT_H

/*
 * The report of `drystone fleet`: text for people, JSON (drystone.fleet/1) for machines, and
 * a page of both.
 */

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "fleet/fleet_judge.h"
#include "fleet/fleet_settings.h"
#include "fleet/fleet_words.h"

/* The one change for the whole job. */
enum fleet_advice_kind {
    FLEET_ADVICE_LEAK,    /* stop the growth at a line of one rank */
    FLEET_ADVICE_LINE,    /* bring a line of the rank that failed to its group's level */
    FLEET_ADVICE_SETTING, /* set PYTORCH_CUDA_ALLOC_CONF */
    FLEET_ADVICE_BALANCE, /* split the groups more evenly */
    FLEET_ADVICE_SHRINK,  /* no setting helps: the program must need less */
    FLEET_ADVICE_NOTHING,
};

struct fleet_advice {
    enum fleet_advice_kind kind;
    const struct fleet_finding *finding; /* LEAK, LINE, BALANCE; else NULL */
    uint64_t short_bytes;                /* LINE, SHRINK: what was missing; 0: unknown */
};

struct fleet_report {
    const char *subject; /* as it was asked for */
    const struct fleet_judgement *judgement;
    bool shows_all;
    bool is_searched; /* settings were replayed */
    size_t decider_count;
    const size_t *deciders; /* files */
    const struct fleet_search *searches;
    struct fleet_decision decision;
    struct fleet_advice advice;
};

/* Choose the advice; a pure function of the rest of the report. */
struct fleet_advice fleet_advice_choose(const struct fleet_report *report);
/* "leak", "line", "setting", "balance", "shrink", "nothing". */
const char *fleet_advice_name(enum fleet_advice_kind kind);

/* Return why no rank differs. Requires that none does. */
const char *fleet_say_nothing(const struct fleet_report *report);
/* Write what the first failure was about, without its line. Requires that there is one. */
void fleet_say_failure(const struct fleet_report *report, char text[FLEET_TEXT_BYTES]);
/* Write what was found of settings. Requires that they were searched. */
void fleet_say_settings(const struct fleet_report *report, char text[FLEET_TEXT_BYTES]);
/* Write the advice, without its line of source. */
void fleet_say_advice(const struct fleet_report *report, char text[FLEET_TEXT_BYTES]);

/* False: there was no memory. */
bool fleet_report_print(const struct fleet_report *report);
/* Make the JSON, which is the caller's. NULL: no memory. */
json_t *fleet_report_make_json(const struct fleet_report *report);
/*
 * Write the page to `path`, "-" for standard output. All of --json is in it whatever its
 * size; the rest as far as `max_bytes` go. An exit_code.
 */
int fleet_report_write_page(const struct fleet_report *report, const char *path,
                            uint64_t max_bytes);

#endif
