/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_IN_H
#define TOOL_FLEET_IN_H

/*
 * JSON that another process or an earlier run wrote, read back strictly (tool/base/json_in.h).
 * All keys must be there. The first failure stays; values read after it are 0, false or "".
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json_in.h"

struct fleet_in {
    struct json_in in;
    void *into; /* the struct that is filled */
    char
        *texts; /* a buffer as long as the JSON: no text is longer than where it stands */
    size_t used;
};

/*
 * Parse `text`, and have `read` fill r->into from its root. r->texts is the caller's to free()
 * in any case, once no text of it is needed.
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
/* A copy in r->texts. */
const char *fleet_in_text(struct fleet_in *r, const struct json_at *object,
                          const char *key);
/* Read a word as the number of its name, one of `count`; 0 after a failure. */
unsigned fleet_in_word(struct fleet_in *r, const struct json_at *object, const char *key,
                       const char *(*name)(unsigned index), unsigned count);
/* The length of a list, which `max` bounds. */
size_t fleet_in_count(struct fleet_in *r, const struct json_at *list, size_t max);
/* Zeroed, for one more than `count`; NULL after a failure. */
void *fleet_in_memory(struct fleet_in *r, size_t count, size_t size);

#endif
