/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_REPLAY_GATE_H
#define TOOL_REPLAY_GATE_H

/*
 * The figures of replays for --fail-if and --baseline, see drystone-replay(1). A
 * condition applies to every requested run.
 */

#include "gate/gate.h"
#include "replay/replay_report.h"

/* Check the options before any work. Returns an exit_code. */
int replay_gate_check(const struct gate_values *values, bool prints_json);
/* Judge the report. `code` is the command's exit_code so far. Returns the final one. */
int replay_gate_judge(const struct replay_report *report,
                      const struct gate_values *values, int code);

#endif
