/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_INPUT_H
#define TOOL_INPUT_H

/*
 * A file as the library wants it: unpacked, and a pickle or a text trace.
 *
 * The first bytes are believed, not the name: gzip (several members too) and zstd (several
 * frames too) are unpacked on the way. JSON of a snapshot's shape is turned into the pickle
 * it would have been, so that the library's one reader judges the shape.
 *
 *     struct input *in;
 *     struct dry_source source;
 *     if (input_open(path, memory_bytes_max, &in, &source, &err) == DRY_OK) {
 *         status = dry_trace_read(&source, &options, &trace, &err);
 *         input_close(in);
 *     }
 *
 * Ownership  open / close; the source is valid until close.
 * Errors     FORMAT for broken streams ("gzip stream broken at byte N: ..."), LIMIT for
 * too much JSON, SYSTEM for the file. The offset of an error of the stream is a byte of
 * the file; that of a reader behind it, a byte of what came out: see input_describe().
 * Threads    One at a time.
 * Units      Bytes.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/status.h>
#include <drystone/trace.h>

struct input;

struct input_description {
    const char *format;  /* "", "gzip", "zstd", "JSON", "gzip, JSON", "zstd, JSON" */
    bool is_unpacked;    /* the reader's offsets count unpacked bytes */
    bool is_converted;   /* from JSON: the reader's offsets mean nothing to a person */
    bool is_at_fault;    /* the stream, not the reader behind it, failed last */
    uint64_t file_bytes; /* 0: not known (a pipe) */
    uint64_t consumed_bytes; /* of the file, so far */
    uint64_t stamp;          /* of an object's version; 0: a file */
};

/* A file's bytes, as they stand in it: two files of equal content have equal numbers. */
struct input_content {
    uint64_t bytes, hash;
};

/*
 * Open `path`: "-" is standard input, s3://BUCKET/KEY an object of a store. JSON may take
 * memory_bytes_max, all else takes little. *in is there on success only.
 */
DRY_CHECK_RESULT enum dry_status input_open(const char *path, uint64_t memory_bytes_max,
                                            struct input **in, struct dry_source *source,
                                            struct dry_error *err);
/* Open for input_read_content(), which costs a tenth of a nanosecond a byte. */
DRY_CHECK_RESULT enum dry_status input_open_hashed(const char *path,
                                                   uint64_t memory_bytes_max,
                                                   struct input **in,
                                                   struct dry_source *source,
                                                   struct dry_error *err);
/* Read what is left of the file, which ends the source, and tell what all of it is. */
DRY_CHECK_RESULT enum dry_status input_read_content(struct input *in,
                                                    struct input_content *content,
                                                    struct dry_error *err);
/* NULL is fine. */
void input_close(struct input *in);

void input_describe(const struct input *in, struct input_description *description);

#endif
