/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_JSON_SOURCE_H
#define TOOL_JSON_SOURCE_H

/*
 * JSON in, the opcodes of a pickle out.
 *
 * The whole text is parsed first (jansson) and held as a tree while the pickle is read from
 * it piece by piece. So JSON is for files of a size one would look at: more than 1 GiB of
 * text is refused with advice. Integers beyond 64 bits with a sign, and nesting beyond 100,
 * are refused.
 */

#include <drystone/status.h>
#include <drystone/trace.h>

struct json_source;

/* Parse all of `text`; a tree of more than about memory_bytes_max is a LIMIT. */
enum dry_status json_source_create(const struct dry_source *text,
                                   uint64_t memory_bytes_max, struct json_source **json,
                                   struct dry_error *err);
/* NULL is fine. */
void json_source_destroy(struct json_source *json);

/* The read of a dry_source whose self is the json_source. */
enum dry_status json_source_read(void *self, void *buffer, size_t capacity, size_t *got,
                                 struct dry_error *err);

#endif
