/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORTER_TEXT_H
#define TOOL_EXPORTER_TEXT_H

/*
 * A watch as text for Prometheus.
 *
 * doc/design/live.md lists the metric families. An unknown figure has no sample, because
 * an absent series differs from 0. The format is Prometheus text 0.0.4 or OpenMetrics
 * 1.0. They differ in the heads of counters, in units and in the end of the text.
 */

#include <stddef.h>
#include <stdint.h>

#include "exporter/exporter_rows.h"

enum exporter_format {
    EXPORTER_PROMETHEUS,
    EXPORTER_OPENMETRICS,
};

/* The exporter's own counts, with programs that ended between two scrapes. */
struct exporter_counts {
    uint64_t samples;
    uint64_t ended_programs, ended_retries, ended_ooms;
    double sample_seconds; /* duration of the last sample */
};

/* Write the metrics of a watch; *length is the text's length. The caller frees the text.
   NULL: memory ran out. */
char *exporter_write(const struct watch *watch, const struct exporter_bounds *bounds,
                     const struct exporter_counts *counts, enum exporter_format format,
                     size_t *length);

#endif
