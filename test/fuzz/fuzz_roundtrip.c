/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as a snapshot: what can be read can be written, and what is written reads back
 * as the same trace. Written a second time it is the same bytes.
 */
#include "support/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/trace.h>

#include "support/bytes.h"
#include "support/same_trace.h"

static void
give_up(const char *why, const char *what)
{
    fprintf(stderr, "roundtrip: %s: %s\n", why, what);
    abort();
}

static struct dry_trace *
write_and_read(const struct dry_trace *trace, struct bytes_sink *to)
{
    struct dry_sink sink = bytes_sink_init(to, SIZE_MAX);
    struct dry_error err = {0};
    if (dry_trace_write(trace, &sink, &err) != DRY_OK)
        give_up("cannot write what was read", err.text);
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, to->bytes, to->count);
    struct dry_trace *again = NULL;
    if (dry_trace_read(&source, NULL, &again, &err) != DRY_OK)
        give_up("cannot read what was written", err.text);
    return again;
}

static void
check(const struct dry_trace *trace)
{
    struct bytes_sink first, second;
    struct dry_trace *again = write_and_read(trace, &first);
    const char *what = same_trace(trace, again);
    if (what)
        give_up("not the same", what);
    struct dry_trace *third = write_and_read(again, &second);
    if (first.count != second.count ||
        memcmp(first.bytes, second.bytes, first.count) != 0)
        give_up("not the same", "the bytes, written again");
    dry_trace_destroy(third);
    dry_trace_destroy(again);
    bytes_sink_finish(&first);
    bytes_sink_finish(&second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, data, size);
    struct dry_trace *trace = NULL;
    if (dry_trace_read(&source, NULL, &trace, NULL) != DRY_OK)
        return 0;
    if (dry_trace_get_view(trace)->kind == DRY_TRACE_SNAPSHOT)
        check(trace);
    dry_trace_destroy(trace);
    return 0;
}
