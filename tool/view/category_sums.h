/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_CATEGORY_SUMS_H
#define TOOL_CATEGORY_SUMS_H

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

#define CATEGORY_SUMS_MAX 16 /* at least DRY_CATEGORY_COUNT */

struct category_sums {
    const struct dry_timeline_view *v;
    const struct dry_category_guess *guesses;
    uint32_t birth_count; /* allocations that begin within the file */
    uint32_t end_count;   /* allocations that end within the file */
    uint32_t *by_end;     /* their indices, sorted by end */
    uint64_t carried[CATEGORY_SUMS_MAX];
    uint64_t *born, *ended; /* prefix sums: a row before each 256th allocation */
};

/* Build the sums in O(allocations log allocations). False: memory ran out. Call
   category_sums_finish() in any case. */
bool category_sums_init(struct category_sums *category_sums,
                        const struct dry_timeline_view *v,
                        const struct dry_category_guess *guesses);
void category_sums_finish(struct category_sums *category_sums);

/* Write the active bytes by category at `moment`. */
void category_sums_at(const struct category_sums *category_sums, uint32_t moment,
                      uint64_t bytes[CATEGORY_SUMS_MAX]);

#endif
