/* SPDX-License-Identifier: Apache-2.0 */

/*
 * forward_frames: the lines of the forward pass that a backward pass allocates for. PyTorch writes
 * them while it detects anomalies, as the strings of traceback.format_stack(), outermost first
 * (torch/csrc/profiler/combined_traceback.h, forward_traceback()). A list of dicts is read, too.
 *
 * The frames become the outer end of the record's stack, and have DRY_FRAME_FORWARD. A string stays
 * with its frame, and is written again.
 *
 * Two maps keep what was found: string -> frame, and own and
 * forward stack -> joined stack. So a repeated list costs O(its length) look-ups.
 */
#include <string.h>

#include "base/ascii.h"
#include "base/fail.h"
#include "base/memory.h"
#include "trace/pickle/pickle_field.h"
#include "trace/pickle/pickle_object.h"

/* --- one string --------------------------------------------------------------------------- */

struct part {
    const char *bytes;
    size_t length;
};

/* Read `7, in f`, which follows `", line `. Returns false for any other text. */
static bool
read_end(struct part text, uint32_t *line, struct part *name)
{
    static const char in[] = ", in ";
    uint64_t number = 0;
    size_t at = 0;
    while (at < text.length && dryi_is_digit(text.bytes[at]) && number <= UINT32_MAX)
        number = number * 10 + (uint64_t)(text.bytes[at++] - '0');
    if (at == 0 || number > UINT32_MAX || text.length - at < sizeof in ||
        memcmp(text.bytes + at, in, sizeof in - 1) != 0)
        return false;
    at += sizeof in - 1;
    *line = (uint32_t)number;
    *name = (struct part){text.bytes + at, text.length - at};
    return true;
}

/*
 * Read the first line of a frame, `  File "model.py", line 7, in f`. A file's name may have
 * quotes and a function's cannot, so the last match counts.
 */
static bool
read_head(struct part text, struct part *file, uint32_t *line, struct part *name)
{
    static const char begin[] = "  File \"", between[] = "\", line ";
    const size_t head = sizeof begin - 1, gap = sizeof between - 1;
    const char *end = memchr(text.bytes, '\n', text.length);
    size_t length = end ? (size_t)(end - text.bytes) : text.length;
    if (length <= head + gap || memcmp(text.bytes, begin, head) != 0)
        return false;
    for (size_t at = length - gap; at > head; at--) {
        struct part rest = {text.bytes + at + gap, length - at - gap};
        if (memcmp(text.bytes + at, between, gap) == 0 && read_end(rest, line, name)) {
            *file = (struct part){text.bytes + head, at - head};
            return true;
        }
    }
    return false;
}

/* Intern a part of a string. It is copied first, because the table's bytes move as it grows. */
static bool
put_part(struct dryi_pickle_walk *w, struct part part, uint32_t *string)
{
    char *copy = dryi_memory_zalloc(&w->memory, part.length, 1);
    if (!copy)
        return false;
    memcpy(copy, part.bytes, part.length);
    *string = dryi_intern_put(&w->trace->strings, copy, part.length);
    dryi_memory_free(&w->memory, copy, part.length, 1);
    return *string != DRYI_INTERN_NONE;
}

/* A string of another form is the name of its frame. */
static bool
put_text(struct dryi_pickle_walk *w, uint32_t string, uint32_t *id)
{
    struct dry_frame frame = {.name = string,
                              .file = DRY_NONE,
                              .extra = string,
                              .flags = DRY_FRAME_FORWARD | DRY_FRAME_TEXT};
    struct part text, file, name;
    text.bytes = dryi_intern_get(&w->trace->strings, string, &text.length);
    if (read_head(text, &file, &frame.line, &name)) {
        ptrdiff_t name_begin = name.bytes - text.bytes;
        if (!put_part(w, file, &frame.file))
            return false;
        text.bytes = dryi_intern_get(&w->trace->strings, string, NULL);
        name.bytes = text.bytes + name_begin;
        if (!put_part(w, name, &frame.name))
            return false;
    }
    *id = dryi_intern_put(&w->trace->frames, &frame, sizeof frame);
    return *id != DRYI_INTERN_NONE && dryi_map_put(&w->texts, string, *id);
}

/* --- a list ------------------------------------------------------------------------------- */

static enum dry_status
put_texts(struct dryi_pickle_walk *w, const struct dryi_owner *owner,
          const uint64_t *items, size_t count, uint32_t *forward)
{
    if (!dryi_memory_grow(&w->memory, &w->frame_ids, &w->frame_id_capacity, count,
                          sizeof *w->frame_ids))
        return dryi_fail_memory(w->err, "a stack");
    for (size_t i = 0; i < count; i++) {
        if (!dryi_value_is(items[i], DRYI_VALUE_STRING))
            return dryi_field_refuse_item(w, owner, DRYI_KEY_FORWARD_FRAMES, items[i],
                                          DRYI_VALUE_STRING);
        uint32_t string = (uint32_t)dryi_value_payload(items[i]);
        uint32_t *id = &w->frame_ids[count - 1 - i];
        const uint32_t *known = dryi_map_find(&w->texts, string);
        if (known)
            *id = *known;
        else if (!put_text(w, string, id))
            return dryi_fail_memory(w->err, "a frame");
    }
    *forward =
        dryi_intern_put(&w->trace->stacks, w->frame_ids, count * sizeof *w->frame_ids);
    return *forward == DRYI_INTERN_NONE ? dryi_fail_memory(w->err, "a stack") : DRY_OK;
}

enum dry_status
dryi_forward_take(struct dryi_pickle_walk *w, const struct dryi_owner *owner,
                  uint64_t value, uint32_t *forward)
{
    const uint64_t *items;
    size_t count;
    if (!dryi_object_items(w, value, DRYI_VALUE_LIST, &items, &count) || count == 0 ||
        !dryi_value_is(items[0], DRYI_VALUE_STRING))
        return dryi_field_take_stack(w, owner, DRYI_KEY_FORWARD_FRAMES, value, forward);
    enum dry_status status = put_texts(w, owner, items, count, forward);
    return status == DRY_OK
               ? dryi_object_become(w, value, dryi_value(DRYI_VALUE_STACK, *forward))
               : status;
}

/* --- joined stacks ------------------------------------------------------------------------ */

/* Copy a stack's frames to w->frame_ids behind the first `at`. */
static bool
copy_frames(struct dryi_pickle_walk *w, uint32_t stack, size_t at, size_t *count)
{
    size_t length = 0;
    if (stack != DRY_NONE)
        dryi_intern_get(&w->trace->stacks, stack, &length);
    *count = length / sizeof *w->frame_ids;
    if (!dryi_memory_grow(&w->memory, &w->frame_ids, &w->frame_id_capacity, at + *count,
                          sizeof *w->frame_ids))
        return false;
    if (length > 0)
        memcpy(w->frame_ids + at, dryi_intern_get(&w->trace->stacks, stack, NULL),
               length);
    return true;
}

static bool
mark_forward(struct dryi_pickle_walk *w, uint32_t *id)
{
    struct dry_frame frame =
        *(const struct dry_frame *)dryi_intern_get(&w->trace->frames, *id, NULL);
    frame.flags |= DRY_FRAME_FORWARD;
    *id = dryi_intern_put(&w->trace->frames, &frame, sizeof frame);
    return *id != DRYI_INTERN_NONE;
}

static bool
join(struct dryi_pickle_walk *w, uint32_t forward, uint32_t *stack)
{
    size_t own_count, count;
    if (!copy_frames(w, *stack, 0, &own_count) ||
        !copy_frames(w, forward, own_count, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (!mark_forward(w, &w->frame_ids[own_count + i]))
            return false;
    uint64_t key = (uint64_t)*stack << 32 | forward;
    *stack = dryi_intern_put(&w->trace->stacks, w->frame_ids,
                             (own_count + count) * sizeof *w->frame_ids);
    return *stack != DRYI_INTERN_NONE && dryi_map_put(&w->joined, key, *stack);
}

enum dry_status
dryi_forward_join(struct dryi_pickle_walk *w, uint32_t forward, uint32_t *stack)
{
    if (forward == DRY_NONE)
        return DRY_OK;
    const uint32_t *known = dryi_map_find(&w->joined, (uint64_t)*stack << 32 | forward);
    if (known)
        *stack = *known;
    else if (!join(w, forward, stack))
        return dryi_fail_memory(w->err, "a stack");
    return DRY_OK;
}
