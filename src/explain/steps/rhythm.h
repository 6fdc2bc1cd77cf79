/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_RHYTHM_H
#define DRYI_EXPLAIN_RHYTHM_H

/*
 * Find the loop in a sequence of allocations without names.
 *
 * Code that runs once per step leaves a symbol that occurs once per step. So each number of
 * occurrences is a candidate for the number of steps. The most evenly spaced symbol with that
 * count, the anchor, cuts the sequence into parts. Parts are compared with their neighbours. A
 * candidate is a loop if
 *
 * - at least 6 of 10 gaps between the anchor's occurrences are about equal: this tolerates
 *   one odd step (a validation, a longer batch) but excludes coincidence;
 * - neighbouring parts share 6 of 10 allocations after the anchor's first occurrence, and the
 *   shared ones are half of the window: forward layers do not explain the backward pass;
 * - at least 4 of 10 symbols with about the anchor's count are in lockstep with it: they
 *   occur once in nearly every part. Without a loop few symbols are.
 *
 * Three kinds of loops are inside a step. A loop under one line of a model's forward() runs
 * over layers, as does one under a module's call that accumulates its allocations. A loop in
 * an optimizer's step runs over parameters. A fourth, all of whose code builds or moves
 * parameters, runs before the steps. If several nested loops remain, the outermost is
 * taken whose lockstep symbols are not far fewer than the best loop's. So a line that logs
 * every tenth step is not a loop.
 *
 * Steps begin at the anchor: the symbol in lockstep that has the fewest active bytes before it.
 * They begin at the lowest points instead if these are lower and most of them have the same code.
 *
 * Cost: O(allocations) for each of at most 64 candidates.
 */

#include "explain/steps/hints.h"
#include "explain/steps/markers.h"
#include "explain/steps/sequence.h"

#define DRYI_STEPS_MIN 3u /* fewer repetitions do not prove a loop */

struct dryi_rhythm {
    struct dry_memory memory;
    bool is_found;
    bool encloses_models; /* an iteration calls a model, and is not a call of one layer */
    uint16_t inner_hints; /* DRYI_HINT_... of the calls that contain loops inside steps */
    uint32_t anchor;      /* symbol with the best lockstep */
    uint32_t lockstep_count; /* number of symbols in lockstep, including the anchor */
    uint32_t *begins;        /* first allocation of each step, ascending */
    size_t count, capacity;
};

/* Evidence about the code in addition to the sequence. */
struct dryi_rhythm_context {
    const struct dry_timeline *timeline;
    const struct dryi_hints *hints;
    const struct dryi_scopes *optimizer; /* loops inside these scopes are not steps */
};

/* Find the loop. The caller finishes `rhythm`, unless the call fails. */
DRY_CHECK_RESULT enum dry_status dryi_rhythm_find(
    struct dryi_rhythm *rhythm, const struct dryi_sequence *sequence,
    const struct dryi_rhythm_context *context, struct dry_error *err);
void dryi_rhythm_finish(struct dryi_rhythm *rhythm);

#endif
