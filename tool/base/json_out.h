/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_JSON_OUT_H
#define TOOL_JSON_OUT_H

/* Small helpers on jansson: our numbers and foreign strings into JSON, JSON to stdout. */

#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

/* Integers up to 2^63 - 1 are exact; larger ones, which only hostile files hold, reals.
 */
json_t *json_out_number(uint64_t value);
/* Broken UTF-8 and control characters become '?'. NULL bytes: null. */
json_t *json_out_text(const char *bytes, size_t length);
/* The same of a text that ends with a zero. NULL: null. */
json_t *json_out_string(const char *text);
/*
 * Append `value`, which is the list's in any case, and return the list. Without memory for
 * one of them, the list is given up: NULL, which stays NULL in the next call.
 */
json_t *json_out_append(json_t *list, json_t *value);
/* Prints and releases `root` (NULL: there was no memory). An exit code. */
int json_out_print(const char *command, json_t *root);

#endif
