/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PROTO_H
#define TOOL_PROTO_H

/*
 * Protocol buffers, written: fields of three kinds, and messages within messages.
 *
 *     size_t mark = proto_begin(&p, 11);
 *     proto_number(&p, 9, 1);
 *     proto_end(&p, mark);
 *
 * A message's length is written where four bytes were left for it, as a varint with leading
 * zeros, which readers must take; so a message holds less than 256 MiB.
 * The encoding: https://protobuf.dev/programming-guides/encoding/
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proto {
    unsigned char *bytes;
    size_t used, capacity;
    bool failed; /* no memory, or a message too long; what is written then is cut */
};

/* Starts as {0}. */
void proto_finish(struct proto *p);
/* Empty again; a failure stays. */
void proto_clear(struct proto *p);

void proto_number(struct proto *p, uint32_t field, uint64_t value);
void proto_bytes(struct proto *p, uint32_t field, const void *bytes, size_t count);
void proto_text(struct proto *p, uint32_t field, const char *text);
size_t proto_begin(struct proto *p, uint32_t field);
void proto_end(struct proto *p, size_t mark);

#endif
