/* SPDX-License-Identifier: Apache-2.0 */

/* Events and frames, which are nine tenths of every snapshot. */

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "trace/pickle/pickle_extra.h"
#include "trace/pickle/pickle_record.h"

static const struct dry_note empty_note = {DRY_NONE, DRY_NONE, DRY_NONE, DRY_NONE, 0};

/* Take a string. A value of another type is kept as an unknown value. */
static enum dry_status
take_text(struct dryi_pickle_walk *w, struct dryi_fields *f, uint64_t key, uint64_t value,
          uint32_t *string)
{
    if (!dryi_value_is(value, DRYI_VALUE_STRING))
        return dryi_extra_add(w, &f->owner, key, value);
    *string = (uint32_t)dryi_value_payload(value);
    return DRY_OK;
}

static enum dry_status
take_action(struct dryi_pickle_walk *w, struct dryi_fields *f)
{
    if (!dryi_value_is(f->action, DRYI_VALUE_STRING))
        return dryi_field_refuse(w, &f->owner, DRYI_KEY_ACTION, f->action, "a string");
    uint32_t name = (uint32_t)dryi_value_payload(f->action);
    f->event.action = DRY_ACTION_OTHER;
    if (name - DRYI_TEXT_COUNT < DRY_ACTION_OTHER) {
        f->event.action = (enum dry_action)(name - DRYI_TEXT_COUNT);
    } else {
        f->note.action_name = name;
        dryi_builder_add_unknown(w->builder, name, DRY_UNKNOWN_ACTION);
    }
    return DRY_OK;
}

static enum dry_status
take_rare_key(struct dryi_pickle_walk *w, struct dryi_fields *f, uint64_t key,
              uint64_t value)
{
    switch ((int)dryi_value_key(key)) {
    case DRYI_KEY_FORWARD_FRAMES:
        return dryi_forward_take(w, &f->owner, value, &f->forward);
    case DRYI_KEY_COMPILE_CONTEXT:
        return take_text(w, f, key, value, &f->note.compile_context);
    case DRYI_KEY_USER_METADATA:
        return take_text(w, f, key, value, &f->note.user_metadata);
    case DRYI_KEY_POOL_ID:
        return dryi_field_take_pool(w, &f->owner, DRYI_KEY_POOL_ID, value, &f->lane);
    case DRYI_KEY_DEVICE_FREE:
        f->device_free = value;
        return DRY_OK;
    default:
        return dryi_extra_add(w, &f->owner, key, value);
    }
}

static enum dry_status
take_key(struct dryi_pickle_walk *w, struct dryi_fields *f, uint64_t key, uint64_t value)
{
    uint64_t bits;
    enum dry_status status = DRY_OK;
    enum dryi_key known = dryi_value_key(key);
    switch ((int)known) {
    case DRYI_KEY_ACTION:
        f->action = value;
        break;
    case DRYI_KEY_ADDR:
        f->addr = value;
        break;
    case DRYI_KEY_SIZE:
        f->has_size = true;
        status = dryi_field_take_int(w, &f->owner, known, value, &f->event.size);
        break;
    case DRYI_KEY_STREAM:
        f->has_stream = true;
        status = dryi_field_take_int(w, &f->owner, known, value, &f->lane.stream);
        break;
    case DRYI_KEY_TIME_US:
        status = dryi_field_take_int(w, &f->owner, known, value, &bits);
        f->event.time_us = status == DRY_OK ? (int64_t)bits : 0;
        f->note.flags &= ~DRY_NOTE_NO_TIME;
        break;
    case DRYI_KEY_FRAMES:
        return dryi_field_take_stack(w, &f->owner, known, value, &f->event.stack);
    default:
        return take_rare_key(w, f, key, value);
    }
    return status;
}

/* Take the address. An `oom` event has the device's free bytes in its place. */
static enum dry_status
take_addr(struct dryi_pickle_walk *w, struct dryi_fields *f)
{
    bool is_oom = f->event.action == DRY_ACTION_OOM;
    uint64_t used = is_oom ? f->device_free : f->addr;
    uint64_t unused = is_oom ? f->addr : f->device_free;
    enum dryi_key used_key = is_oom ? DRYI_KEY_DEVICE_FREE : DRYI_KEY_ADDR;
    enum dryi_key unused_key = is_oom ? DRYI_KEY_ADDR : DRYI_KEY_DEVICE_FREE;
    enum dry_status status = DRY_OK;
    if (unused != DRYI_NO_WORD)
        status = dryi_extra_add(w, &f->owner, dryi_value(DRYI_VALUE_STRING, unused_key),
                                unused);
    if (status != DRY_OK)
        return status;
    if (used != DRYI_NO_WORD)
        return dryi_field_take_int(w, &f->owner, used_key, used, &f->event.addr);
    f->note.flags |= DRY_NOTE_NO_ADDR;
    return DRY_OK;
}

/* Refuse a memory event without an address, a size or a stream. */
static enum dry_status
check_present(struct dryi_pickle_walk *w, const struct dryi_fields *f)
{
    if (f->event.action > DRY_ACTION_SEGMENT_UNMAP)
        return DRY_OK;
    if (f->addr == DRYI_NO_WORD)
        return dryi_field_miss(w, &f->owner, DRYI_KEY_ADDR);
    if (!f->has_size)
        return dryi_field_miss(w, &f->owner, DRYI_KEY_SIZE);
    if (!f->has_stream)
        return dryi_field_miss(w, &f->owner, DRYI_KEY_STREAM);
    return DRY_OK;
}

/* Intern the note. Try the last one first, because adjacent events mostly share it. */
static enum dry_status
take_note(struct dryi_pickle_walk *w, struct dryi_fields *f)
{
    if (memcmp(&f->note, &empty_note, sizeof empty_note) == 0)
        return DRY_OK;
    if (w->note_id == DRY_NONE || memcmp(&f->note, &w->note, sizeof w->note) != 0) {
        w->note = f->note;
        w->note_id = dryi_intern_put(&w->trace->notes, &f->note, sizeof f->note);
        if (w->note_id == DRYI_INTERN_NONE)
            return dryi_fail_memory(w->err, "a note");
    }
    f->event.note = w->note_id;
    return DRY_OK;
}

void
dryi_fields_begin(struct dryi_pickle_walk *w, struct dryi_fields *f)
{
    *f = (struct dryi_fields){
        .event = {.stack = DRY_NONE, .note = DRY_NONE},
        .note = empty_note,
        .owner = {"event", w->trace->events.count, DRY_UNKNOWN_EVENT_KEY},
        .device_free = DRYI_NO_WORD,
        .addr = DRYI_NO_WORD,
        .forward = DRY_NONE,
    };
    f->note.flags = DRY_NOTE_NO_TIME;
    dryi_extra_begin(w);
}

enum dry_status
dryi_fields_append(struct dryi_pickle_walk *w, struct dryi_fields *f, uint64_t *value)
{
    enum dry_status status = take_note(w, f);
    if (status == DRY_OK)
        status = dryi_forward_join(w, f->forward, &f->event.stack);
    if (status == DRY_OK)
        status = dryi_field_take_lane(w, &f->lane, &f->event.lane);
    if (status != DRY_OK)
        return status;
    size_t row = w->trace->events.count;
    if (!dryi_builder_append_event(w->builder, &f->event))
        return dryi_builder_check(w->builder, w->err);
    *value = dryi_value(DRYI_VALUE_EVENT, row);
    return DRY_OK;
}

static enum dry_status
take_fields(struct dryi_pickle_walk *w, struct dryi_fields *f, uint64_t *value)
{
    enum dry_status status = take_action(w, f);
    if (status == DRY_OK)
        status = take_addr(w, f);
    if (status == DRY_OK)
        status = check_present(w, f);
    if (status == DRY_OK)
        status = dryi_extra_end(w, &f->note.extra);
    return status == DRY_OK ? dryi_fields_append(w, f, value) : status;
}

enum dry_status
dryi_event_take(struct dryi_pickle_walk *w, const uint64_t *pairs, size_t pair_count,
                uint64_t *value)
{
    struct dryi_fields f;
    dryi_fields_begin(w, &f);
    enum dry_status status = DRY_OK;
    for (size_t i = 0; status == DRY_OK && i < pair_count; i++)
        status = take_key(w, &f, pairs[2 * i], pairs[2 * i + 1]);
    return status == DRY_OK ? take_fields(w, &f, value) : status;
}

static enum dry_status
take_frame_key(struct dryi_pickle_walk *w, const struct dryi_owner *owner,
               struct dry_frame *frame, uint64_t key, uint64_t value)
{
    uint64_t bits;
    enum dryi_key known = dryi_value_key(key);
    if (known == DRYI_KEY_LINE && dryi_field_int(w, value, &bits) && bits <= UINT32_MAX)
        frame->line = (uint32_t)bits;
    else if (known == DRYI_KEY_NAME && dryi_value_is(value, DRYI_VALUE_STRING))
        frame->name = (uint32_t)dryi_value_payload(value);
    else if (known == DRYI_KEY_FILENAME && dryi_value_is(value, DRYI_VALUE_STRING))
        frame->file = (uint32_t)dryi_value_payload(value);
    else
        return dryi_extra_add(w, owner, key, value);
    return DRY_OK;
}

enum dry_status
dryi_frame_take(struct dryi_pickle_walk *w, const uint64_t *pairs, size_t pair_count,
                uint64_t *value)
{
    struct dry_frame frame = {.name = DRY_NONE, .file = DRY_NONE};
    struct dryi_owner owner = {"frame", w->trace->frames.count, DRY_UNKNOWN_FRAME_KEY};
    enum dry_status status = DRY_OK;
    dryi_extra_begin(w);
    for (size_t i = 0; status == DRY_OK && i < pair_count; i++)
        status = take_frame_key(w, &owner, &frame, pairs[2 * i], pairs[2 * i + 1]);
    if (status == DRY_OK)
        status = dryi_extra_end(w, &frame.extra);
    if (status != DRY_OK)
        return status;
    uint32_t id = dryi_intern_put(&w->trace->frames, &frame, sizeof frame);
    if (id == DRYI_INTERN_NONE)
        return dryi_fail_memory(w->err, "a frame");
    *value = dryi_value(DRYI_VALUE_FRAME, id);
    return DRY_OK;
}
