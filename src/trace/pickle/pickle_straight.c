/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea is in pickle_straight.h. Cost: a few instructions a key, and a comparison of
 * bytes for a known stack. A dict that turns out not to be plain is read twice up to that
 * byte. Memory: none.
 */
#include "trace/pickle/pickle_straight.h"

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "trace/pickle/pickle.h"
#include "trace/pickle/pickle_literal.h"
#include "trace/pickle/pickle_object.h"
#include "trace/pickle/pickle_record.h"
#include "trace/pickle/pickle_run.h"
#include "trace/pickle/pickle_stack.h"

#define KEY_COUNT 9u /* keys of a plain event: ACTION to USER_METADATA */
/* The longest pair: fetch a key, a text of 255 bytes, put it in the memo. */
#define PAIR_BYTES_MAX (5u + 2 + 255 + 5)
#define NEEDED_KEYS                                                                      \
    (1u << DRYI_KEY_ACTION | 1u << DRYI_KEY_ADDR | 1u << DRYI_KEY_SIZE |                 \
     1u << DRYI_KEY_STREAM)

/*
 * The event being read. The functions below read from `p` and return where the next field
 * begins. They return NULL if the event is not plain, or if `status` is a failure.
 */
struct straight {
    const unsigned char *end; /* end of the window */
    uint32_t keys;            /* bit per key that was read */
    bool has_empty_stack;     /* list without frames; interned at the end */
    enum dry_status status;
    uint32_t action; /* string id */
    uint64_t time_us;
    struct dryi_fields fields;
    size_t put_count; /* values to be put in the memo */
    uint64_t puts[1 + KEY_COUNT];
};

/* --- keys and values ---------------------------------------------------------------------- */

/* Step over an opcode that puts `value` in the memo at the next index, if any. */
static inline const unsigned char *
take_put(const struct dryi_pickle_walk *w, struct straight *s, const unsigned char *p,
         uint64_t value)
{
    size_t index = w->memo_count + s->put_count, length;
    if (*p == DRYI_OP_MEMOIZE)
        length = 1;
    else if (*p == DRYI_OP_BINPUT && p[1] == index)
        length = 2;
    else if (*p == DRYI_OP_LONG_BINPUT && dryi_pickle_u32(p + 1) == index)
        length = 5;
    else
        return p;
    s->puts[s->put_count++] = value;
    return p + length;
}

/* Fetch a memo entry of this kind. *id is set to its payload. */
static inline const unsigned char *
take_get(const struct dryi_pickle_walk *w, const unsigned char *p,
         enum dryi_value_kind kind, uint32_t *id)
{
    size_t index, length;
    if (*p == DRYI_OP_BINGET) {
        index = p[1];
        length = 2;
    } else if (*p == DRYI_OP_LONG_BINGET) {
        index = dryi_pickle_u32(p + 1);
        length = 5;
    } else {
        return NULL;
    }
    if (index >= w->memo_count || !dryi_value_is(w->memo[index], kind))
        return NULL;
    *id = (uint32_t)dryi_value_payload(w->memo[index]);
    return p + length;
}

static inline const unsigned char *
take_number(const unsigned char *p, uint64_t *bits)
{
    size_t length;
    uint64_t value = dryi_literal_integer(p, &length);
    *bits = (uint64_t)((int64_t)value >> DRYI_VALUE_KIND_BITS);
    return length ? p + length : NULL;
}

/* Compare with the last text: adjacent events mostly share it, so skip interning. */
static bool
is_last_text(const struct dryi_pickle_walk *w, const unsigned char *bytes, size_t length)
{
    size_t known;
    if (w->text_id == DRY_NONE)
        return false;
    const void *text = dryi_intern_get(&w->trace->strings, w->text_id, &known);
    return known == length && memcmp(text, bytes, length) == 0;
}

/* Take a text that is written out here. */
static const unsigned char *
take_literal(struct dryi_pickle_walk *w, struct straight *s, const unsigned char *p,
             uint32_t *text)
{
    size_t length = p[1];
    const unsigned char *bytes = p + 2;
    if (length > w->string_bytes_max)
        return NULL;
    if (!is_last_text(w, bytes, length))
        s->status = dryi_literal_intern(w, bytes, length, DRYI_VALUE_STRING, &w->text_id);
    if (s->status != DRY_OK)
        return NULL;
    *text = w->text_id;
    return take_put(w, s, bytes + length, dryi_value(DRYI_VALUE_STRING, *text));
}

static inline const unsigned char *
take_text(struct dryi_pickle_walk *w, struct straight *s, const unsigned char *p,
          uint32_t *text)
{
    if (*p == DRYI_OP_SHORT_BINUNICODE)
        return take_literal(w, s, p, text);
    return take_get(w, p, DRYI_VALUE_STRING, text);
}

/* Take a new list: empty, or of frames that were all written before. */
static const unsigned char *
take_list(struct dryi_pickle_walk *w, struct straight *s, const unsigned char *p,
          uint32_t *stack)
{
    size_t length = 0;
    p = take_put(w, s, p + 1, DRYI_VALUE_STACK);
    s->has_empty_stack = *p != DRYI_OP_MARK;
    if (s->has_empty_stack)
        return p;
    p++;
    if (s->end - p < (ptrdiff_t)(DRYI_RUN_BYTES_MAX + DRYI_RUN_LOOKAHEAD_BYTES))
        return NULL;
    s->status = dryi_run_read(w, p, DRYI_RUN_BYTES_MAX, stack, &length);
    return s->status == DRY_OK && length ? p + length : NULL;
}

/* --- the event ---------------------------------------------------------------------------- */

static inline const unsigned char *
take_value(struct dryi_pickle_walk *w, struct straight *s, const unsigned char *p,
           uint32_t key)
{
    struct dryi_fields *f = &s->fields;
    switch (key) {
    case DRYI_KEY_ACTION:
        return take_text(w, s, p, &s->action);
    case DRYI_KEY_ADDR:
        return take_number(p, &f->event.addr);
    case DRYI_KEY_SIZE:
        return take_number(p, &f->event.size);
    case DRYI_KEY_STREAM:
        return take_number(p, &f->lane.stream);
    case DRYI_KEY_TIME_US:
        return take_number(p, &s->time_us);
    case DRYI_KEY_FRAMES:
        if (*p == DRYI_OP_EMPTY_LIST)
            return take_list(w, s, p, &f->event.stack);
        return take_get(w, p, DRYI_VALUE_STACK, &f->event.stack);
    case DRYI_KEY_COMPILE_CONTEXT:
        return take_text(w, s, p, &f->note.compile_context);
    case DRYI_KEY_USER_METADATA:
        return take_text(w, s, p, &f->note.user_metadata);
    default:
        return NULL;
    }
}

/* Read all pairs up to SETITEMS and check that they make a plain event. */
static const unsigned char *
take_pairs(struct dryi_pickle_walk *w, struct straight *s, const unsigned char *p)
{
    const unsigned char *last = s->end - PAIR_BYTES_MAX;
    while (*p != DRYI_OP_SETITEMS) {
        uint32_t key;
        p = take_get(w, p, DRYI_VALUE_STRING, &key);
        if (!p || key >= KEY_COUNT || s->keys >> key & 1)
            return NULL;
        s->keys |= 1u << key;
        p = take_value(w, s, p, key);
        if (!p || p >= last)
            return NULL;
    }
    bool is_plain = (s->keys & NEEDED_KEYS) == NEEDED_KEYS &&
                    s->action - DRYI_TEXT_COUNT <= DRY_ACTION_SEGMENT_UNMAP;
    return is_plain ? p + 1 : NULL;
}

static enum dry_status
fill_memo(struct dryi_pickle_walk *w, struct straight *s)
{
    uint32_t *stack = &s->fields.event.stack;
    if (s->has_empty_stack)
        *stack = dryi_intern_put(&w->trace->stacks, "", 0);
    if (s->has_empty_stack && *stack == DRYI_INTERN_NONE)
        return dryi_fail_memory(w->err, "a stack");
    if (!dryi_memory_grow(&w->memory, &w->memo, &w->memo_capacity,
                          w->memo_count + s->put_count, sizeof *w->memo))
        return dryi_fail_memory(w->err, "the memo");
    enum dry_status status = DRY_OK;
    for (size_t i = 0; status == DRY_OK && i < s->put_count; i++) {
        uint64_t value = s->puts[i];
        if (value == DRYI_VALUE_STACK)
            value = dryi_value(DRYI_VALUE_STACK, *stack);
        status = dryi_memo_entry(w, value, &w->memo[w->memo_count++]);
    }
    return status;
}

static enum dry_status
push_event(struct dryi_pickle_walk *w, struct straight *s)
{
    struct dryi_fields *f = &s->fields;
    f->event.action = (enum dry_action)(s->action - DRYI_TEXT_COUNT);
    f->event.time_us = (int64_t)s->time_us;
    if (s->keys >> DRYI_KEY_TIME_US & 1)
        f->note.flags &= ~DRY_NOTE_NO_TIME;
    uint64_t value;
    enum dry_status status = dryi_fields_append(w, f, &value);
    return status == DRY_OK ? dryi_stack_push(w, value) : status;
}

/* Return true if the general walk would also have space for an event's objects. */
static bool
has_room(const struct dryi_pickle_walk *w)
{
    return dryi_object_has_room(w, 2) && dryi_stack_has_room(w, 2) &&
           w->memo_count < DRY_NONE - 1 - KEY_COUNT;
}

enum dry_status
dryi_straight_take(struct dryi_pickle_walk *w, bool *taken)
{
    struct dryi_input *in = w->in;
    struct straight s;
    *taken = false;
    if (dryi_input_unread(in) < 8 + PAIR_BYTES_MAX || !has_room(w))
        return DRY_OK;
    s.end = in->window + in->end;
    s.keys = 0;
    s.has_empty_stack = false;
    s.status = DRY_OK;
    s.time_us = 0;
    s.put_count = 0;
    const unsigned char *p = take_put(w, &s, in->window + in->at + 1, DRYI_VALUE_EVENT);
    if (*p != DRYI_OP_MARK)
        return DRY_OK;
    dryi_fields_begin(w, &s.fields);
    p = take_pairs(w, &s, p + 1);
    if (!p)
        return s.status;
    enum dry_status status = fill_memo(w, &s);
    if (status == DRY_OK)
        status = push_event(w, &s);
    in->at = (size_t)(p - in->window);
    *taken = true;
    return status;
}
