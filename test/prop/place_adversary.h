/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_PLACE_ADVERSARY_H
#define TEST_PLACE_ADVERSARY_H

/*
 * Programs made to hurt an allocator: each defeats some way of finding a place.
 *
 * An adversary is told the address of what it got and may choose by it, as Robson's adversary
 * does. It keeps no more than about `live_bytes` alive and makes about `requests` requests;
 * the same numbers and addresses make the same program. The tests ask what an adversary can
 * do to memory and soundness, bench what it costs.
 */

#include <stddef.h>
#include <stdint.h>

enum adversary {
    ADVERSARY_ROBSON,        /* doubled sizes, one survivor where each would have lain */
    ADVERSARY_BEST_FIT,      /* every hole is left with a sliver nobody wants */
    ADVERSARY_FIRST_FIT,     /* low addresses are full of holes a little too small */
    ADVERSARY_SIZE_PLUS_ONE, /* what returns is a little larger every time */
    ADVERSARY_SURVIVORS,     /* one small block is left on every page */
    ADVERSARY_NO_FIT,        /* thousands of free blocks of the class, none fits */
    ADVERSARY_SAWTOOTH,     /* up to the top and down to nothing, other sizes each time */
    ADVERSARY_RECORD_STORM, /* every block is used by every stream */
    ADVERSARY_STREAMS,      /* every few requests come from a stream never seen before */
};
#define ADVERSARY_COUNT 9

const char *adversary_name(enum adversary adversary);

/* The target of an adversary. Ids are below `requests`, and are given again after their free. */
struct adversary_target {
    /* The address, or 0: there was no room. */
    uint64_t (*alloc)(void *self, uint32_t id, uint64_t size, uint64_t stream);
    void (*free)(void *self, uint32_t id);
    /* Another stream, which has waited for the block's own, uses it too. */
    void (*record_stream)(void *self, uint32_t id, uint64_t stream);
    void (*complete_stream)(void *self, uint64_t stream);
    void *self;
};

/* All it took is given back at the end. */
void adversary_run(enum adversary adversary, uint64_t live_bytes, uint32_t requests,
                   const struct adversary_target *target);

#endif
