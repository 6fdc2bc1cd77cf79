/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_CATEGORY_MARKS_H
#define DRYI_EXPLAIN_CATEGORY_MARKS_H

/*
 * Categories that the program states itself: user_metadata of an allocation, or of an
 * annotate event for a block that is alive. Only a text that says nothing else counts:
 * "activations", "category: grad", "optimizer state"; "optimizer step 12" names a place in
 * the program, in which temporaries are made as well.
 */

#include <stdbool.h>

#include <drystone/categories.h>

/* UNKNOWN: the text is no category's name. */
enum dry_category dryi_category_of_mark(const char *text, size_t length);

/* Write what marks say into the guesses, by allocation. False: no memory. O(events). */
bool dryi_category_read_marks(const struct dry_timeline *timeline,
                              struct dry_category_guess *guesses,
                              const struct dry_memory *memory);

#endif
