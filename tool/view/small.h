/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_SMALL_H
#define TOOL_SMALL_H

/*
 * Active bytes by category at any moment. Allocations too small to be drawn one by one
 * are drawn as one band per category.
 *
 * The timeline has allocations in order of their births; ends are sorted once. Prefix
 * sums are kept at every 256th of each, so a moment costs two binary searches and at most
 * 512 additions.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/categories.h>
#include <drystone/timeline.h>

#define SMALL_CATEGORIES 16 /* at least DRY_CATEGORY_COUNT */

struct small {
    const struct dry_timeline_view *v;
    const struct dry_category_guess *guesses;
    uint32_t birth_count; /* allocations that begin within the file */
    uint32_t end_count;   /* allocations that end within the file */
    uint32_t *by_end;     /* their indices, sorted by end */
    uint64_t carried[SMALL_CATEGORIES];
    uint64_t *born, *ended; /* prefix sums: a row before each 256th allocation */
};

/* Build the sums in O(allocations log allocations). False: memory ran out. Call
   small_finish() in any case. */
bool small_init(struct small *small, const struct dry_timeline_view *v,
                const struct dry_category_guess *guesses);
void small_finish(struct small *small);

/* Write the active bytes by category at `moment`. */
void small_sum(const struct small *small, uint32_t moment,
               uint64_t bytes[SMALL_CATEGORIES]);

#endif
