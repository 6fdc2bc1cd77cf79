/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_RUN_H
#define DRYI_PICKLE_RUN_H

/*
 * Stacks that are recognised by their bytes.
 *
 * A list of frames that were written before is a run of fetches: MARK, BINGET or
 * LONG_BINGET for each frame, APPENDS. Most bytes of a snapshot are such runs. A frame
 * keeps its number in the memo, so equal stacks have equal bytes. A known run is
 * recognised by comparing bytes, and its fetches are not decoded again.
 *
 * Runs are stored in sets by the hash of their first bytes. Each run names the run that
 * followed it: a training step repeats the stacks of the step before, in the same order.
 *
 * R1  A run holds memo numbers of frames only. The entry of a number never changes,
 *     unless a file puts another value at a number in use. Then all runs are forgotten.
 */

#include <stdbool.h>

#include "trace/pickle/pickle_walk.h"

#define DRYI_RUN_BYTES_MAX 8192u /* bytes of a run; longer ones are walked */
/* Bytes read after a run: the longest fetch, LONG_BINGET. */
#define DRYI_RUN_LOOKAHEAD_BYTES 5u

/*
 * Read the run at `p`, after its MARK, from at most `count` bytes. *stack is set to its
 * stack and *length to its bytes; *length is 0 if there is no whole run. Requires
 * DRYI_RUN_LOOKAHEAD_BYTES more readable bytes after those.
 */
enum dry_status dryi_run_read(struct dryi_pickle_walk *w, const unsigned char *p,
                              size_t count, uint32_t *stack, size_t *length);
/*
 * If the list on top of the stack is new and its run at in->at is complete, make it a
 * stack and advance past APPENDS. If *taken is false, the bytes must be walked one by
 * one.
 */
enum dry_status dryi_run_take(struct dryi_pickle_walk *w, bool *taken);
/* Forget all runs, because a number in the memo now stands for another value (R1). */
void dryi_run_forget(struct dryi_pickle_walk *w);
void dryi_run_finish(struct dryi_pickle_walk *w);

#endif
