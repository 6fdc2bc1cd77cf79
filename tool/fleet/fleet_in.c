/* SPDX-License-Identifier: Apache-2.0 */
/* Strict reading of JSON, see fleet_in.h. Texts are copied into one buffer. */
#include "fleet/fleet_in.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/fields.h"

#define KEYS_MAX 64

enum dry_status
fleet_in_read(struct fleet_in *r, const char *text, size_t length,
              void (*read)(struct fleet_in *r, const struct json_at *root),
              struct dry_error *err)
{
    json_t *value = NULL;
    r->in = (struct json_in){.err = err};
    r->texts = r->free = NULL;
    enum dry_status status = json_in_parse(text, length, &value, err);
    if (status != DRY_OK)
        return status;
    r->texts = r->free = fleet_in_memory(r, length, 1);
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

void
fleet_in_fields(struct fleet_in *r, const struct json_at *object,
                struct dry_fields fields, void *into)
{
    fields_read_json(&r->in, object, fields, into, &r->free);
}

void
fleet_in_check_keys(struct fleet_in *r, const struct json_at *object,
                    struct dry_fields fields, const char *const *more)
{
    const char *keys[KEYS_MAX + 1];
    size_t count = 0;
    for (size_t i = 0; i < fields.count; i++)
        keys[count++] = fields.list[i].key;
    for (; more && *more; more++)
        keys[count++] = *more;
    assert(count <= KEYS_MAX);
    keys[count] = NULL;
    json_in_object(&r->in, object, keys);
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
fleet_in_list(struct fleet_in *r, const struct json_at *list, struct dry_fields fields,
              size_t size, size_t max, size_t *count)
{
    size_t length = fleet_in_count(r, list, max);
    char *items = fleet_in_memory(r, length, size);
    for (*count = 0; items && *count < length; ++*count) {
        struct json_at at = json_in_element(list, *count);
        fleet_in_check_keys(r, &at, fields, NULL);
        fleet_in_fields(r, &at, fields, items + *count * size);
    }
    return items;
}

void *
fleet_in_memory(struct fleet_in *r, size_t count, size_t size)
{
    void *memory = calloc(count + 1, size);
    if (!memory && r->in.status == DRY_OK)
        r->in.status = fail_memory(r->in.err, "no memory");
    return memory;
}
