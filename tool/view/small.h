/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SMALL_H
#define TOOL_SMALL_H

/*
 * Active bytes by category at any moment: the allocations that are too small to be drawn one
 * by one are drawn as bands of their category.
 *
 * Births come in order in the timeline; ends are sorted once. Prefix sums stand at every 256th
 * of each, so a moment costs two binary searches and 512 additions at most.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/categories.h>
#include <drystone/timeline.h>

#define SMALL_CATEGORIES 16 /* room for more than there are */

struct small {
    const struct dry_timeline_view *v;
    const struct dry_category_guess *guesses;
    uint32_t birth_count; /* allocations that are not carried over */
    uint32_t end_count;   /* allocations that end before the file does */
    uint32_t *by_end;     /* their numbers, by end */
    uint64_t carried[SMALL_CATEGORIES];
    uint64_t *born, *ended; /* SMALL_CATEGORIES a row, before each 256th */
};

/* O(allocations log allocations). False: no memory. small_finish() is due in any case. */
bool small_init(struct small *small, const struct dry_timeline_view *v,
                const struct dry_category_guess *guesses);
void small_finish(struct small *small);

/* Write the active bytes of each category at `moment` to `bytes`. */
void small_sum(const struct small *small, uint32_t moment,
               uint64_t bytes[SMALL_CATEGORIES]);

#endif
