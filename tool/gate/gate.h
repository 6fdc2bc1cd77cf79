/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_GATE_H
#define TOOL_GATE_H

/*
 * A gate for pipelines: conditions on a command's figures decide how it ends.
 *
 * --fail-if gives a condition, --baseline a file of an earlier run's figures, --annotate a
 * form for the page of GitHub or GitLab. With one of the first two, the conditions alone
 * decide between EXIT_FINE and EXIT_FOUND, and each that holds is said in one line on
 * standard error.
 *
 * A baseline that is not there yet is written, unless a condition holds. If no condition
 * names the baseline, every figure that is watched may be 1 % more than in it.
 */

#include "base/options.h"
#include "gate/condition.h"

struct gate_values {
    struct option_list fail_if;
    const char *baseline, *annotate;
};

/*
 * Three rows of a table of options. `member` is the struct gate_values of `type`. `figure` is one of
 * the command's figures, in bytes: the help has it for an example.
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
     .needs = {"fail-if baseline", "of --fail-if and --baseline"}, __VA_ARGS__}
/* clang-format on */

#define GATE_TABLES_MAX 2

/* A run, or the file: an object of each table. */
struct gate_row {
    const char *of; /* the run's name; NULL: there is one row */
    const void *objects[GATE_TABLES_MAX];
};

struct gate {
    const char *command, *file;
    struct figures figures;
    const struct gate_values *values;
    /* The line of source that annotations point at; NULL: the file itself. */
    const char *source;
    unsigned line;
};

/*
 * Check what was given, before any work. `prints_json`: standard output is JSON. An
 * exit_code.
 */
int gate_check(const struct gate *gate, bool prints_json);

/* Tell whether standard output belongs to the annotations. */
bool gate_takes_output(const struct gate_values *values);

/*
 * Judge the rows. `code` is how the command would end; it stays if there is no gate, or if
 * the command failed. Returns an exit_code: EXIT_INPUT if a figure is not known that a
 * condition needs.
 */
int gate_judge(const struct gate *gate, const struct gate_row *rows, size_t row_count,
               int code);

#endif
