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

static inline uint64_t
dryi_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t
dryi_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* dryi_min() at half the width: loops over tables of such numbers run faster. */
static inline uint32_t
dryi_min32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static inline uint32_t
dryi_max32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* floor(log2 x); x must not be 0. */
static inline unsigned
dryi_log2_floor(uint64_t x)
{
    /* compilers turn 63 ^ clz into one BSR on x86-64 */
    return 63u ^ (unsigned)__builtin_clzll(x);
}

/* Round x up to a multiple of `step` (> 0). Requires that x + step - 1 does not overflow. */
static inline uint64_t
dryi_round_up(uint64_t x, uint64_t step)
{
    return (x + step - 1) / step * step;
}

/* Round x up to a multiple of `step` (> 0). False: that is above 64 bits. */
static inline bool
dryi_round_up_checked(uint64_t x, uint64_t step, uint64_t *rounded)
{
    uint64_t count = x / step + (x % step != 0);
    return !__builtin_mul_overflow(count, step, rounded);
}

static inline uint64_t
dryi_round_down(uint64_t x, uint64_t step)
{
    return x / step * step;
}

/* Add; return UINT64_MAX if the sum overflows. */
static inline uint64_t
dryi_add_saturating(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Return a - b, bounded to what int64_t holds. */
static inline int64_t
dryi_difference(uint64_t a, uint64_t b)
{
    uint64_t size = a > b ? a - b : b - a;
    int64_t bounded = size < INT64_MAX ? (int64_t)size : INT64_MAX;
    return a > b ? bounded : -bounded;
}

/* Return the greatest common divisor by Euclid's algorithm. With one argument 0 it is the other. */
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

/* Mix 64 bits with the finaliser of splitmix64 (Steele, Lea, Flood, OOPSLA 2014). One-to-one. */
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
 * Hash x to a number below 2^bits, for bits of 1 to 63. The high bits of the product depend on all
 * bits of x (Knuth, The Art of Computer Programming 3, 6.4: Fibonacci hashing). Not seeded: only
 * for keys that no input can choose.
 */
static inline uint64_t
dryi_spread(uint64_t x, unsigned bits)
{
    return x * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits);
}

/*
 * Return a seed that the author of an input file cannot predict: the mixed address of an object, if
 * the loader randomises addresses. Hash keys and tree priorities are mixed with the seed, so that
 * no file can force the worst case. Results never depend on the seed.
 */
static inline uint64_t
dryi_seed_make(const void *object)
{
    return dryi_mix64((uint64_t)(uintptr_t)object);
}

#endif
