/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PAGES_MEASURE_H
#define TOOL_PAGES_MEASURE_H

/* `drystone pages --bench`: what pages and malloc give here. */

#include <stdbool.h>
#include <stdint.h>

#define PAGES_MEASURE_BYTES_MIN (INT64_C(16) << 20)
#define PAGES_MEASURE_BYTES_MAX (INT64_C(32) << 30) /* words are counted in 32 bits */

struct pages_measure {
    uint64_t bytes;
    int64_t rounds;
    const char *only; /* "pages" or "malloc"; NULL: both */
    bool here, json;  /* here: malloc of this process alone */
};

/* Measure, and print it. Returns an exit code. */
int pages_measure_run(const struct pages_measure *wanted);

#endif
