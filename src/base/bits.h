/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_BITS_H
#define DRYI_BITS_H

#include <stdbool.h>
#include <stdint.h>

#define DRYI_KIB (UINT64_C(1) << 10)
#define DRYI_MIB (UINT64_C(1) << 20)
#define DRYI_GIB (UINT64_C(1) << 30)

static inline bool
dryi_is_power_of_two(uint64_t x)
{
    return x != 0 && (x & (x - 1)) == 0;
}

/* floor(log2 x); x must not be 0. */
static inline unsigned
dryi_log2_floor(uint64_t x)
{
    return 63u ^ (unsigned)__builtin_clzll(x); /* one instruction, where one does it */
}

/* Up to the next multiple of `step` (> 0). The caller knows that the sum fits. */
static inline uint64_t
dryi_round_up(uint64_t x, uint64_t step)
{
    return (x + step - 1) / step * step;
}

static inline uint64_t
dryi_round_down(uint64_t x, uint64_t step)
{
    return x / step * step;
}

/* a + b, UINT64_MAX if that is more. */
static inline uint64_t
dryi_add_saturating(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* The greatest that divides both; of 0 and b: b. */
static inline uint64_t
dryi_common_divisor(uint64_t a, uint64_t b)
{
    while (b) {
        uint64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* A good 64-bit mix (the finaliser of splitmix64, Steele, Lea, Flood, OOPSLA 2014). */
static inline uint64_t
dryi_mix64(uint64_t x)
{
    x ^= x >> 30;
    x *= UINT64_C(0xbf58476d1ce4e5b9);
    x ^= x >> 27;
    x *= UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/*
 * A number below 2^bits, 1 to 63: the high bits of a product depend on all bits of x (Knuth, The
 * Art of Computer Programming 3, 6.4: Fibonacci hashing). For what nobody can choose to collide.
 */
static inline uint64_t
dryi_spread(uint64_t x, unsigned bits)
{
    return x * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits);
}

/*
 * A number that the maker of a file cannot know: the address of an object, if the loader
 * randomises addresses. Keys of hash tables and priorities of trees are mixed with it, so that no
 * file can be made to degrade them. Results never depend on it.
 */
static inline uint64_t
dryi_seed_of(const void *object)
{
    return dryi_mix64((uint64_t)(uintptr_t)object);
}

#endif
