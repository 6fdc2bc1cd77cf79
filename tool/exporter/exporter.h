/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORTER_H
#define TOOL_EXPORTER_H

/*
 * A watch that samples on request, but at most every EXPORTER_FRESH_S seconds for all
 * clients together. Without requests, it samples every EXPORTER_IDLE_S seconds: trends need
 * samples, and programs that end must be counted.
 */

#include "exporter/exporter_text.h"

#define EXPORTER_FRESH_S 0.5
#define EXPORTER_IDLE_S 5.0

struct exporter {
    struct watch *watch;
    struct exporter_bounds bounds;
    struct exporter_counts counts;
    double sampled_s; /* time of the last sample, CLOCK_MONOTONIC */
};

struct exporter_options {
    struct watch_options watch;
    struct exporter_bounds bounds;
};

/* Create the watch. False: memory ran out. Call exporter_finish() in any case. */
bool exporter_init(struct exporter *exporter, const struct exporter_options *options);
void exporter_finish(struct exporter *exporter);

/* Take a sample if the last one is older than `age_s` seconds. Returns true if it did. */
bool exporter_sample(struct exporter *exporter, double age_s);

#endif
