/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_JSON_OUT_H
#define TOOL_JSON_OUT_H

/* Conversions to JSON for jansson: numbers, strings from files; printing to stdout. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/* Make a number. Values up to 2^63 - 1 stay exact integers. Larger ones occur only in
   hostile files and become reals. */
json_t *json_out_number(uint64_t value);
/* Make a text; broken UTF-8 and control characters become '?'. NULL bytes become null. */
json_t *json_out_text(const char *bytes, size_t length);
/* Make a text from a zero-terminated string like json_out_text(). NULL becomes null. */
json_t *json_out_string(const char *text);
/* The same, and an empty text becomes null, too. */
json_t *json_out_filled(const char *text);
/* Make a number like json_out_number(), or null if it is not known. */
json_t *json_out_known(bool is_known, uint64_t value);
/*
 * Append `value`, which the list owns in any case, and return the list. If memory ran out
 * for either, release the list and return NULL; NULL is passed on through further calls.
 */
json_t *json_out_append(json_t *list, json_t *value);
/* Return `root` as text by flags of json_dumps() and release it. The caller frees the text. NULL:
   `root` is NULL, or memory ran out. */
char *json_out_dump(json_t *root, size_t flags);
/* Print `root` to stdout and release it. NULL: memory ran out. Returns an exit code. */
int json_out_print(const char *command, json_t *root);

#endif
