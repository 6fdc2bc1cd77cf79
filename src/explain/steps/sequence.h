/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_EXPLAIN_SEQUENCE_H
#define DRYI_EXPLAIN_SEQUENCE_H

/* The allocations of a window as a sequence of symbols, in order of birth. Equal symbols mean the
   same code (the same stack), or the same code and size. A loop makes the sequence repeat. */

#include <stdbool.h>

#include <drystone/timeline.h>

enum dryi_alphabet {
    DRYI_ALPHABET_STACK,      /* stack: sizes may differ between steps */
    DRYI_ALPHABET_STACK_SIZE, /* stack and requested size; without stacks, size */
    DRYI_ALPHABET_STACK_RUN, /* stack, and whether the allocation before had the same one */
};

struct dryi_sequence {
    struct dry_memory memory;
    uint32_t count;        /* number of allocations born in the window before `until` */
    uint32_t symbol_count; /* symbols are below this number */
    uint32_t used_count;   /* number of symbols that occur */
    uint32_t *symbols;     /* the symbol of each allocation */
    uint32_t *counts;      /* occurrences of each symbol */
    /* Each symbol's first index in `places`: counts[] occurrences, ascending. */
    uint32_t *begins;
    uint32_t *places;
};

/* Build the sequence. Cost: O(allocations + stacks) time, 12 bytes per allocation. */
DRY_CHECK_RESULT enum dry_status dryi_sequence_init(struct dryi_sequence *sequence,
                                                    const struct dry_timeline *timeline,
                                                    enum dryi_alphabet alphabet,
                                                    uint32_t until,
                                                    const struct dry_memory *memory,
                                                    struct dry_error *err);
void dryi_sequence_finish(struct dryi_sequence *sequence);

/*
 * Compare neighbouring parts of the sequence. Part p is begins[p] .. begins[p + 1]; the last part
 * ends with the sequence. Sets shared[p] to the number of symbols, with multiplicity, that parts p
 * and p - 1 share; shared[0] is 0. Returns false if memory ran out. Cost: O(symbols + allocations).
 */
bool dryi_sequence_compare(const struct dryi_sequence *sequence, const uint32_t *begins,
                           uint32_t part_count, uint32_t *shared);

#endif
