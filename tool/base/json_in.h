/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_JSON_IN_H
#define TOOL_JSON_IN_H

/*
 * Strict reading of JSON that people and programs write for us. Unknown keys are refused
 * with their JSON path, as are numbers that are negative, too large or not numbers:
 *
 *     stages[3].options[0].saved: -1 is negative
 *
 * The reader takes all values first and checks `status` once, at the end. The first
 * failure is kept; values read after a failure are 0, false or "".
 *
 *     struct json_in in = {.err = err};
 *     struct json_at stages = json_in_key(&root, "stages");
 *     for (size_t i = 0; i < json_in_list(&in, &stages); i++) {
 *         struct json_at stage = json_in_element(&stages, i);
 *         json_in_object(&in, &stage, stage_keys);
 *         uint64_t bytes = json_in_unsigned(&in, json_in_key(&stage, "out"));
 *     }
 *     return in.status;
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <drystone/status.h>

#define JSON_IN_TEXT_BYTES_MAX ((size_t)64 << 20)

/* A value and its JSON path. It points to its parents, which must outlive it. */
struct json_at {
    json_t *value; /* NULL: absent */
    const struct json_at *parent;
    const char *key; /* NULL: a list's element, or the root */
    size_t index;
};

struct json_in {
    struct dry_error *err;
    enum dry_status status;
};

/*
 * Parse a whole text; the caller releases *root with json_decref(). Errors: FORMAT: not
 * JSON, or a key occurs twice; LIMIT: more than JSON_IN_TEXT_BYTES_MAX bytes, or a tree
 * beyond 1 GiB.
 */
DRY_CHECK_RESULT enum dry_status json_in_parse(const char *text, size_t length,
                                               json_t **root, struct dry_error *err);
/* Return the most bytes of jansson's tree for the node that `c` begins; `c` stands outside
   strings. */
unsigned json_in_measure_node(int c);
/* Read a whole file into *text, with a zero at the end; "-" is standard input. The caller
   frees *text. */
DRY_CHECK_RESULT enum dry_status json_in_read_file(const char *path, char **text,
                                                   size_t *length, struct dry_error *err);

struct json_at json_in_key(const struct json_at *object, const char *key);
struct json_at json_in_element(const struct json_at *list, size_t index);

/* Fail with FORMAT and the message "PATH: text". Only the first failure is kept. */
__attribute__((format(printf, 3, 4))) void json_in_fail(struct json_in *in,
                                                        const struct json_at *at,
                                                        const char *format, ...);

/* Check that a value is an object and has no keys except `keys`, which end with NULL. */
bool json_in_object(struct json_in *in, const struct json_at *at,
                    const char *const *keys);
/* Return the number of elements of a list; 0 if the list is absent. */
size_t json_in_list(struct json_in *in, const struct json_at *at);

/* Return a whole number from 0 to 2^63 - 1. An absent number is a failure; see
   json_in_unsigned_or(). */
uint64_t json_in_unsigned(struct json_in *in, struct json_at at);
uint64_t json_in_unsigned_or(struct json_in *in, struct json_at at, uint64_t absent);
/* Return a time as nanoseconds; the file has microseconds, with or without a fraction. */
uint64_t json_in_time(struct json_in *in, struct json_at at);
/* Read a fraction from 0 up to, but excluding, 1. Returns millionths. */
uint32_t json_in_millionths(struct json_in *in, struct json_at at);
bool json_in_flag(struct json_in *in, struct json_at at, bool absent);
/* Return a text, or `absent`, which may be NULL, if there is none. The text belongs to
   the JSON tree. */
const char *json_in_text(struct json_in *in, struct json_at at, const char *absent);

#endif
