/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PAGES_MEASURE_H
#define TOOL_PAGES_MEASURE_H

/* `drystone pages --bench`: the performance of pages and malloc on this machine. */

#include <stdbool.h>
#include <stdint.h>

#define PAGES_MEASURE_BYTES_MIN (INT64_C(16) << 20)
/* random loads use 32-bit indices of 8-byte words */
#define PAGES_MEASURE_BYTES_MAX (INT64_C(32) << 30)

struct pages_measure {
    uint64_t bytes;
    int64_t rounds;
    const char *only; /* "pages" or "malloc"; NULL: both */
    bool here, json;  /* here: measure only this process's malloc */
};

/* Run the benchmarks and print the results. Returns an exit code. */
int pages_measure_run(const struct pages_measure *wanted);

#endif
