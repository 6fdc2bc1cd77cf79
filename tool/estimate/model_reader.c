/* SPDX-License-Identifier: Apache-2.0 */
/* See model_reader.h. */
#include "estimate/model_reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"

#define NUMBER_MAX (INT64_C(1) << 40)

/* Describe a value for an error message; long texts are cut. */
static void
describe(const json_t *value, char text[48])
{
    static const char *const kinds[] = {
        [JSON_OBJECT] = "an object", [JSON_ARRAY] = "a list", [JSON_TRUE] = "true",
        [JSON_FALSE] = "false",      [JSON_NULL] = "nothing",
    };
    if (!value)
        snprintf(text, 48, "nothing");
    else if (json_is_integer(value))
        snprintf(text, 48, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        snprintf(text, 48, "%g, which is no integer", json_real_value(value));
    else if (json_is_string(value))
        snprintf(text, 48, "\"%.40s\"", json_string_value(value));
    else
        snprintf(text, 48, "%s", kinds[json_typeof(value)]);
}

void
model_refuse(struct model_reader *r, const char *key, const char *expected,
             const json_t *found)
{
    char text[48];
    describe(found, text);
    if (r->status == DRY_OK)
        r->status = fail_at(r->err, DRY_ERR_FORMAT, DRY_NO_OFFSET,
                            "%s%s: expected %s, found %s", r->path, key, expected, text);
}

/* Return a key's value; NULL if the key is missing or null. */
json_t *
model_get(const struct model_reader *r, const char *key)
{
    json_t *value = json_object_get(r->object, key);
    return value && !json_is_null(value) ? value : NULL;
}

bool
model_read_number(struct model_reader *r, const char *key, uint64_t *number)
{
    const json_t *value = model_get(r, key);
    if (!value)
        return false;
    json_int_t found = json_is_integer(value) ? json_integer_value(value) : -1;
    if (found < 0 || found > NUMBER_MAX) {
        model_refuse(r, key, "a whole number from 0 to 2^40", value);
        return false;
    }
    *number = (uint64_t)found;
    return true;
}

void
model_read_bool(struct model_reader *r, const char *key, bool *is)
{
    const json_t *value = model_get(r, key);
    if (value && !json_is_boolean(value))
        model_refuse(r, key, "true or false", value);
    else if (value)
        *is = json_is_true(value);
}

const char *
model_read_text(struct model_reader *r, const char *key)
{
    const json_t *value = model_get(r, key);
    if (value && !json_is_string(value))
        model_refuse(r, key, "a text", value);
    return json_string_value(value);
}

void
model_read_named(struct model_reader *r, const struct model_number *n,
                 struct dry_model *model)
{
    uint64_t value;
    bool is_found = false;
    memcpy(&value, (const char *)model + n->offset, sizeof value);
    const char *key = n->keys[0];
    for (size_t i = 0; i < 4 && n->keys[i] && !is_found; i++) {
        is_found = model_read_number(r, n->keys[i], &value);
        key = is_found ? n->keys[i] : key;
    }
    if (is_found)
        memcpy((char *)model + n->offset, &value, sizeof value);
    if (n->is_needed && value == 0)
        model_refuse(r, key, "a whole number of 1 or more", model_get(r, key));
}

void
model_enter(struct model_reader *r, json_t *object, const char *path)
{
    r->object = object;
    snprintf(r->path, sizeof r->path, "%s", path);
}

/* --- notes -------------------------------------------------------------------------------- */

void
model_note(struct model_reader *r, const char *format, ...)
{
    va_list args;
    if (r->note_count == MODEL_NOTES_MAX)
        return;
    va_start(args, format);
    vsnprintf(r->notes[r->note_count++], MODEL_NOTE_BYTES, format, args);
    va_end(args);
}
