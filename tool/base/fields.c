/* SPDX-License-Identifier: Apache-2.0 */
/* See fields.h. */
#include "base/fields.h"

#include <string.h>

#include "base/json_out.h"

json_t *
fields_make_value(const struct dry_field *field, const void *object)
{
    struct dry_field_value value;
    if (!dry_field_get(field, object, &value))
        return json_null();
    if (value.type == DRY_FIELD_TEXT)
        return json_out_string(value.text);
    if (value.type == DRY_FIELD_BOOL)
        return json_boolean(value.number);
    if (value.type == DRY_FIELD_REAL)
        return json_real(value.real);
    if (field->type == DRY_FIELD_I64)
        return json_integer((json_int_t)value.number);
    if (field->unit == DRY_UNIT_NANOSECONDS)
        return json_real((double)value.number / 1000.0);
    return json_out_number(value.number);
}

json_t *
fields_add_json(json_t *made, struct dry_fields fields, const void *object)
{
    bool ok = made != NULL;
    for (size_t i = 0; i < fields.count && ok; i++)
        ok = json_object_set_new(made, fields.list[i].key,
                                 fields_make_value(&fields.list[i], object)) == 0;
    if (ok)
        return made;
    json_decref(made);
    return NULL;
}

static bool
read_number(const struct dry_field *field, const json_t *value, uint64_t *number)
{
    *number = field->unit == DRY_UNIT_EVENT ? SIZE_MAX : 0;
    if (json_is_null(value))
        return true;
    if (field->type == DRY_FIELD_BOOL) {
        *number = json_is_true(value);
        return json_is_boolean(value);
    }
    if (field->unit == DRY_UNIT_NANOSECONDS) {
        double us = json_number_value(value);
        if (!json_is_number(value) || !(us >= 0.0 && us < 1e15))
            return false;
        *number = (uint64_t)(us * 1000.0 + 0.5);
        return true;
    }
    *number = (uint64_t)json_integer_value(value);
    return json_is_integer(value) && json_integer_value(value) >= 0;
}

bool
fields_read_json(const json_t *root, struct dry_fields fields, void *object)
{
    for (size_t i = 0; i < fields.count; i++) {
        const struct dry_field *field = &fields.list[i];
        uint64_t number;
        if (field->type == DRY_FIELD_TEXT || field->type == DRY_FIELD_CHARS)
            continue;
        const json_t *value = json_object_get(root, field->key);
        if (!value || !read_number(field, value, &number) ||
            !dry_field_set(field, object, number))
            return false;
    }
    return true;
}

#define COLUMNS_BYTES 300

void
fields_init_table(struct table *table, const char *before, struct dry_fields fields,
                  const char *after)
{
    char columns[COLUMNS_BYTES];
    int used = snprintf(columns, sizeof columns, "%s", before);
    for (size_t i = 0; i < fields.count; i++) {
        if (fields.list[i].heading)
            used += snprintf(columns + used, sizeof columns - (size_t)used, "%s>%s",
                             used ? " " : "", fields.list[i].heading);
    }
    snprintf(columns + used, sizeof columns - (size_t)used, " %s", after);
    table_init(table, columns);
}

static const char *
format_value(const struct dry_field *field, const void *object,
             char text[TERM_NUMBER_BYTES])
{
    struct dry_field_value value;
    if (!dry_field_get(field, object, &value))
        return "-";
    if (field->unit == DRY_UNIT_BYTES)
        return term_format_bytes(value.number, text);
    if (field->unit == DRY_UNIT_MICROSECONDS)
        return term_format_time(value.number, text);
    if (field->unit != DRY_UNIT_SHARE)
        return term_format_count(value.number, text);
    snprintf(text, TERM_NUMBER_BYTES, "%.0f %%", value.real * 100.0);
    return text;
}

void
fields_add_cells(struct table *table, struct dry_fields fields, const void *object)
{
    char text[TERM_NUMBER_BYTES];
    for (size_t i = 0; i < fields.count; i++) {
        if (fields.list[i].heading)
            table_add(table, format_value(&fields.list[i], object, text));
    }
}
