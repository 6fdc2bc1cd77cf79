/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any bytes as a trace: what can be read becomes anonymous, and a snapshot's result is the
 * same record with no hidden word in any of its strings. The first byte chooses options.
 */
#include "support/fuzz.h"

#include <stdio.h>
#include <stdlib.h>

#include <drystone/anonymize.h>

#include "support/bytes.h"

static void
give_up(const char *why, const char *what)
{
    fprintf(stderr, "anonymize: %s: %s\n", why, what);
    abort();
}

static void
check(const struct dry_trace *trace, const struct dry_trace *anonymous,
      const struct dry_anonymize_options *options)
{
    struct bytes_sink to;
    struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
    struct dry_error err = {0};
    if (dry_trace_write(anonymous, &sink, &err) != DRY_OK)
        give_up("cannot write", err.text);
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, to.bytes, to.count);
    struct dry_anonymize_proof proof = DRY_INIT(struct dry_anonymize_proof);
    if (dry_anonymize_verify(trace, options, &source, &proof, &err) != DRY_OK)
        give_up("cannot verify", err.text);
    /* In the bytes a hostile word may look like a run of opcodes and numbers. */
    if (proof.found_texts || (!proof.is_verified && !proof.found_bytes))
        give_up("not verified", proof.text);
    bytes_sink_finish(&to);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct dry_anonymize_options options;
    dry_anonymize_options_init(&options);
    options.key = "fuzz";
    options.key_bytes = 4;
    options.hash_all = data[0] & 1;
    options.drop_lines = data[0] >> 1 & 1;
    options.keep_times = data[0] >> 2 & 1;
    options.digits = 1 + (data[0] >> 4);
    struct bytes_source from;
    struct dry_source source = bytes_source_init(&from, data + 1, size - 1);
    struct dry_trace *trace = NULL, *anonymous = NULL;
    if (dry_trace_read(&source, NULL, &trace, NULL) != DRY_OK)
        return 0;
    struct dry_error err = {0};
    if (dry_trace_anonymize(trace, &options, &anonymous, &err) != DRY_OK)
        give_up("refused", err.text);
    if (dry_trace_get_view(trace)->kind == DRY_TRACE_SNAPSHOT)
        check(trace, anonymous, &options);
    dry_trace_destroy(anonymous);
    dry_trace_destroy(trace);
    return 0;
}
