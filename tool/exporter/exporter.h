/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_EXPORTER_H
#define TOOL_EXPORTER_H

/*
 * A watch that looks when somebody asks, at most each EXPORTER_FRESH_S, however many ask. It
 * looks each EXPORTER_IDLE_S if nobody does: trends need that, and programs that end.
 */

#include "exporter/exporter_text.h"

#define EXPORTER_FRESH_S 0.5
#define EXPORTER_IDLE_S 5.0

struct exporter {
    struct watch *watch;
    struct exporter_bounds bounds;
    struct exporter_counts counts;
    double looked_s; /* when, by a clock that only goes forward */
};

struct exporter_options {
    struct watch_options watch;
    struct exporter_bounds bounds;
};

/* False: there is no memory. exporter_finish() is due in either case. */
bool exporter_init(struct exporter *exporter, const struct exporter_options *options);
void exporter_finish(struct exporter *exporter);

/* Look if the last look is older than `age_s`. True: there was a look. */
bool exporter_look(struct exporter *exporter, double age_s);

#endif
