/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_JSON_IN_H
#define TOOL_JSON_IN_H

/*
 * JSON that people and programs write for us, read strictly. A key that is not known is
 * refused with the way to it, and so is a number that is negative, too large or none at
 * all:
 *
 *     stages[3].options[0].saved: -1 is negative
 *
 * A reader takes what it needs and asks once, at the end, whether all went well. The first
 * failure stays; values that are read after it are 0, false or "".
 *
 *     struct json_in in = {.err = err};
 *     struct json_at stages = json_in_key(&root, "stages");
 *     for (size_t i = 0; i < json_in_list(&in, &stages); i++) {
 *         struct json_at stage = json_in_element(&stages, i);
 *         struct json_at out = json_in_key(&stage, "out");
 *         json_in_object(&in, &stage, stage_keys);
 *         uint64_t bytes = json_in_unsigned(&in, &out);
 *     }
 *     return in.status;
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <drystone/status.h>

#define JSON_IN_TEXT_BYTES_MAX ((size_t)64 << 20)

/* A value and the way to it; lives as long as its parents. */
struct json_at {
    json_t *value; /* NULL: it is not there */
    const struct json_at *parent;
    const char *key; /* NULL: an element of a list, or the root */
    size_t index;
};

struct json_in {
    struct dry_error *err;
    enum dry_status status;
};

/*
 * All of a text. *root is the caller's to json_decref(). FORMAT: not JSON, or a key twice;
 * LIMIT: more than JSON_IN_TEXT_BYTES_MAX, or a tree beyond 1 GiB.
 */
DRY_CHECK_RESULT enum dry_status json_in_parse(const char *text, size_t length,
                                               json_t **root, struct dry_error *err);
/* A whole file ("-" is standard input), with a zero behind it, to be freed. */
DRY_CHECK_RESULT enum dry_status json_in_read_file(const char *path, char **text,
                                                   size_t *length, struct dry_error *err);

struct json_at json_in_key(const struct json_at *object, const char *key);
struct json_at json_in_element(const struct json_at *list, size_t index);

/* FORMAT, "WAY: text"; only the first failure counts. */
__attribute__((format(printf, 3, 4))) void json_in_fail(struct json_in *in,
                                                        const struct json_at *at,
                                                        const char *format, ...);

/* An object with no key beside these; the list of keys ends with NULL. */
bool json_in_object(struct json_in *in, const struct json_at *at,
                    const char *const *keys);
/* How many elements; 0 where it is absent. */
size_t json_in_list(struct json_in *in, const struct json_at *at);

/* A whole number from 0 to 2^63 - 1. Absent is a failure; see json_in_unsigned_or(). */
uint64_t json_in_unsigned(struct json_in *in, const struct json_at *at);
uint64_t json_in_unsigned_or(struct json_in *in, const struct json_at *at,
                             uint64_t absent);
/* Microseconds, whole or with a fraction, as nanoseconds. */
uint64_t json_in_time(struct json_in *in, const struct json_at *at);
/* Read a number from 0 up to 1, without 1. Returns millionths. */
uint32_t json_in_millionths(struct json_in *in, const struct json_at *at);
bool json_in_flag(struct json_in *in, const struct json_at *at, bool absent);
/* `absent` may be NULL. */
const char *json_in_text(struct json_in *in, const struct json_at *at,
                         const char *absent);

#endif
