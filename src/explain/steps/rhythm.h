/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_RHYTHM_H
#define DRYI_EXPLAIN_RHYTHM_H

/*
 * The loop in a sequence of allocations, found without names.
 *
 * Code that runs once a step leaves a symbol that occurs once a step. So every number of
 * occurrences is a candidate for the number of steps. Its most evenly spaced symbol, the
 * anchor, cuts the text into parts, and the parts are held against their neighbours. A
 * candidate is a loop if
 *
 *   - at least 6 of 10 gaps between the anchor's occurrences are about equal, which lets one
 *     odd step pass (a validation, a longer batch) but no accident;
 *   - neighbouring parts share 6 of 10 allocations behind its first occurrence, and these are
 *     half of the window: layers that run forward explain nothing of the backward pass;
 *   - of the symbols that occur about as often, at least 4 of 10 keep time with it: one
 *     occurrence in nearly every part. In a text without a loop few do.
 *
 * A loop that runs all under one line of a model's forward() is one over layers. So is a
 * loop that runs under a module's call and piles up what it allocates. A loop inside an
 * optimizer's step is one over parameters. None of them is one over steps. If nested
 * loops pass, the outermost is taken that has not far fewer symbols keeping time than the
 * best. A line that logs every tenth step is no loop of its own.
 *
 * Steps begin at the symbol that comes once a step before which least is in use. They
 * begin at the lowest points instead if less is in use there, and the same code stands at
 * the lowest point of most steps.
 *
 * Cost: O(allocations) for each of at most 64 candidates.
 */

#include "explain/steps/hints.h"
#include "explain/steps/markers.h"
#include "explain/steps/sequence.h"

#define DRYI_STEPS_MIN 3u /* fewer repetitions prove no loop */

struct dryi_rhythm {
    struct dry_memory memory;
    bool is_found;
    uint16_t inner_hints;    /* of the calls in which loops run that are none of steps */
    uint32_t anchor;         /* symbol that keeps time best */
    uint32_t lockstep_count; /* symbols that keep time with it, with itself */
    uint32_t *begins;        /* the allocations that begin steps, ascending */
    size_t count, capacity;
};

/* The facts that are known of the code beside its stacks. */
struct dryi_rhythm_context {
    const struct dry_timeline *timeline;
    const struct dryi_hints *hints;
    const struct dryi_scopes *optimizer; /* a loop inside of one is none of steps */
};

/* `rhythm` is the caller's to finish, unless this fails. */
DRY_CHECK_RESULT enum dry_status dryi_rhythm_find(
    struct dryi_rhythm *rhythm, const struct dryi_sequence *sequence,
    const struct dryi_rhythm_context *context, struct dry_error *err);
void dryi_rhythm_finish(struct dryi_rhythm *rhythm);

#endif
