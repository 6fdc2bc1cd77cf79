/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TREND_H
#define TOOL_TREND_H

/*
 * The course of a source: its last minute, and when it would reach its limit at this rate.
 *
 * A training step takes memory and gives it back, so two moments tell nothing. The rate is the
 * growth from the highest reserved bytes of the window's older half to those of its younger half.
 */

#include <stdbool.h>
#include <stdint.h>

#define TREND_SAMPLES 120u
#define TREND_WINDOW_NS UINT64_C(60000000000)
#define TREND_LEAST_NS UINT64_C(4000000000) /* a shorter window says nothing */

struct trend_sample {
    uint64_t at_ns, reserved, retries, ooms;
};

/* A ring; a sample that follows the last one within 1/TREND_SAMPLES of the window is merged. */
struct trend {
    struct trend_sample samples[TREND_SAMPLES];
    uint32_t first, count;
};

/* Add a sample, which is not older than the last one. Samples out of the window go. */
void trend_add(struct trend *trend, const struct trend_sample *sample);

struct trend_rates {
    bool is_known;
    double reserved_per_s; /* bytes; below 0: it shrinks */
    double retries_per_min, ooms_per_min;
};
void trend_rates(const struct trend *trend, struct trend_rates *rates);

/* Seconds until `room` more bytes are reserved; negative: never, at this rate. */
double trend_seconds_left(const struct trend_rates *rates, uint64_t room);

#endif
