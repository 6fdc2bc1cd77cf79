/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FIELDS_H
#define TOOL_FIELDS_H

/*
 * Results as JSON, by their tables of fields (<drystone/field.h>): a value that is not known is null,
 * nanoseconds are microseconds with a fraction. What was written so is read back by the same table.
 */

#include <stdbool.h>

#include <jansson.h>

#include <drystone/field.h>

/* Return the field of this object as JSON. NULL: there was no memory. */
json_t *fields_make_value(const struct dry_field *field, const void *object);
/*
 * Add all fields of the object, and return `made`, which may be NULL. Without memory `made` is given
 * up: NULL.
 */
json_t *fields_add_json(json_t *made, struct dry_fields fields, const void *object);
/*
 * Read the numbers and truths of an object that fields_add_json() wrote. null is 0, and SIZE_MAX
 * where the field is an event. Texts are left alone. False: a key is missing, or its value is of
 * another type or does not fit.
 */
bool fields_read_json(const json_t *root, struct dry_fields fields, void *object);

#endif
