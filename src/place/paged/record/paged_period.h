/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_PERIOD_H
#define DRYI_PLACE_PAGED_PERIOD_H

/* The current period of the forecast: its layout, and the job that packs a layout. */

#include "place/forecast/forecast.h"

/* Each level summarizes 64 bits of the last: enough for 2^36 pages. */
#define LEVEL_COUNT 6u

/*
 * The segment that a layout occupies. `begins` has, per page, the last block that begins in the
 * page. A hierarchy of bitmaps finds the nearest page below that has one. So the block at an
 * address is found in constant time.
 */
struct layout {
    uint32_t segment; /* NONE: no layout */
    uint32_t *begins;
    size_t page_count;
    uint64_t *bits;  /* bitmaps of all levels */
    uint32_t period; /* requests per period */
    uint32_t streams;
    bool is_settled; /* The pages that the layout leaves over were released */
    uint32_t handed; /* ranges that pass from stream to stream in a period */
    uint32_t waits;  /* waits inserted since the request `waits_since` */
    uint64_t waits_since;
    size_t bit_words, levels[LEVEL_COUNT];
    uint32_t *parked;       /* the block parked for each step, or NONE */
    uint64_t *parked_steps; /* bitmap of the steps that have a parked block */
    uint32_t step_count, parked_count;
};

/* The layout that is being packed. */
struct packing {
    struct dryi_packing_job *job;
    enum { JOB_NONE, JOB_WAITS, JOB_OUT, JOB_IS_BACK } state;
    uint32_t segment, ordinal;
};

#endif
