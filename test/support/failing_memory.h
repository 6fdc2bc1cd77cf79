/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_FAILING_MEMORY_H
#define TEST_FAILING_MEMORY_H

/*
 * A dry_memory whose n-th request fails, and that counts what was not given back. The
 * whole pattern of a torture test:
 *
 *     for (size_t n = 0;; n++) {
 *         struct failing_memory fm;
 *         struct dry_memory memory = failing_memory_init(&fm, n);
 *         status = ...(&memory...);
 *         failing_memory_finish(&fm);            asserts that everything came back
 *         if (!fm.failed) break;                 n is past the last request
 *         assert_int_equal(status, DRY_ERR_MEMORY);
 *     }
 */

#include <stdbool.h>
#include <stddef.h>

#include <drystone/memory.h>

struct failing_memory {
    size_t left;       /* requests that still succeed */
    size_t live_bytes; /* taken and not given back */
    size_t peak_bytes;
    size_t requests;
    bool failed; /* one request was refused */
};

/*
 * Begin. An `n` of SIZE_MAX never fails and only counts. Shrinking and freeing never
 * fail.
 */
struct dry_memory failing_memory_init(struct failing_memory *fm, size_t n);
void failing_memory_finish(struct failing_memory *fm);

#endif
