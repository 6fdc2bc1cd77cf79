/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORTER_ROWS_H
#define TOOL_EXPORTER_ROWS_H

/*
 * The part of a watch that is exported, chosen once for all families: rows, each with labels that
 * no other row of its kind has. A database keeps a series for each row, so there is a bound.
 *
 * A process is exported if it is among the largest; its pages' sources, and the lanes asked for,
 * are then its rows. Host memory has no lanes. A row with the labels of another one is
 * left out, for the database would refuse both.
 */

#include <stdbool.h>
#include <stddef.h>

#include "live/watch.h"

struct exporter_bounds {
    size_t processes; /* at most so many */
    size_t lanes;     /* of a source; the rest are one row; 0: no rows of lanes */
};

struct exporter_row {
    const char *labels; /* `process="1",name="..."`, without the braces; at first: NULL */
    size_t labels_at;   /* where they begin in the rows' text */
    const struct watch_source *source; /* of a source */
    bool is_of_host;                   /* of a source: its memory is the host's */
    struct dry_live_lane lane;         /* of a lane */
    uint64_t bytes;                    /* of a use */
};

struct exporter_table {
    struct exporter_row *rows;
    size_t count, room;
};

struct exporter_rows {
    struct exporter_table sources, lanes, uses, devices; /* of devices: one a device's */
    size_t pages, refused;                               /* read, and not usable */
    size_t processes_left_out, sources_left_out;
    char *text; /* all labels */
};

/* Choose. False: there is no memory. exporter_rows_finish() is due in either case. */
bool exporter_rows_choose(struct exporter_rows *rows, const struct watch *watch,
                          const struct exporter_bounds *bounds);
void exporter_rows_finish(struct exporter_rows *rows);

#endif
