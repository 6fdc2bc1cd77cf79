/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_SEQUENCE_H
#define DRYI_EXPLAIN_SEQUENCE_H

/*
 * The allocations of a window as a text: one symbol each, in order of birth. Equal
 * symbols are allocations of the same code (the same stack), or of the same code and
 * size. The text repeats if a loop runs.
 */

#include <stdbool.h>

#include <drystone/timeline.h>

enum dryi_alphabet {
    DRYI_ALPHABET_STACK,      /* by stack: sizes may vary from step to step */
    DRYI_ALPHABET_STACK_SIZE, /* by stack and requested size; without stacks, by size */
};

struct dryi_sequence {
    struct dry_memory memory;
    uint32_t count;        /* of allocations born in the window before `until` */
    uint32_t symbol_count; /* symbols are below this */
    uint32_t used_count;   /* so many of them occur */
    uint32_t *symbols;     /* by allocation */
    uint32_t *counts;      /* by symbol: how often it occurs */
    /* The places of each symbol: begin .. begin + counts in `places`, ascending. */
    uint32_t *begins;
    uint32_t *places;
};

/* O(allocations + stacks); 12 bytes an allocation. */
DRY_CHECK_RESULT enum dry_status dryi_sequence_init(struct dryi_sequence *sequence,
                                                    const struct dry_timeline *timeline,
                                                    enum dryi_alphabet alphabet,
                                                    uint32_t until,
                                                    const struct dry_memory *memory,
                                                    struct dry_error *err);
void dryi_sequence_finish(struct dryi_sequence *sequence);

/*
 * Compare neighbouring parts of the text. A part is begins[p] .. begins[p + 1]; the last
 * ends with the text. Sets shared[p] to the number of symbols, each as often as it is in
 * both, that part p shares with part p - 1; shared[0] is 0. False: no memory. O(symbols +
 * text).
 */
bool dryi_sequence_compare(const struct dryi_sequence *sequence, const uint32_t *begins,
                           uint32_t part_count, uint32_t *shared);

#endif
