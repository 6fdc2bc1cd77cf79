/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PROTO_H
#define TOOL_PROTO_H

/*
 * Write protocol buffers: fields of three kinds, and nested messages.
 *
 *     size_t mark = proto_begin(&p, 11);
 *     proto_number(&p, 9, 1);
 *     proto_end(&p, mark);
 *
 * proto_begin() leaves four bytes for the length, which proto_end() fills with a varint
 * padded by leading zeros. Readers must accept those. A message is therefore limited to
 * 256 MiB. The encoding: https://protobuf.dev/programming-guides/encoding/
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct proto {
    unsigned char *bytes;
    size_t used, capacity;
    bool failed; /* memory ran out or a message is too long; the bytes are incomplete */
};

/* Free the bytes. A struct proto is initialised with {0}. */
void proto_finish(struct proto *p);
/* Remove all bytes; a failure is kept. */
void proto_clear(struct proto *p);

void proto_number(struct proto *p, uint32_t field, uint64_t value);
void proto_bytes(struct proto *p, uint32_t field, const void *bytes, size_t count);
void proto_text(struct proto *p, uint32_t field, const char *text);
size_t proto_begin(struct proto *p, uint32_t field);
void proto_end(struct proto *p, size_t mark);

#endif
