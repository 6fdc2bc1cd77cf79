/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_PERIOD_H
#define DRYI_PLACE_PAGED_PERIOD_H

/* The period that the forecast has found: its layout, and the job that packs a layout. */

#include "place/forecast/forecast.h"

#define LEVEL_COUNT 6u /* each level is 64 times as coarse as the last: 2^36 pages */

/*
 * The segment that a layout lies in. `begins` has, by page, the block that begins last in the page.
 * Bits lead to the nearest page below in which a block begins: so the block at an address is found
 * at once.
 */
struct layout {
    uint32_t segment; /* NONE: there is no layout */
    uint32_t *begins;
    size_t page_count;
    uint64_t *bits;  /* of all levels */
    uint32_t period; /* requests */
    uint32_t streams;
    bool is_settled; /* the pages that it leaves over were released */
    uint32_t handed; /* ranges that go from stream to stream in a period */
    uint32_t waits;  /* put in since the request `waits_since` */
    uint64_t waits_since;
    size_t bit_words, levels[LEVEL_COUNT];
    uint32_t *parked; /* by step: the block that is parked for the step; NONE: none is */
    uint64_t *parked_steps; /* by step, a bit: a block is parked for the step */
    uint32_t step_count, parked_count;
};

/* A layout that is being packed. */
struct packing {
    struct dryi_packing_job *job;
    enum { JOB_NONE, JOB_WAITS, JOB_OUT, JOB_IS_BACK } state;
    uint32_t segment, ordinal;
};

#endif
