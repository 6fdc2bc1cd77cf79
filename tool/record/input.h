/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_INPUT_H
#define TOOL_INPUT_H

/*
 * Open a file as the library needs it: unpacked, and a pickle or a text trace.
 *
 * The first bytes decide, not the name. gzip (also several members) and zstd (also
 * several frames) are unpacked while reading. A snapshot is taken out of the HTML page that
 * draws it. JSON with a snapshot's structure is converted to the equivalent pickle, so that
 * only the library's reader checks that structure.
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
 * too much JSON, SYSTEM for the file. The offset of an error in the stream is a byte of
 * the file. The offset of a reader's error is a byte of the unpacked data: see
 * input_describe().
 * Threads    One at a time.
 * Units      Bytes.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/status.h>
#include <drystone/trace.h>

struct input;

struct input_description {
    char format[24];         /* layers: "", "zstd", "gzip, HTML", "JSON" ... */
    bool is_unpacked;        /* the reader's offsets count unpacked or decoded bytes */
    bool is_database;        /* the file is SQLite's, which is read by its name */
    bool is_converted;       /* the file was JSON: the reader's offsets are meaningless */
    bool is_at_fault;        /* the last failure was in the stream, not the reader */
    uint64_t file_bytes;     /* 0 if unknown (a pipe) */
    uint64_t consumed_bytes; /* bytes of the file read so far */
    uint64_t stamp;          /* hash of an object's version; 0 for a file */
};

/* Length and hash of a file's bytes as stored. Equal files have equal values. */
struct input_content {
    uint64_t bytes, hash;
};

/*
 * Open `path`: "-" is standard input, s3://BUCKET/KEY an object of a store. JSON may use
 * up to memory_bytes_max; other formats need little. *in is set only on success.
 */
DRY_CHECK_RESULT enum dry_status input_open(const char *path, uint64_t memory_bytes_max,
                                            struct input **in, struct dry_source *source,
                                            struct dry_error *err);
/* Open a file for input_read_content(). Hashing costs 0.1 ns a byte. */
DRY_CHECK_RESULT enum dry_status input_open_hashed(const char *path,
                                                   uint64_t memory_bytes_max,
                                                   struct input **in,
                                                   struct dry_source *source,
                                                   struct dry_error *err);
/* Read the rest of the file, which ends the source, and return its length and hash. */
DRY_CHECK_RESULT enum dry_status input_read_content(struct input *in,
                                                    struct input_content *content,
                                                    struct dry_error *err);
/* Close an input, which may be NULL. */
void input_close(struct input *in);

void input_describe(const struct input *in, struct input_description *description);

#endif
