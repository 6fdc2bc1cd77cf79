/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_IN_H
#define TOOL_FLEET_IN_H

/*
 * Read JSON of another process or an earlier run strictly (tool/base/json_in.h). Every
 * key must exist. The first failure is kept; values read after it are 0, false or "".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_in.h"

struct fleet_in {
    struct json_in in;
    void *into;  /* the struct that is filled */
    char *texts; /* copied texts; the JSON's length bounds them */
    size_t used;
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
uint64_t fleet_in_number(struct fleet_in *r, const struct json_at *object,
                         const char *key);
uint32_t fleet_in_small(struct fleet_in *r, const struct json_at *object, const char *key,
                        uint32_t max);
bool fleet_in_flag(struct fleet_in *r, const struct json_at *object, const char *key);
/* Return a copy of a text, owned by r->texts. */
const char *fleet_in_text(struct fleet_in *r, const struct json_at *object,
                          const char *key);
/* Return the index of a word among the names of `count` values; 0 after a failure. */
unsigned fleet_in_word(struct fleet_in *r, const struct json_at *object, const char *key,
                       const char *(*name)(unsigned index), unsigned count);
/* Return the length of a list. Fails if it exceeds `max`. */
size_t fleet_in_count(struct fleet_in *r, const struct json_at *list, size_t max);
/* Allocate zeroed memory for count + 1 items. Returns NULL after a failure. */
void *fleet_in_memory(struct fleet_in *r, size_t count, size_t size);

#endif
