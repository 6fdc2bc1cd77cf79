/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_GATE_NOTE_H
#define TOOL_GATE_NOTE_H

/*
 * The findings of a gate in the format that a forge shows next to a change. GitHub takes
 * workflow commands, one a line; GitLab takes a Code Quality report, a JSON array.
 */

#include <jansson.h>

#include "gate/gate.h"

enum gate_forge { GATE_FORGE_NONE, GATE_FORGE_GITHUB, GATE_FORGE_GITLAB, GATE_FORGE_BAD };

/* Parse the value of --annotate; NULL: none. */
enum gate_forge gate_forge_find(const char *word);

/* Write a finding as a line for GitHub to standard error. */
void gate_note_github(const struct gate *gate, const char *text);

/*
 * Add a finding to a report for GitLab. `figure` and `of` distinguish it from others in
 * the same file. Returns false if memory ran out.
 */
bool gate_note_gitlab(const struct gate *gate, json_t *report, const char *figure,
                      const char *of, const char *text);

#endif
