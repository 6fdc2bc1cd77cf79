/* SPDX-License-Identifier: Apache-2.0 */
/* Read and write members of structs by tables of fields; see <drystone/field.h>. */
#include <drystone/field.h>

#include <math.h>
#include <string.h>

static bool
is_known(const struct dry_field *f, const void *object)
{
    const void *at = (const char *)object + f->known_offset;
    switch (f->known) {
    case DRY_KNOWN_ALWAYS:
        break;
    case DRY_KNOWN_IF:
        return *(const bool *)at;
    case DRY_KNOWN_UNLESS:
        return !*(const bool *)at;
    case DRY_KNOWN_IF_ABOVE_0:
        return *(const uint64_t *)at > 0;
    case DRY_KNOWN_UNLESS_MAX:
        return *(const uint64_t *)at != UINT64_MAX;
    case DRY_KNOWN_IF_FILLED:
        return *(const char *const *)at && **(const char *const *)at;
    }
    return true;
}

bool
dry_field_get(const struct dry_field *f, const void *object,
              struct dry_field_value *value)
{
    const void *at = (const char *)object + f->offset;
    *value = (struct dry_field_value){.type = DRY_FIELD_U64};
    if (!is_known(f, object))
        return false;
    switch (f->type) {
    case DRY_FIELD_BOOL:
        value->type = DRY_FIELD_BOOL;
        value->number = *(const bool *)at;
        return true;
    case DRY_FIELD_TEXT:
        value->type = DRY_FIELD_TEXT;
        value->text = *(const char *const *)at;
        return value->text != NULL;
    case DRY_FIELD_CHARS:
        value->type = DRY_FIELD_TEXT;
        value->text = at;
        return true;
    case DRY_FIELD_WORD:
        value->type = DRY_FIELD_TEXT;
        value->text = f->word(*(const unsigned *)at);
        return true;
    case DRY_FIELD_REAL:
        value->type = DRY_FIELD_REAL;
        value->real = *(const double *)at;
        return f->unit != DRY_UNIT_SECONDS || (value->real >= 0 && isfinite(value->real));
    case DRY_FIELD_U32:
        value->number = *(const uint32_t *)at;
        return true;
    case DRY_FIELD_SIZE:
        value->number = *(const size_t *)at;
        return f->unit != DRY_UNIT_EVENT || value->number != SIZE_MAX;
    case DRY_FIELD_U64:
    case DRY_FIELD_I64:
        break;
    }
    value->number = *(const uint64_t *)at;
    return true;
}

/* Return the largest number that fits into the member; 0 of what is no whole number. */
static uint64_t
greatest(const struct dry_field *f)
{
    static const uint64_t of_types[] = {
        [DRY_FIELD_BOOL] = 1,         [DRY_FIELD_U32] = UINT32_MAX,
        [DRY_FIELD_U64] = UINT64_MAX, [DRY_FIELD_I64] = INT64_MAX,
        [DRY_FIELD_SIZE] = SIZE_MAX,  [DRY_FIELD_WORD] = 0,
    };
    if (f->type == DRY_FIELD_WORD)
        return f->word_count - 1;
    return f->unit == DRY_UNIT_PERCENT ? 100 : of_types[f->type];
}

bool
dry_field_set(const struct dry_field *f, void *object, uint64_t number)
{
    void *at = (char *)object + f->offset;
    if (greatest(f) == 0 || number > greatest(f))
        return false;
    if (f->known == DRY_KNOWN_IF && f->unit != DRY_UNIT_EVENT)
        *(bool *)((char *)object + f->known_offset) = true;
    if (f->type == DRY_FIELD_BOOL)
        *(bool *)at = number == 1;
    else if (f->type == DRY_FIELD_U32 || f->type == DRY_FIELD_WORD)
        *(uint32_t *)at = (uint32_t)number;
    else if (f->type == DRY_FIELD_SIZE)
        *(size_t *)at = (size_t)number;
    else
        *(uint64_t *)at = number;
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
