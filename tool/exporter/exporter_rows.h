/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORTER_ROWS_H
#define TOOL_EXPORTER_ROWS_H

/*
 * The exported part of a watch: rows with unique labels, chosen once for all metric
 * families. A database keeps a series per row, so the number of rows is bounded.
 *
 * The largest processes are exported; each has rows for its pages' sources and, on
 * request, their lanes. Host memory has no lanes. A row whose labels repeat another row's
 * is dropped, because the database would reject both.
 */

#include <stdbool.h>
#include <stddef.h>

#include "live/watch.h"

struct exporter_bounds {
    size_t processes; /* maximum processes */
    size_t lanes;     /* maximum lanes per source, others are summed; 0: no lanes */
};

struct exporter_row {
    const char *labels;                /* `process="1",name="..."`, without braces */
    size_t labels_at;                  /* offset of the labels in `text` */
    const struct watch_source *source; /* for rows of sources and of pinned */
    const struct watch_device *device; /* for rows of devices */
    struct dry_live_lane lane;         /* for rows of lanes */
    uint64_t bytes;                    /* for rows of uses */
};

struct exporter_table {
    struct exporter_row *rows;
    size_t count, capacity;
};

struct exporter_rows {
    /* sources of devices and of the host; one row of `devices` per device */
    struct exporter_table sources, pinned, lanes, uses, devices;
    /* pages read; pages that cannot be used */
    size_t pages, refused;
    size_t processes_left_out, sources_left_out;
    char *text; /* the labels of all rows */
};

/* Choose the rows. False: memory ran out. Call exporter_rows_finish() in any case. */
bool exporter_rows_choose(struct exporter_rows *rows, const struct watch *watch,
                          const struct exporter_bounds *bounds);
void exporter_rows_finish(struct exporter_rows *rows);

#endif
