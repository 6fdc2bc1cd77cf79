/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_PHRASES_H
#define TOOL_FLEET_PHRASES_H

/* Phrases of the report: names of ranks, groups and findings. */

#include <stddef.h>

#include "fleet/fleet_judge.h"

#define FLEET_WHO_BYTES 48
#define FLEET_RANKS_BYTES 64
#define FLEET_TEXT_BYTES 320

/* Write "rank 17", or the end of the file's name if its rank is unknown. */
void fleet_phrase_rank(const struct fleet_judgement *j, size_t file,
                       char text[FLEET_WHO_BYTES]);

/* Write the ranks of a group, such as "0-7", "0-56 by 8" or "0, 3, 9-12 ...". */
void fleet_phrase_ranks(const struct fleet_judgement *j, const struct fleet_group *group,
                        char text[FLEET_RANKS_BYTES]);

/* Write a sentence about a finding, without its line of source. */
void fleet_phrase_finding(const struct fleet_judgement *j, const struct fleet_finding *f,
                          char text[FLEET_TEXT_BYTES]);

/* Write how the groups relate to each other. "" if nothing is known. */
void fleet_phrase_layout(const struct fleet_judgement *j, char text[FLEET_TEXT_BYTES]);

#endif
