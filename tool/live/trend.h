/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TREND_H
#define TOOL_TREND_H

/*
 * The last minute of a source, and when the source would reach its limit at the current
 * rate.
 *
 * A training step takes memory and returns it, so two samples tell nothing. The rate is
 * the growth from the peak of the window's older half to the peak of its younger half.
 */

#include <stdbool.h>
#include <stdint.h>

#define TREND_SAMPLES 120u
#define TREND_WINDOW_NS UINT64_C(60000000000)
#define TREND_LEAST_NS UINT64_C(4000000000) /* shorter windows have no rate */

struct trend_sample {
    uint64_t at_ns, reserved, retries, ooms;
};

/* A ring buffer. Samples closer than 1/TREND_SAMPLES of the window are merged. */
struct trend {
    struct trend_sample samples[TREND_SAMPLES];
    uint32_t first, count;
};

/* Add a sample and drop those outside the window. Requires that times do not decrease. */
void trend_add(struct trend *trend, const struct trend_sample *sample);

struct trend_rates {
    bool is_known;
    double reserved_per_s; /* bytes per second; negative: shrinking */
    double retries_per_min, ooms_per_min;
};
void trend_rates(const struct trend *trend, struct trend_rates *rates);

/* Return the seconds until `left_bytes` more bytes are reserved; negative: never. */
double trend_seconds_left(const struct trend_rates *rates, uint64_t left_bytes);

#endif
