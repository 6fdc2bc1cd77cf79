/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_BYTES_H
#define TEST_BYTES_H

/*
 * Sources and sinks in memory.
 *
 *     struct bytes_source from;
 *     struct dry_source source = bytes_source_init(&from, text, strlen(text));
 *
 *     struct bytes_sink to;
 *     struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
 *     ... to.bytes, to.count ...
 *     bytes_sink_finish(&to);
 */

#include <stdbool.h>
#include <stddef.h>

#include <drystone/replay.h>
#include <drystone/trace.h>

struct bytes_source {
    const unsigned char *bytes;
    size_t count, at;
    size_t step; /* most bytes given at a time; 0: as many as asked for */
};

struct dry_source bytes_source_init(struct bytes_source *from, const void *bytes,
                                    size_t count);

/* Read a trace from these bytes; the test fails if they are refused. */
struct dry_trace *bytes_read_trace(const void *bytes, size_t count);

struct bytes_sink {
    unsigned char *bytes;
    size_t count, capacity;
    size_t left; /* writes that still succeed */
    size_t calls;
    bool failed;
};

/*
 * Begin a sink. The write number `writes` and all later ones fail with SYSTEM; SIZE_MAX:
 * none.
 */
struct dry_sink bytes_sink_init(struct bytes_sink *to, size_t writes);
void bytes_sink_finish(struct bytes_sink *to);

/* Begin a sink of decisions, which writes them as lines to such a sink. */
struct dry_decision_sink bytes_sink_decisions(struct dry_sink *sink);

/*
 * Read the whole file `name`, like "plain/x.trace", of $DRY_TEST_TRACES; NULL if it is
 * absent.
 */
unsigned char *bytes_of_trace(const char *name, size_t *count);

#endif
