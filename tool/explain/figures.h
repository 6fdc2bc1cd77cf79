/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FIGURES_H
#define TOOL_FIGURES_H

/* The figures that `explain`, `steps` and `diff` offer to --fail-if and --baseline; the
   manual pages list them. */

#include "explain/diff_report.h"
#include "explain/explain_report.h"
#include "explain/steps_report.h"
#include "gate/gate.h"

/* Check a command's gate options before any work. Returns an exit_code. */
int figures_check(const char *command, const struct gate_values *values,
                  bool prints_json);

/* Judge a report's figures and return an exit_code. `code` is the one without a gate. */
int figures_judge_explain(const struct explain_report *report,
                          const struct gate_values *values, int code);
int figures_judge_steps(const struct steps_report *report,
                        const struct gate_values *values, int code);
int figures_judge_diff(const struct diff_report *report, const struct gate_values *values,
                       int code);

#endif
