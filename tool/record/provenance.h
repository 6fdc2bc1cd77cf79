/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PROVENANCE_H
#define TOOL_PROVENANCE_H

/* Texts about the origin of a record, and advice on recording better. */

#include <stddef.h>

#include <drystone/replay.h>

/* Advice for a record that proves too little. */
#define PROVENANCE_RECORD_IT                                                             \
    "Record the events, from the program's start: "                                      \
    "torch.cuda.memory._record_memory_history(max_entries=1000000) before the model is " \
    "made, torch.cuda.memory._dump_snapshot(\"run.pickle\") after the steps."

/* Write a text such as "PyTorch 2.0 to 2.11 all reproduce it", cut to `capacity`. */
void provenance_say_releases(const struct dry_releases *releases, char *text,
                             size_t capacity);

#endif
