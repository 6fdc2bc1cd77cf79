/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One pass lists the strings that occur in a column and replaces its values by indices
 * into that list. Texts are written twice, the first time only to learn their total
 * length. Cost: O(rows + strings of the trace + bytes of the texts).
 */
#include "trace/arrow/arrow_texts.h"

#include <string.h>

#include "base/memory.h"
#include "trace/arrow/arrow_hold.h"
#include "trace/model/utf8.h"

enum { VALUES = 1, OFFSETS = 1, BYTES = 2 }; /* buffers of a column and a dictionary */

/* The texts of a dictionary: strings of the trace by id, or fixed names (NULL). */
struct texts {
    const struct dry_trace *trace;
    enum dryi_arrow_texts kind;
    const uint32_t *strings;
    size_t count;
};

static const char *
state_name(size_t state)
{
    static const char *const names[] = {
        [DRY_BLOCK_INACTIVE] = "inactive",
        [DRY_BLOCK_ACTIVE] = "active_allocated",
        [DRY_BLOCK_PENDING_FREE] = "active_pending_free",
    };
    return names[state];
}

static const char *
find_text(const struct texts *t, size_t i, size_t *length)
{
    if (t->kind == DRYI_ARROW_STRINGS)
        return dry_trace_string(t->trace, t->strings[i], length);
    const char *name = t->kind == DRYI_ARROW_ACTIONS ? dry_action_name((enum dry_action)i)
                                                     : state_name(i);
    *length = strlen(name);
    return name;
}

/*
 * Write all texts to `bytes` and their end offsets to `offsets`; either may be NULL.
 * Returns the total bytes.
 */
static uint64_t
write_texts(const struct texts *t, int64_t *offsets, char *bytes)
{
    uint64_t at = 0;
    for (size_t i = 0; i < t->count; i++) {
        size_t length;
        const char *text = find_text(t, i, &length);
        at += dryi_utf8_make_strict(bytes ? bytes + at : NULL,
                                    (const unsigned char *)text, length);
        if (offsets)
            offsets[i + 1] = (int64_t)at;
    }
    return at;
}

static bool
make_dictionary(struct ArrowArray *array, const struct texts *t,
                const struct dry_memory *memory)
{
    if (!dryi_arrow_array_begin(array, t->count, BYTES + 1, memory))
        return false;
    uint64_t byte_count = write_texts(t, NULL, NULL);
    int64_t *offsets =
        dryi_arrow_array_take(array, OFFSETS, t->count + 1, sizeof *offsets);
    char *bytes = dryi_arrow_array_take(array, BYTES, byte_count, 1);
    if (!offsets || !bytes)
        return false;
    write_texts(t, offsets, bytes);
    return true;
}

/*
 * Replace string ids by indices into `list`, appending each string at its first use.
 * `list` and the zeroed `places` have an element for each string of the trace. Returns
 * the length of the list.
 */
static size_t
number_strings(uint32_t *codes, size_t count, uint32_t *list, uint32_t *places)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (codes[i] == DRY_NONE)
            continue;
        uint32_t *place = &places[codes[i]]; /* index + 1; 0 before its first use */
        if (*place == 0) {
            list[used++] = codes[i];
            *place = (uint32_t)used;
        }
        codes[i] = *place - 1;
    }
    return used;
}

static bool
add_strings(struct ArrowArray *array, struct texts *t, const struct dry_memory *memory)
{
    size_t string_count = dry_trace_get_view(t->trace)->string_count;
    if (string_count == 0) /* all values are then DRY_NONE */
        return make_dictionary(dryi_arrow_array_add_dictionary(array), t, memory);
    uint32_t *list = dryi_memory_zalloc(memory, string_count, 2 * sizeof *list);
    if (!list)
        return false;
    t->count = number_strings(dryi_arrow_array_buffer(array, VALUES),
                              (size_t)array->length, list, list + string_count);
    t->strings = list;
    bool is_made = make_dictionary(dryi_arrow_array_add_dictionary(array), t, memory);
    dryi_memory_free(memory, list, string_count, 2 * sizeof *list);
    return is_made;
}

bool
dryi_arrow_texts_add(struct ArrowArray *array, const struct dry_trace *trace,
                     enum dryi_arrow_texts kind, const struct dry_memory *memory)
{
    struct texts t = {.trace = trace, .kind = kind};
    if (kind == DRYI_ARROW_STRINGS)
        return add_strings(array, &t, memory);
    t.count = kind == DRYI_ARROW_ACTIONS ? DRY_ACTION_COUNT : DRY_BLOCK_PENDING_FREE + 1;
    return make_dictionary(dryi_arrow_array_add_dictionary(array), &t, memory);
}
