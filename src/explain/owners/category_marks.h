/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_CATEGORY_MARKS_H
#define DRYI_EXPLAIN_CATEGORY_MARKS_H

/*
 * Categories stated by the program: user_metadata of an allocation, or of an annotate event
 * for a live block. The text must name only a category: "activations", "category: grad",
 * "optimizer state". "optimizer step 12" does not count: it names a place in the program,
 * which also makes temporaries.
 */

#include <stdbool.h>

#include <drystone/categories.h>

/* Return the category that a text names; UNKNOWN if it names none. */
enum dry_category dryi_category_of_mark(const char *text, size_t length);

/* Set the guesses of allocations that have marks. Returns false if memory
   ran out. Cost: O(events). */
bool dryi_category_read_marks(const struct dry_timeline *timeline,
                              struct dry_category_guess *guesses,
                              const struct dry_memory *memory);

#endif
