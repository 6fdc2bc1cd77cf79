/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_REPORT_H
#define TOOL_FLEET_REPORT_H

/* The report of `drystone fleet`: text, JSON (drystone.fleet/1), and a page of both. */

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include "fleet/fleet_judge.h"
#include "fleet/fleet_phrases.h"
#include "fleet/fleet_settings.h"

/* The single change that is advised for the whole job. */
enum fleet_advice_kind {
    FLEET_ADVICE_LEAK,    /* stop the growth at a line of one rank */
    FLEET_ADVICE_LINE,    /* reduce a line of the failed rank to its group's level */
    FLEET_ADVICE_SETTING, /* set PYTORCH_CUDA_ALLOC_CONF */
    FLEET_ADVICE_BALANCE, /* split the load of the groups more evenly */
    FLEET_ADVICE_SHRINK,  /* no setting helps: the program must need less */
    FLEET_ADVICE_NOTHING,
};

struct fleet_advice {
    enum fleet_advice_kind kind;
    const struct fleet_finding *finding; /* for LEAK, LINE and BALANCE; else NULL */
    uint64_t short_bytes; /* bytes missing, for LINE and SHRINK; 0: unknown */
};

struct fleet_report {
    const char *subject; /* the arguments as given */
    const struct fleet_judgement *judgement;
    bool shows_all;
    bool is_searched; /* settings were replayed */
    size_t decider_count;
    const size_t *deciders; /* files whose settings were searched */
    const struct fleet_search *searches;
    struct fleet_decision decision;
    struct fleet_advice advice;
};

/* Choose the advice. A pure function of the other fields of the report. */
struct fleet_advice fleet_advice_choose(const struct fleet_report *report);
/* Return "leak", "line", "setting", "balance", "shrink" or "nothing". */
const char *fleet_advice_name(enum fleet_advice_kind kind);

/* Return why no rank differs. Requires a report without findings. */
const char *fleet_say_nothing(const struct fleet_report *report);
/* Write what the first failure requested, without its line. Requires a first failure. */
void fleet_say_failure(const struct fleet_report *report, char text[FLEET_TEXT_BYTES]);
/* Write the result of the settings search. Requires that settings were searched. */
void fleet_say_settings(const struct fleet_report *report, char text[FLEET_TEXT_BYTES]);
/* Write the advice, without its line of source. */
void fleet_say_advice(const struct fleet_report *report, char text[FLEET_TEXT_BYTES]);

/* Print the report as text. Returns false if memory ran out. */
bool fleet_report_print(const struct fleet_report *report);
/* Make the JSON, which the caller owns. Returns NULL if memory ran out. */
json_t *fleet_report_make_json(const struct fleet_report *report);
/*
 * Write the page to `path`, "-" for standard output. It has all of --json whatever its
 * size; all else only up to `max_bytes`. Returns an exit_code.
 */
int fleet_report_write_html(const struct fleet_report *report, const char *path,
                            uint64_t max_bytes);

#endif
