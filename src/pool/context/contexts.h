/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_CONTEXTS_H
#define DRYI_CONTEXTS_H

/*
 * Reference counts of contexts, so that the program learns when a context is no longer used.
 *
 * A context is a number that the program assigned to a stack. Holders are entries of the history,
 * blocks, segments, copies of a pool, and requests in progress. If the program gives a number
 * several times, each time needs its own release. Without a release function nothing is counted.
 *
 * Data structure: a map from numbers to records with two counts; unused records are recycled. Cost:
 * one map look-up per hold and drop.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>

#include "base/map.h"

struct dryi_context {
    uint32_t number;
    uint32_t given;   /* times the program gave it */
    uint64_t holders; /* an unused record has the index of the next one, plus 1 */
};

struct dryi_contexts {
    struct dry_memory memory;
    void (*release)(void *self, uint32_t number); /* NULL: nothing is counted */
    void *release_self;
    struct dryi_map index; /* number -> index in `records` */
    struct dryi_context *records;
    size_t capacity;
    /* Unused: index of the first unused record, plus 1; 0: none. */
    uint32_t count, unused;
};

void dryi_contexts_init(struct dryi_contexts *c, const struct dry_memory *memory,
                        void (*release)(void *self, uint32_t number), void *release_self);
/* Release each number as often as the program gave it, even if it has holders. */
void dryi_contexts_finish(struct dryi_contexts *c);

/*
 * Count a number that the program just gave, with the request as holder. False: out of memory, and
 * the number has no holder. Requires a number other than DRY_NONE.
 */
bool dryi_contexts_give(struct dryi_contexts *c, uint32_t number);
/* Add a holder. False: the number has none, so may be released. DRY_NONE is accepted. */
bool dryi_contexts_hold(struct dryi_contexts *c, uint32_t number);
/* Remove a holder, and release the number with the last one. DRY_NONE is accepted. */
void dryi_contexts_drop(struct dryi_contexts *c, uint32_t number);

#endif
