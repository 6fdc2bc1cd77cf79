/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_CATEGORIES_H
#define DRY_CATEGORIES_H

/*
 * Say what an allocation is for: weights, optimizer state, gradients, activations,
 * temporaries, inputs or a cache of keys and values, each with a confidence.
 *
 *     struct dry_categories *categories;
 *     if (dry_categories_create(timeline, steps, NULL, &categories, &err) != DRY_OK) ...
 *     const struct dry_category_guess *guesses = dry_categories_get(categories);
 *     for (uint32_t i = 0; i < view->allocation_count; i++)
 *         use(&view->allocations[i], guesses[i].category, guesses[i].confidence);
 *     dry_categories_destroy(categories);
 *
 * Explicit marks come first, then the shape of an allocation's life within the steps.
 * Words in its stack decide only as a last resort. A life's shape is read like this
 * (confidence in percent):
 *
 *     born                    given back                       it is          confidence
 *     before the first step   never                            weights        85
 *     before the first call   never, in a window of one step   weights        65
 *       of a model
 *     before the window       never, though a backward pass    weights        50
 *                             has ended
 *     in the first step's     never                            optimizer      85, 95 in a scope
 *       update
 *     in any scope's update   never                            optimizer      95
 *     in any update           in the next step's               optimizer      75
 *     forward                 backward                         activations    90, 65 at once
 *     forward                 with many others at once         activations    80
 *     backward                update, zero_grad, next step     gradients      90 of a weight's
 *                                                                             size, else 75
 *     in the first backward   never                            gradients      60, 75
 *     in any backward         after the next step, of a        gradients      75
 *                             weight's size
 *     anywhere                in the same pass                 temporaries    70 to 95
 *     first in its step       at the step's end                inputs         75
 *     in a step, no training  when the same code made a        kv-cache       70
 *                             larger one in the next step
 *
 * "At once" is a life of at most 8 further allocations.
 *
 * The pass (forward, backward, update) is recognized by Optimizer.step annotations or by
 * names in the stacks: autograd's engine, torch.optim. A missing Python stack also marks
 * the engine's thread. If no name marks a pass, it is inferred from the curve: memory
 * rises to a peak in the forward and falls in reverse in the backward. An annotation of
 * Optimizer.step proves a backward pass, and tells where it ends. The confidence is
 * lower by 15 without names, and the pass is uncertain near the peak.
 *
 * A life is doubtful if, for example, the window's end cuts it off. Its allocation then
 * gets the category that three of four other allocations of its stack and size have, at
 * 70. Empty stacks are no code, so they do not count; nor do temporaries that lived shorter
 * than what lives still.
 * What is freed after the last allocation was freed by the program's end: it stayed.
 * Without a backward pass, an allocation that lives within a step is an activation at 55,
 * or a temporary. An allocation that outlives steps stays unknown in this case, if it is no
 * cache. So is every one that no later step frees.
 *
 * Allocations older than the window and never freed may be weights, optimizer state,
 * caches, or activations of a pass that had begun. Only names in a stack tell these
 * apart, at 80: __init__ and load_weights make weights, kv_cache makes a cache of keys
 * and values. Without names they stay unknown, and so do those in a private pool. The
 * exception: once a backward pass has ended in the window, it has freed the older
 * activations. The rest are weights and optimizer state. A step makes one gradient for each
 * weight: so many blocks of its size are weights, those that lie closest together, and the
 * others optimizer state, both at 50. Sizes without gradients are called weights.
 *
 * Ownership  create / destroy; timeline and steps must outlive the categories.
 * Errors     An allocation without evidence is no error: its category is UNKNOWN.
 * Threads    Any number may read at once.
 * Units      Confidences in percent.
 * Cost       All of it is in dry_categories_create(); reading is O(1).
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
    DRY_CATEGORY_OPTIMIZER, /* the optimizer's state */
    DRY_CATEGORY_GRADIENTS,
    DRY_CATEGORY_ACTIVATIONS,
    DRY_CATEGORY_TEMPORARIES,
    DRY_CATEGORY_INPUTS,
    DRY_CATEGORY_KV_CACHE, /* keys and values of attention, kept from step to step */
};
#define DRY_CATEGORY_COUNT 8
/* Return the name: "unknown", "weights", "optimizer", "gradients", "activations",
   "temporaries", "inputs", "kv-cache". */
DRY_API const char *dry_category_name(enum dry_category category);

enum dry_category_evidence {
    DRY_EVIDENCE_NONE,
    DRY_EVIDENCE_MARK,  /* user_metadata or a category key states it */
    DRY_EVIDENCE_SCOPE, /* an annotation: allocated inside Optimizer.step */
    DRY_EVIDENCE_LIFE,  /* the shape of its life */
    DRY_EVIDENCE_NAMES, /* names in its stack */
};
/* Return the name of an evidence. */
DRY_API const char *dry_category_evidence_name(enum dry_category_evidence evidence);

/* The pass of a training step. The numbers never change; new ones are appended. */
enum dry_pass {
    DRY_PASS_UNKNOWN, /* before the window, or a program without a backward pass */
    DRY_PASS_FORWARD,
    DRY_PASS_BACKWARD,
    DRY_PASS_UPDATE, /* the optimizer's */
};
#define DRY_PASS_COUNT 4
/* Return the name: "unknown", "forward", "backward", "update". */
DRY_API const char *dry_pass_name(enum dry_pass pass);

struct dry_category_guess {
    uint8_t category;   /* enum dry_category */
    uint8_t evidence;   /* enum dry_category_evidence */
    uint8_t confidence; /* percent */
    uint8_t pass;       /* enum dry_pass: the pass that allocated it */
};

struct dry_categories_options {
    size_t struct_size; /* set by dry_categories_options_init() */
    const struct dry_memory *memory;
};
/* Set all options to their defaults. */
DRY_API void dry_categories_options_init_sized(struct dry_categories_options *options,
                                               size_t struct_size);
#define dry_categories_options_init(options)                                             \
    dry_categories_options_init_sized(options, sizeof *(options))

/*
 * Guess the category of every allocation of `timeline`. `steps` must be those of this
 * timeline. The result is *categories. O(events + allocations log allocations). Errors:
 * MEMORY.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_categories_create(
    const struct dry_timeline *timeline, const struct dry_steps *steps,
    const struct dry_categories_options *options, struct dry_categories **categories,
    struct dry_error *err);
/* End the categories. NULL is fine. */
DRY_API void dry_categories_destroy(struct dry_categories *categories);

/*
 * Return the guesses, one for each of the timeline's allocations, in the order of their
 * numbers.
 */
DRY_API const struct dry_category_guess *dry_categories_get(
    const struct dry_categories *categories);

#ifdef __cplusplus
}
#endif

#endif
