/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_PLACE_PAGED_PERIOD_H
#define DRYI_PLACE_PAGED_PERIOD_H

/* What a place keeps of the period that the forecast knows: its layout, and the job that packs one. */

#include "place/forecast/forecast.h"

#define LEVEL_COUNT 6u /* of 64 each: 2^36 pages */

/*
 * The segment a layout lies in, and by page the block that begins last in it, with bits that lead
 * to the nearest page below where one does: so the block at an address is found at once.
 */
struct layout {
    uint32_t segment; /* NONE: there is no layout */
    uint32_t *begins;
    size_t page_count;
    uint64_t *bits;  /* of all levels */
    uint32_t period; /* requests */
    uint32_t streams;
    uint32_t handed; /* places that go from stream to stream, a period */
    uint32_t waits;  /* put in since that request */
    uint64_t waits_since;
    size_t bit_words, levels[LEVEL_COUNT];
    uint32_t *parked;       /* by step: the block that waits for it, NONE */
    uint64_t *parked_steps; /* a bit each: there is one */
    uint32_t step_count, parked_count;
};

/* A layout on its way. */
struct packing {
    struct dryi_packing_job *job;
    enum { JOB_NONE, JOB_WAITS, JOB_OUT, JOB_IS_BACK } state;
    uint32_t segment, ordinal;
};

#endif
