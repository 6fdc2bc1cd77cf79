/* SPDX-License-Identifier: Apache-2.0 */
/* Read and write members of structs by tables of fields; see <drystone/field.h>. */
#include <drystone/field.h>

#include <string.h>

static bool
read_bool(const void *object, size_t offset)
{
    bool value;
    memcpy(&value, (const char *)object + offset, sizeof value);
    return value;
}

static uint64_t
read_u64(const void *object, size_t offset)
{
    uint64_t value;
    memcpy(&value, (const char *)object + offset, sizeof value);
    return value;
}

static bool
is_known(const struct dry_field *f, const void *object)
{
    switch (f->known) {
    case DRY_KNOWN_ALWAYS:
        break;
    case DRY_KNOWN_IF:
        return read_bool(object, f->known_offset);
    case DRY_KNOWN_UNLESS:
        return !read_bool(object, f->known_offset);
    case DRY_KNOWN_IF_ABOVE_0:
        return read_u64(object, f->known_offset) > 0;
    }
    return true;
}

_Static_assert(sizeof(size_t) == sizeof(uint64_t), "a size_t is read as a uint64_t");

bool
dry_field_get(const struct dry_field *f, const void *object,
              struct dry_field_value *value)
{
    const char *at = (const char *)object + f->offset;
    *value = (struct dry_field_value){.type = DRY_FIELD_U64};
    if (!is_known(f, object))
        return false;
    switch (f->type) {
    case DRY_FIELD_BOOL:
        value->type = DRY_FIELD_BOOL;
        value->number = read_bool(object, f->offset);
        return true;
    case DRY_FIELD_TEXT:
        value->type = DRY_FIELD_TEXT;
        memcpy(&value->text, at, sizeof value->text);
        return value->text != NULL;
    case DRY_FIELD_CHARS:
        value->type = DRY_FIELD_TEXT;
        value->text = at;
        return true;
    case DRY_FIELD_U64:
    case DRY_FIELD_I64:
    case DRY_FIELD_SIZE:
        break;
    }
    value->number = read_u64(object, f->offset);
    return f->unit != DRY_UNIT_EVENT || value->number != SIZE_MAX;
}

bool
dry_field_set(const struct dry_field *f, void *object, uint64_t number)
{
    char *at = (char *)object + f->offset;
    bool truth = number == 1;
    if (f->type == DRY_FIELD_BOOL && number <= 1)
        memcpy(at, &truth, sizeof truth);
    else if (f->type == DRY_FIELD_U64 || f->type == DRY_FIELD_SIZE ||
             (f->type == DRY_FIELD_I64 && number <= INT64_MAX))
        memcpy(at, &number, sizeof number);
    else
        return false;
    return true;
}

const struct dry_field *
dry_fields_find(const struct dry_fields *fields, const char *key)
{
    for (size_t i = 0; i < fields->count; i++) {
        if (strcmp(fields->list[i].key, key) == 0)
            return &fields->list[i];
    }
    return NULL;
}
