/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_PACK_H
#define TOOL_PACK_H

/*
 * Columns of numbers as one block of bytes, for the page; doc/design/viewer.md has the
 * format.
 *
 *     struct pack p = {0};
 *     unsigned begin = pack_column(&p, "col_begin", PACK_U32);
 *     pack_u32(&p, begin, 17);
 *     bool is_done = pack_write(&p, &answer);
 *     pack_finish(&p);
 *
 * If memory runs out, the pack remembers that: only pack_write() has to be checked.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum pack_type { PACK_U8 = 1, PACK_U32, PACK_F64, PACK_U64 };

#define PACK_NAME_BYTES 16
#define PACK_COLUMNS_MAX 32

struct pack_column {
    const char *name; /* at most 16 bytes; must outlive the pack */
    enum pack_type type;
    unsigned char *bytes;
    size_t used, capacity; /* in bytes */
};

struct pack {
    struct pack_column columns[PACK_COLUMNS_MAX];
    unsigned count;
    bool has_failed;
};

/* The bytes that answer a question, which the caller frees. */
struct answer {
    unsigned char *bytes;
    size_t length;
    bool is_json;
};

/* Add a column and return its index. Requires fewer than PACK_COLUMNS_MAX columns. */
unsigned pack_column(struct pack *p, const char *name, enum pack_type type);
/* Append a value. Requires that the column has that type. */
void pack_u8(struct pack *p, unsigned column, uint8_t value);
void pack_u32(struct pack *p, unsigned column, uint32_t value);
void pack_u64(struct pack *p, unsigned column, uint64_t value);
/* Append bytes or microseconds, which are exact below 2^53. */
void pack_f64(struct pack *p, unsigned column, double value);
/* Append a text's bytes to a column of u8. */
void pack_text(struct pack *p, unsigned column, const char *bytes, size_t length);
/* Return the number of values in a column. */
size_t pack_length(const struct pack *p, unsigned column);

/* Write the pack into *answer. False: memory ran out, now or earlier, or the pack exceeds
   4 GiB. */
bool pack_write(const struct pack *p, struct answer *answer);
/* Free the columns. */
void pack_finish(struct pack *p);

#endif
