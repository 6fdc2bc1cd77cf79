/* SPDX-License-Identifier: Apache-2.0 */
/* See fields.h. */
#include "base/fields.h"

#include <string.h>

#include "base/json_out.h"

static json_t *
make_value(const struct dry_field *field, const void *object)
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
                                 make_value(&fields.list[i], object)) == 0;
    if (ok)
        return made;
    json_decref(made);
    return NULL;
}

static void
read_text(struct json_in *in, const struct json_at *at, void *member, char **texts)
{
    const char *text = json_is_null(at->value) ? "" : json_in_text(in, *at, "");
    const char *copy = "";
    if (*text) {
        size_t bytes = strlen(text) + 1;
        copy = memcpy(*texts, text, bytes);
        *texts += bytes;
    }
    memcpy(member, &copy, sizeof copy);
}

/* Return the value of the enum that has the text as its name. */
static uint64_t
read_word(struct json_in *in, const struct json_at *at, const struct dry_field *field)
{
    const char *text = json_in_text(in, *at, "");
    for (unsigned i = 0; i < field->word_count; i++)
        if (strcmp(text, field->word(i)) == 0)
            return i;
    json_in_fail(in, at, "not a word that is known here");
    return 0;
}

static uint64_t
read_number(struct json_in *in, const struct json_at *at, const struct dry_field *field)
{
    if (field->type == DRY_FIELD_WORD)
        return read_word(in, at, field);
    if (field->type == DRY_FIELD_BOOL)
        return json_in_flag(in, *at, false);
    if (field->unit == DRY_UNIT_NANOSECONDS)
        return json_in_time(in, *at);
    return json_in_unsigned(in, *at);
}

void
fields_read_json(struct json_in *in, const struct json_at *object,
                 struct dry_fields fields, void *into, char **texts)
{
    for (size_t i = 0; i < fields.count; i++) {
        const struct dry_field *f = &fields.list[i];
        struct json_at at = json_in_key(object, f->key);
        bool is_text = f->type == DRY_FIELD_TEXT || f->type == DRY_FIELD_CHARS;
        bool is_null = json_is_null(at.value), is_event = f->unit == DRY_UNIT_EVENT;
        if (!at.value)
            json_in_fail(in, &at, "is missing");
        if (f->type == DRY_FIELD_TEXT && texts)
            read_text(in, &at, (char *)into + f->offset, texts);
        if (is_text || (is_null && f->known != DRY_KNOWN_ALWAYS && !is_event))
            continue;
        if (!dry_field_set(f, into,
                           is_null && is_event ? SIZE_MAX : read_number(in, &at, f)))
            json_in_fail(in, &at, "is too large");
    }
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
