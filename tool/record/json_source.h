/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_JSON_SOURCE_H
#define TOOL_JSON_SOURCE_H

/*
 * Convert JSON to the opcodes of a pickle.
 *
 * The whole text is parsed first (jansson) and kept as a tree while the pickle is read
 * from it piece by piece. JSON is therefore for small files: text over 1 GiB is refused
 * with advice. Integers beyond signed 64 bits and nesting beyond 100 are refused.
 */

#include <drystone/status.h>
#include <drystone/trace.h>

struct json_source;

/* Parse all of `text`. LIMIT if the tree would exceed about memory_bytes_max. */
enum dry_status json_source_create(const struct dry_source *text,
                                   uint64_t memory_bytes_max, struct json_source **json,
                                   struct dry_error *err);
/* Free a json_source, which may be NULL. */
void json_source_destroy(struct json_source *json);

/* The read function of a dry_source whose self is a json_source. */
enum dry_status json_source_read(void *self, void *buffer, size_t capacity, size_t *got,
                                 struct dry_error *err);

#endif
