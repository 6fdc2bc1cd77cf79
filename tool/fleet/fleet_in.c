/* SPDX-License-Identifier: Apache-2.0 */
/* Strict reading of JSON, see fleet_in.h. Texts are copied into one buffer. */
#include "fleet/fleet_in.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"

enum dry_status
fleet_in_read(struct fleet_in *r, const char *text, size_t length,
              void (*read)(struct fleet_in *r, const struct json_at *root),
              struct dry_error *err)
{
    json_t *value = NULL;
    r->in = (struct json_in){.err = err};
    r->texts = NULL;
    r->used = 0;
    enum dry_status status = json_in_parse(text, length, &value, err);
    if (status != DRY_OK)
        return status;
    r->texts = fleet_in_memory(r, length, 1);
    if (r->texts) {
        struct json_at root = {.value = value};
        read(r, &root);
    }
    json_decref(value);
    return r->in.status;
}

void
fleet_in_schema(struct fleet_in *r, const struct json_at *root, const char *schema)
{
    struct json_at at = json_in_key(root, "schema");
    if (strcmp(json_in_text(&r->in, at, ""), schema) != 0)
        json_in_fail(&r->in, &at, "not %s", schema);
}

uint64_t
fleet_in_number(struct fleet_in *r, const struct json_at *object, const char *key)
{
    return json_in_unsigned(&r->in, json_in_key(object, key));
}

uint32_t
fleet_in_small(struct fleet_in *r, const struct json_at *object, const char *key,
               uint32_t max)
{
    struct json_at at = json_in_key(object, key);
    uint64_t value = json_in_unsigned(&r->in, at);
    if (value > max)
        json_in_fail(&r->in, &at, "more than %u", max);
    return value > max ? 0 : (uint32_t)value;
}

bool
fleet_in_flag(struct fleet_in *r, const struct json_at *object, const char *key)
{
    return json_in_flag(&r->in, json_in_key(object, key), false);
}

const char *
fleet_in_text(struct fleet_in *r, const struct json_at *object, const char *key)
{
    const char *text = json_in_text(&r->in, json_in_key(object, key), "");
    if (!*text)
        return "";
    char *copy = r->texts + r->used;
    size_t size = strlen(text) + 1;
    memcpy(copy, text, size);
    r->used += size;
    return copy;
}

unsigned
fleet_in_word(struct fleet_in *r, const struct json_at *object, const char *key,
              const char *(*name)(unsigned index), unsigned count)
{
    struct json_at at = json_in_key(object, key);
    const char *text = json_in_text(&r->in, at, "");
    for (unsigned i = 0; i < count; i++) {
        if (strcmp(text, name(i)) == 0)
            return i;
    }
    json_in_fail(&r->in, &at, "not a word that is known here");
    return 0;
}

size_t
fleet_in_count(struct fleet_in *r, const struct json_at *list, size_t max)
{
    size_t count = json_in_list(&r->in, list);
    if (count > max)
        json_in_fail(&r->in, list, "more than %zu", max);
    return count > max ? 0 : count;
}

void *
fleet_in_memory(struct fleet_in *r, size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory && r->in.status == DRY_OK)
        r->in.status = fail_memory(r->in.err, "no memory");
    return memory;
}
