/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FIGURES_H
#define TOOL_FIGURES_H

/*
 * The figures that --fail-if and --baseline know of `explain`, `steps` and `diff`; their
 * pages of the manual list them.
 */

#include "explain/diff_report.h"
#include "explain/explain_report.h"
#include "explain/steps_report.h"
#include "gate/gate.h"

/* Check what was given to a command, before any work. An exit_code. */
int figures_check(const char *command, const struct gate_values *values,
                  bool prints_json);

/* Judge a report; `code` is how the command would end. An exit_code. */
int figures_judge_explain(const struct explain_report *report,
                          const struct gate_values *values, int code);
int figures_judge_steps(const struct steps_report *report,
                        const struct gate_values *values, int code);
int figures_judge_diff(const struct diff_report *report, const struct gate_values *values,
                       int code);

#endif
