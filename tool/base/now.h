/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_NOW_H
#define TOOL_NOW_H

#include <stdint.h>
#include <time.h>

/* Return a clock's time in nanoseconds; CLOCK_MONOTONIC counts from the machine's start. */
static inline uint64_t
now_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

#endif
