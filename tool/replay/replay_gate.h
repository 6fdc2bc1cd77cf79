/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_REPLAY_GATE_H
#define TOOL_REPLAY_GATE_H

/*
 * The figures of a replay's runs that --fail-if and --baseline know, drystone-replay(1). A
 * condition is on every run that was asked for.
 */

#include "gate/gate.h"
#include "replay/replay_report.h"

/* Check what was given, before any work. An exit_code. */
int replay_gate_check(const struct gate_values *values, bool prints_json);
/* Judge the report; `code` is how the command would end. An exit_code. */
int replay_gate_judge(const struct replay_report *report,
                      const struct gate_values *values, int code);

#endif
