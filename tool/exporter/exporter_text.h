/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORTER_TEXT_H
#define TOOL_EXPORTER_TEXT_H

/*
 * A watch as text for Prometheus.
 *
 * The families are those of doc/design/live.md. A figure that nobody knows has no sample: an
 * absent series is not 0. The text is Prometheus' own, 0.0.4, or that of OpenMetrics 1.0, which
 * differs in the heads of counters, in units and in its end.
 */

#include <stddef.h>
#include <stdint.h>

#include "exporter/exporter_rows.h"

enum exporter_format {
    EXPORTER_PROMETHEUS,
    EXPORTER_OPENMETRICS,
};

/* The exporter's own counts. Programs that ended between two scrapes are in here only. */
struct exporter_counts {
    uint64_t looks;
    uint64_t ended_programs, ended_retries, ended_ooms;
    double look_seconds; /* that the last look took */
};

/*
 * Write all of a watch; *length is that of the text, which is the caller's to free. NULL: there
 * is no memory.
 */
char *exporter_write(const struct watch *watch, const struct exporter_bounds *bounds,
                     const struct exporter_counts *counts, enum exporter_format format,
                     size_t *length);

#endif
