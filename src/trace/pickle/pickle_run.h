/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PICKLE_RUN_H
#define DRYI_PICKLE_RUN_H

/*
 * Stacks that are known by their bytes.
 *
 * A list of frames that were written before is a run of fetches: MARK, BINGET or LONG_BINGET
 * for each frame, APPENDS. Most bytes of a snapshot are such runs. Equal stacks are equal
 * bytes, since a frame keeps its number in the memo. So a run that was met is recognised by
 * comparing bytes, and its fetches are not looked at again.
 *
 * Runs lie in sets by the hash of their first bytes, and each names the run that came behind
 * it: a training step has the same stacks in the same order as the step before.
 *
 * R1  A run holds numbers of frames only; what they stand for never changes, but when a file
 *     puts another value at a number that is in use. Then all runs are forgotten.
 */

#include <stdbool.h>

#include "trace/pickle/pickle_walk.h"

#define DRYI_RUN_BYTES_MAX 8192u /* of one; longer ones are walked */
/* The opcode behind a run is looked at: LONG_BINGET. */
#define DRYI_RUN_LOOK_BYTES 5u

/*
 * Read the run at `p`, behind its MARK, which may have `count` bytes: *stack is its stack,
 * *length counts its bytes. *length 0: there is no whole run. Requires DRYI_RUN_LOOK_BYTES
 * more to stand behind them.
 */
enum dry_status dryi_run_read(struct dryi_pickle_walk *w, const unsigned char *p,
                              size_t count, uint32_t *stack, size_t *length);
/*
 * If the list on top of the stack is new, and whole from the MARK at in->at on, make it a
 * stack, and step behind its APPENDS. *taken false: the bytes are to be walked one by one.
 */
enum dry_status dryi_run_take(struct dryi_pickle_walk *w, bool *taken);
/* Forget all runs: a number of the memo stands for something else now (R1). */
void dryi_run_forget(struct dryi_pickle_walk *w);
void dryi_run_finish(struct dryi_pickle_walk *w);

#endif
