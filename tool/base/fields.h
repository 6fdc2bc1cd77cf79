/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FIELDS_H
#define TOOL_FIELDS_H

/* Results as JSON and as rows of a text table, written and read by their tables of fields (<drystone/field.h>). An
   unknown value is null; nanoseconds are written as microseconds with a fraction. */

#include <stdbool.h>

#include <jansson.h>

#include <drystone/field.h>

#include "base/table.h"

/* Return the object's field as JSON, owned by the caller. NULL: memory ran out. */
json_t *fields_make_value(const struct dry_field *field, const void *object);
/* Add all fields of `object` to `made` and return `made`. If `made` is NULL or memory
   runs out, `made` is released and the result is NULL. */
json_t *fields_add_json(json_t *made, struct dry_fields fields, const void *object);
/*
 * Read the numbers and booleans that fields_add_json() wrote; text fields stay unchanged.
 * null is read as 0, or as SIZE_MAX for an event's number. Returns false if a key is
 * missing or a value has another type or is out of range.
 */
bool fields_read_json(const json_t *root, struct dry_fields fields, void *object);

/* Initialize a table with the columns `before`, those of the fields with a heading, and
   `after`; see table_init(). */
void fields_init_table(struct table *table, const char *before, struct dry_fields fields,
                       const char *after);
/* Add the cells of these columns; "-" stands for what is not known. */
void fields_add_cells(struct table *table, struct dry_fields fields, const void *object);

#endif
