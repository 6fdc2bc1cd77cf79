/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_INSIDE_H
#define TOOL_FLEET_INSIDE_H

/* The parts of fleet_judge(), in the order in which they run. False: no memory. */

#include "fleet/fleet_judge.h"

/* fleet_use.c: which files count, which ranks are missing */
bool fleet_judge_use(struct fleet_judgement *j);
/* fleet_groups.c */
bool fleet_judge_groups(struct fleet_judgement *j);
/* fleet_outliers.c: ranks that differ from their group, groups from the others */
bool fleet_judge_outliers(struct fleet_judgement *j);
/* fleet_steps.c: the job's timeline */
bool fleet_judge_steps(struct fleet_judgement *j);
/* fleet_devices.c: devices, and the first failure */
bool fleet_judge_devices(struct fleet_judgement *j);

/* Add a finding. False: no memory. */
bool fleet_judge_add(struct fleet_judgement *j, const struct fleet_finding *finding);

#endif
