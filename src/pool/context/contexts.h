/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_CONTEXTS_H
#define DRYI_CONTEXTS_H

/*
 * Counts who holds a context, so that the program learns when the last holder has gone.
 *
 * A context is the number that the program gave a stack. A holder is an entry of the history, a
 * block, a segment, a copy of a pool, or the request that was asked about. The program may give a
 * number several times; each time has its own release. Without a release nothing is counted.
 *
 * Idea: a map from the number to a record with two counts. Records without holders are used again.
 * Cost: a probe of the map for each hold and drop.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/memory.h>

#include "base/map.h"

struct dryi_context {
    uint32_t number;
    uint32_t given;   /* so often by the program */
    uint64_t holders; /* of an unused record: the next unused one, counted from 1 */
};

struct dryi_contexts {
    struct dry_memory memory;
    void (*release)(void *self, uint32_t number); /* NULL: nothing is counted */
    void *release_self;
    struct dryi_map index; /* number -> index in records */
    struct dryi_context *records;
    size_t capacity;
    uint32_t count, unused; /* unused: the first such record, counted from 1; 0: none */
};

void dryi_contexts_init(struct dryi_contexts *c, const struct dry_memory *memory,
                        void (*release)(void *self, uint32_t number), void *release_self);
/* Release every number as often as the program gave it, whoever holds it. */
void dryi_contexts_finish(struct dryi_contexts *c);

/*
 * Take a number that the program gives now, with one holder: the request. False: the host has no
 * memory to count it; the number is then not held. Requires a number other than DRY_NONE.
 */
bool dryi_contexts_give(struct dryi_contexts *c, uint32_t number);
/*
 * Add a holder. False: nobody holds the number, so the program may have forgotten it. DRY_NONE is
 * accepted.
 */
bool dryi_contexts_hold(struct dryi_contexts *c, uint32_t number);
/* Remove a holder; the last one's number is released. DRY_NONE is accepted. */
void dryi_contexts_drop(struct dryi_contexts *c, uint32_t number);

#endif
