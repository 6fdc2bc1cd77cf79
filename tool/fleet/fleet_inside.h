/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_INSIDE_H
#define TOOL_FLEET_INSIDE_H

/* The steps of fleet_judge(), in this order. Each returns false if memory ran out. */

#include "fleet/fleet_judge.h"

/* Find the files that count, and the missing ranks (fleet_use.c). */
bool fleet_judge_use(struct fleet_judgement *j);
/* Group ranks that hold nearly the same (fleet_groups.c). */
bool fleet_judge_groups(struct fleet_judgement *j);
/* Find ranks that differ from their group, and groups that differ (fleet_outliers.c). */
bool fleet_judge_outliers(struct fleet_judgement *j);
/* Make the timeline of the job (fleet_steps.c). */
bool fleet_judge_steps(struct fleet_judgement *j);
/* Find ranks on unexpected devices, and the first failure (fleet_devices.c). */
bool fleet_judge_devices(struct fleet_judgement *j);

/* Add a finding. Returns false if memory ran out. */
bool fleet_judge_add(struct fleet_judgement *j, const struct fleet_finding *finding);

#endif
