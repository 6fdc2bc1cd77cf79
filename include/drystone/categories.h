/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_CATEGORIES_H
#define DRY_CATEGORIES_H

/*
 * What an allocation is for: weights, optimizer state, gradients, activations, temporaries,
 * inputs; each with a confidence. Explicit marks come first, then the shape of its life
 * within the steps, and words in its stack only as a last resort.
 *
 *     born                    given back                       it is          confidence
 *     before the first step   never                            weights        85
 *     before the first call   never, in a window of one step   weights        65
 *       of a model
 *     before the window       never                            weights        50, 75 without
 *                                                                             a backward pass
 *     in the first step's     never                            optimizer      85, 95 in a scope
 *       update
 *     in any update           in the next step's               optimizer      75
 *     forward                 backward                         activations    90, 65 at once
 *     backward                update, zero_grad, next step     gradients      90 of a weight's
 *                                                                             size, else 75
 *     in the first backward   never                            gradients      60, 75
 *     anywhere                in the same pass                 temporaries    70 to 95
 *     first in its step       at the step's end                inputs         75
 *
 * Which pass it was is told by Optimizer.step annotations, by autograd's engine and
 * torch.optim in the stacks, or by the engine's thread having no Python stack; where nothing
 * names a pass, by memory's rise to a peak and its return in reverse, for 15 less, and not
 * surely around the peak. An allocation of a doubtful life, cut off by the window's end say,
 * is what three of four others of its stack and size are (70). Without a backward pass, what
 * lives within a step is an activation for 55 or a temporary; what outlives steps, such as a
 * cache of keys and values, stays unknown. So does what later steps leave behind.
 *
 * Weights and optimizer state that are both older than the window look the same: both are
 * called weights, for 50.
 *
 * Ownership  create / destroy; timeline and steps must outlive the categories.
 * Threads    Read by any number at once.
 */

#include <drystone/steps.h>
#include <drystone/timeline.h>

#ifdef __cplusplus
extern "C" {
#endif

struct dry_categories;

enum dry_category {
    DRY_CATEGORY_UNKNOWN,
    DRY_CATEGORY_WEIGHTS,
    DRY_CATEGORY_OPTIMIZER, /* its state */
    DRY_CATEGORY_GRADIENTS,
    DRY_CATEGORY_ACTIVATIONS,
    DRY_CATEGORY_TEMPORARIES,
    DRY_CATEGORY_INPUTS,
};
#define DRY_CATEGORY_COUNT 7
/* "unknown", "weights", "optimizer", "gradients", "activations", "temporaries", "inputs". */
DRY_API const char *dry_category_name(enum dry_category category);

enum dry_category_evidence {
    DRY_EVIDENCE_NONE,
    DRY_EVIDENCE_MARK,  /* user_metadata or a category key says so */
    DRY_EVIDENCE_SCOPE, /* an annotation: born inside Optimizer.step */
    DRY_EVIDENCE_LIFE,  /* the shape of its life */
    DRY_EVIDENCE_WORDS, /* names in its stack */
};
DRY_API const char *dry_category_evidence_name(enum dry_category_evidence evidence);

struct dry_category_guess {
    uint8_t category;   /* enum dry_category */
    uint8_t evidence;   /* enum dry_category_evidence */
    uint8_t confidence; /* percent */
    uint8_t reserved;
};

struct dry_categories_options {
    size_t struct_size; /* set by dry_categories_options_init() */
    const struct dry_memory *memory;
};
DRY_API void dry_categories_options_init(struct dry_categories_options *options);

/*
 * The steps are those of this timeline. O(events + allocations log allocations). Fails with
 * MEMORY.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_categories_create(
    const struct dry_timeline *timeline, const struct dry_steps *steps,
    const struct dry_categories_options *options, struct dry_categories **categories,
    struct dry_error *err);
/* NULL is fine. */
DRY_API void dry_categories_destroy(struct dry_categories *categories);

/* By number of the timeline's allocations, of which there are as many. */
DRY_API const struct dry_category_guess *dry_categories_get(
    const struct dry_categories *categories);

#ifdef __cplusplus
}
#endif

#endif
