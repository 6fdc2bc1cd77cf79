/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_FIELD_H
#define DRY_FIELD_H

/*
 * Tables of the members of result structs. Bindings, reports and stores read and write
 * results by these tables, so no member is listed twice.
 *
 *     struct dry_fields fields = dry_run_get_fields(DRY_RUN_WHOLE);
 *     for (size_t i = 0; i < fields.count; i++) {
 *         struct dry_field_value value;
 *         if (dry_field_get(&fields.list[i], &run, &value) && value.type == DRY_FIELD_U64)
 *             printf("%s %llu\n", fields.list[i].key, (unsigned long long)value.number);
 *     }
 *
 * A key is the name of the member in JSON, with its unit at the end: `_bytes`, `_us`.
 * Tables are constant; any thread may read them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

enum dry_field_type {
    DRY_FIELD_BOOL,
    DRY_FIELD_U64,
    DRY_FIELD_U32,   /* uint32_t, given as U64 */
    DRY_FIELD_I64,   /* int64_t, given as U64: a negative one as its two's complement */
    DRY_FIELD_SIZE,  /* size_t, given as U64 */
    DRY_FIELD_TEXT,  /* const char *; NULL: not known */
    DRY_FIELD_CHARS, /* char[], with a zero at the end */
    DRY_FIELD_REAL,  /* double */
    DRY_FIELD_WORD,  /* an enum, given as the TEXT that `word` returns */
};

enum dry_field_unit {
    DRY_UNIT_NONE,
    DRY_UNIT_BYTES,
    DRY_UNIT_COUNT,
    DRY_UNIT_TOTAL,       /* a count that only grows */
    DRY_UNIT_SECONDS,     /* negative or infinite: not known */
    DRY_UNIT_PERCENT,     /* at most 100 */
    DRY_UNIT_NANOSECONDS, /* JSON has fractional microseconds */
    DRY_UNIT_MICROSECONDS,
    DRY_UNIT_EVENT, /* an index in the trace's events; SIZE_MAX: none */
    DRY_UNIT_SHARE, /* from 0 to 1; text has percents */
};

/* When a member is known. `known_offset` is the offset of the member that decides. */
enum dry_field_known {
    DRY_KNOWN_ALWAYS,
    DRY_KNOWN_IF,         /* if a bool is true */
    DRY_KNOWN_UNLESS,     /* if a bool is false */
    DRY_KNOWN_IF_ABOVE_0, /* if a uint64_t is not 0 */
    DRY_KNOWN_UNLESS_MAX, /* if a uint64_t is not UINT64_MAX */
    DRY_KNOWN_IF_FILLED,  /* if a text is neither NULL nor empty */
};

struct dry_field {
    const char *key;
    enum dry_field_type type;
    enum dry_field_unit unit;
    size_t offset;
    enum dry_field_known known;
    size_t known_offset;
    bool is_worse_above; /* an increase over the baseline is worse, as regression gates
                            judge it */
    const char *meaning; /* one line for people, without a full stop */
    const char *heading; /* its column in text, '_' for a blank; NULL: none */
    /* WORD: names each of `word_count` values. */
    const char *(*word)(unsigned value);
    unsigned word_count;
};

/*
 * A row of a table, for the member of `object` whose type is DRY_FIELD_##kind; then follow known,
 * known_offset, is_worse_above, meaning and, if there is one, heading. A member of another size is
 * refused by the compiler. DRY_WORD_OF is for a WORD, by the function and the number of its names.
 */
#define DRY_FIELD_OF(object, name, kind, of, member, ...)                                \
    {                                                                                    \
        .key = name, .type = DRY_FIELD_##kind, .unit = DRY_UNIT_##of,                    \
        .offset = DRY_FIELD_OFFSET(object, kind, member), __VA_ARGS__                    \
    }
#define DRY_WORD_OF(object, name, member, function, count, ...)                          \
    {                                                                                    \
        .key = name, .type = DRY_FIELD_WORD, .unit = DRY_UNIT_NONE,                      \
        .offset = DRY_FIELD_OFFSET(object, WORD, member), __VA_ARGS__, .word = function, \
        .word_count = count                                                              \
    }
#define DRY_FIELD_OFFSET(object, kind, member)                                           \
    (offsetof(object, member) +                                                          \
     0 * sizeof(char[DRY_FIELD_FITS(kind, ((object *)0)->member) ? 1 : -1]))
#define DRY_FIELD_FITS(kind, member)                                                     \
    (DRY_FIELD_SIZE_##kind == 0 || DRY_FIELD_SIZE_##kind == sizeof(member))
#define DRY_FIELD_SIZE_BOOL sizeof(bool)
#define DRY_FIELD_SIZE_U64 sizeof(uint64_t)
#define DRY_FIELD_SIZE_U32 sizeof(uint32_t)
#define DRY_FIELD_SIZE_I64 sizeof(int64_t)
#define DRY_FIELD_SIZE_SIZE sizeof(size_t)
#define DRY_FIELD_SIZE_TEXT sizeof(const char *)
#define DRY_FIELD_SIZE_CHARS 0 /* any */
#define DRY_FIELD_SIZE_REAL sizeof(double)
#define DRY_FIELD_SIZE_WORD sizeof(unsigned)

struct dry_fields {
    const struct dry_field *list;
    size_t count;
};

/* All rows of an array. */
#define DRY_FIELDS_OF(rows) ((struct dry_fields){(rows), sizeof(rows) / sizeof *(rows)})

struct dry_field_value {
    enum dry_field_type type; /* BOOL, U64, REAL or TEXT */
    uint64_t number;          /* U64: the value; BOOL: 0 or 1 */
    const char *text;         /* TEXT: lives as long as the struct */
    double real;              /* REAL */
};

/* Get the value of a member. Returns false if the member is not known in this struct.
   O(1). */
DRY_API bool dry_field_get(const struct dry_field *field, const void *object,
                           struct dry_field_value *value);
/* Set a member that is a whole number, a BOOL or, by the value of its enum, a WORD. The bool of
   DRY_KNOWN_IF becomes true, but not for an event. Returns false and changes nothing if the
   member is a REAL or a text, or if the number does not fit. O(1). */
DRY_API bool dry_field_set(const struct dry_field *field, void *object, uint64_t number);
/* Find the field with this key. NULL: there is none. O(count). */
DRY_API const struct dry_field *dry_fields_find(const struct dry_fields *fields,
                                                const char *key);

#ifdef __cplusplus
}
#endif

#endif
