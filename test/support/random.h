/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_RANDOM_H
#define TEST_RANDOM_H

/* Numbers that a seed decides, the same on every machine (splitmix64). */

#include <stdint.h>

struct random {
    uint64_t state;
};

static inline void
random_init(struct random *r, uint64_t seed)
{
    r->state = seed;
}

static inline uint64_t
random_next(struct random *r)
{
    uint64_t x = r->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Return a number of 0 .. limit - 1. Requires limit > 0. */
static inline uint64_t
random_below(struct random *r, uint64_t limit)
{
    return random_next(r) % limit;
}

#endif
