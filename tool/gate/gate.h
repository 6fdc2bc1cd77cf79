/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_GATE_H
#define TOOL_GATE_H

/*
 * A gate for pipelines: conditions on figures decide the exit code.
 *
 * --fail-if gives a condition, --baseline a file with figures of an earlier run,
 * --annotate a format for the pages of GitHub or GitLab. With one of the first two, only
 * the conditions decide between EXIT_FINE and EXIT_FOUND. Each that holds is reported in
 * one line on standard error.
 *
 * A missing baseline is written, unless a condition holds. If no condition names the
 * baseline, each watched figure may exceed its baseline by 1 %.
 */

#include "base/options.h"
#include "gate/condition.h"

struct gate_values {
    struct option_list fail_if;
    const char *baseline, *annotate;
};

/*
 * Three rows of a table of options. `member` is the struct gate_values within `type`.
 * `figure` names a figure in bytes, for an example in the help.
 */
/* clang-format off */
#define GATE_OPTIONS(type, member, figure, ...)                                              \
    {"fail-if", 0, "CONDITION", OPTION_LIST, offsetof(type, member.fail_if),                 \
     .help = "end with 1 if this holds: '" figure " > 70GiB', '" figure " > baseline + 2%'; " \
             "may be given several times; then nothing else ends with 1",                    \
     __VA_ARGS__},                                                                           \
    {"baseline", 0, "FILE", OPTION_STRING, offsetof(type, member.baseline),                  \
     .help = "figures of an earlier run to compare with; written if it is not there",        \
     __VA_ARGS__},                                                                           \
    {"annotate", 0, "WHERE", OPTION_STRING, offsetof(type, member.annotate),                 \
     .help = "github: also write what holds as annotations, on standard error; gitlab: "     \
             "write a Code Quality report to standard output, instead of the text",          \
     .needs = {"fail-if baseline", "for --fail-if and --baseline alone"}, __VA_ARGS__}
/* clang-format on */

/* A run, or the file: an object of each table. */
struct gate_row {
    const char *of; /* the run's name; NULL: there is one row */
    const void *objects[FIGURES_TABLES_MAX];
};

struct gate {
    const char *command, *file;
    struct figures figures;
    const struct gate_values *values;
    /* The line of source that annotations refer to; NULL: the file itself. */
    const char *source;
    unsigned line;
};

/* Check options and baseline before any work. Returns an exit_code. */
int gate_check(const struct gate *gate, bool prints_json);

/* Return true if annotations use standard output. */
bool gate_takes_output(const struct gate_values *values);

/*
 * Judge the rows. `code` is the command's exit_code so far. It is kept if there is no
 * gate or the command failed. Returns an exit_code: EXIT_INPUT if a condition needs an
 * unknown figure.
 */
int gate_judge(const struct gate *gate, const struct gate_row *rows, size_t row_count,
               int code);

#endif
