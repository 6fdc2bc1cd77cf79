/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_IN_H
#define TOOL_FLEET_IN_H

/*
 * Read JSON of another process or an earlier run strictly (tool/base/json_in.h), by tables of
 * fields. Every key must exist. The first failure is kept; values read after it are 0, false
 * or "".
 */

#include <stddef.h>

#include <drystone/field.h>

#include "base/json_in.h"

struct fleet_in {
    struct json_in in;
    void *into;  /* the struct that is filled */
    char *texts; /* copied texts; the JSON's length bounds them */
    char *free;  /* behind those that are used */
};

/*
 * Parse `text` and let `read` fill r->into from its root. The caller frees r->texts in
 * any case, once its texts are no longer needed.
 */
DRY_CHECK_RESULT enum dry_status fleet_in_read(
    struct fleet_in *r, const char *text, size_t length,
    void (*read)(struct fleet_in *r, const struct json_at *root), struct dry_error *err);

/* Fail unless the key "schema" has this value. */
void fleet_in_schema(struct fleet_in *r, const struct json_at *root, const char *schema);
/* Read the fields of an object into `into`, by fields_read_json(). */
void fleet_in_fields(struct fleet_in *r, const struct json_at *object,
                     struct dry_fields fields, void *into);
/* Fail if an object has keys that are neither fields nor in `more`, which ends with NULL. */
void fleet_in_check_keys(struct fleet_in *r, const struct json_at *object,
                         struct dry_fields fields, const char *const *more);
/* Return the length of a list. Fails if it exceeds `max`. */
size_t fleet_in_count(struct fleet_in *r, const struct json_at *list, size_t max);
/* Read a list of objects that have these fields alone, each into `size` bytes. The caller
   frees the items. NULL: memory ran out. */
void *fleet_in_list(struct fleet_in *r, const struct json_at *list,
                    struct dry_fields fields, size_t size, size_t max, size_t *count);
/* Allocate zeroed memory for count + 1 items. Returns NULL after a failure. */
void *fleet_in_memory(struct fleet_in *r, size_t count, size_t size);

#endif
