/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The plain trace: one event a line, `op id size stream time_us [label]`.
 *
 *     i  alive before the window        r id stream  record_stream
 *     a  alloc                          s stream     everything recorded on it is done
 *     f  free                           e            empty_cache
 *     p pool, q pool                    begin and end allocation to a private pool
 *
 * `f` may stop after any field. The short lines may have a time after their fields. A
 * line without a time takes that of the line before, and a note says so. A free takes
 * size and lane from its allocation, whatever the line repeats.
 *
 * Pools nest: an allocation goes to the pool begun last. Pool N is PyTorch's (0, N), as
 * for a MemPool. Cost: O(bytes). Memory follows the largest number of live allocations.
 */
#include "trace/text/text_read.h"

#include "base/fail.h"
#include "trace/model/live.h"

#define POOL_DEPTH_MAX 64u

struct plain {
    struct dryi_text_read *r;
    struct dryi_text *text;
    struct dryi_live live;
    uint64_t pools[POOL_DEPTH_MAX]; /* pools that are open, innermost last */
    size_t pool_count;
    int64_t time_us; /* time of the last event */
    struct dry_event event;
    struct dry_note note; /* the current event's note */
    bool has_note;
};

static const struct dry_note empty_note = {DRY_NONE, DRY_NONE, DRY_NONE, DRY_NONE, 0};

static enum dry_status
read_lane(struct plain *p, uint64_t stream, uint64_t pool)
{
    return dryi_text_add_lane(p->r, stream, pool, &p->event.lane);
}

/* Read a time, or take that of the line before. A label may follow. */
static enum dry_status
read_time(struct plain *p, bool required)
{
    struct dryi_word word;
    size_t before = p->text->at;
    if (!required && !dryi_text_next_word(p->text, &word)) {
        p->event.time_us = p->time_us;
        p->note.flags |= DRY_NOTE_NO_TIME;
        p->has_note = true;
        return DRY_OK;
    }
    p->text->at = before;
    uint64_t time_us;
    enum dry_status status =
        dryi_text_next_number(p->text, "a time in microseconds", INT64_MAX, &time_us);
    if (status == DRY_OK)
        p->event.time_us = p->time_us = (int64_t)time_us;
    return status;
}

static enum dry_status
read_end(struct plain *p)
{
    struct dryi_word word;
    if (dryi_text_next_word(p->text, &word))
        return dryi_text_fail_word(p->text, &word, "the end of the line");
    return DRY_OK;
}

/* Read the rest of the line as a label, without blanks at its ends. */
static enum dry_status
read_label(struct plain *p)
{
    struct dryi_text *t = p->text;
    struct dryi_word word;
    if (!dryi_text_next_word(t, &word))
        return DRY_OK;
    size_t end = t->length;
    while (t->line[end - 1] == ' ' || t->line[end - 1] == '\t')
        end--;
    p->note.user_metadata =
        dry_trace_add_string(p->r->builder, word.bytes, end - word.at);
    if (p->note.user_metadata == DRY_NONE)
        return dryi_fail_memory(p->r->err, "a label");
    p->has_note = true;
    return DRY_OK;
}

/* Read an id, which must be alive. */
static enum dry_status
read_live(struct plain *p, struct dryi_word *word, const struct dryi_live_entry **entry)
{
    uint64_t id;
    bool found = dryi_text_next_word(p->text, word);
    if (!found)
        return dryi_text_fail(p->text, p->text->at,
                              "expected an id, found the end of the line");
    enum dry_status status = dryi_text_number(p->text, word, "an id", UINT64_MAX, &id);
    if (status != DRY_OK)
        return status;
    *entry = dryi_live_find(&p->live, id);
    if (!*entry)
        return dryi_text_fail_word(p->text, word, "the id of a live allocation");
    p->event.addr = id;
    return DRY_OK;
}

static enum dry_status
read_alloc(struct plain *p)
{
    struct dryi_word word;
    uint64_t stream;
    if (!dryi_text_next_word(p->text, &word))
        return dryi_text_fail(p->text, p->text->at,
                              "expected an id, found the end of the line");
    enum dry_status status =
        dryi_text_number(p->text, &word, "an id", UINT64_MAX, &p->event.addr);
    if (status == DRY_OK && dryi_live_find(&p->live, p->event.addr))
        return dryi_text_fail_word(p->text, &word, "an id that is not alive already");
    if (status == DRY_OK)
        status =
            dryi_text_next_number(p->text, "a size in bytes", UINT64_MAX, &p->event.size);
    if (status == DRY_OK)
        status = dryi_text_next_number(p->text, "a stream", UINT64_MAX, &stream);
    if (status == DRY_OK)
        status = read_time(p, true);
    if (status == DRY_OK)
        status = read_label(p);
    if (status == DRY_OK)
        status = read_lane(p, stream, p->pool_count ? p->pools[p->pool_count - 1] : 0);
    if (status == DRY_OK &&
        !dryi_live_put(&p->live, p->event.addr, p->event.size, p->event.lane))
        return dryi_fail_memory(p->r->err, "live allocations");
    return status;
}

/* Read `f id [size [stream [time_us [label]]]]`. Size and stream need only be numbers. */
static enum dry_status
read_free(struct plain *p)
{
    const struct dryi_live_entry *entry = NULL;
    struct dryi_word word;
    uint64_t ignored;
    enum dry_status status = read_live(p, &word, &entry);
    if (!entry)
        return status;
    if (dryi_text_next_word(p->text, &word)) {
        status =
            dryi_text_number(p->text, &word, "a size in bytes", UINT64_MAX, &ignored);
        if (status == DRY_OK && dryi_text_next_word(p->text, &word))
            status = dryi_text_number(p->text, &word, "a stream", UINT64_MAX, &ignored);
    }
    if (status == DRY_OK)
        status = read_time(p, false);
    if (status == DRY_OK)
        status = read_label(p);
    if (status != DRY_OK)
        return status;
    p->event.size = entry->size;
    p->event.lane = entry->lane;
    dryi_live_remove(&p->live, entry);
    return DRY_OK;
}

static enum dry_status
read_record(struct plain *p)
{
    const struct dryi_live_entry *entry;
    struct dryi_word word;
    uint64_t stream;
    enum dry_status status = read_live(p, &word, &entry);
    if (status == DRY_OK)
        status = dryi_text_next_number(p->text, "a stream", UINT64_MAX, &stream);
    if (status == DRY_OK)
        status = read_lane(p, stream, 0);
    if (status == DRY_OK)
        p->event.size = entry->size;
    return status;
}

static enum dry_status
read_stream_end(struct plain *p)
{
    uint64_t stream;
    enum dry_status status =
        dryi_text_next_number(p->text, "a stream", UINT64_MAX, &stream);
    return status == DRY_OK ? read_lane(p, stream, 0) : status;
}

/* Return the index of an open pool, or pool_count if it is not open. */
static size_t
find_pool(const struct plain *p, uint64_t pool)
{
    size_t i = 0;
    while (i < p->pool_count && p->pools[i] != pool)
        i++;
    return i;
}

static enum dry_status
begin_pool(struct plain *p, const struct dryi_word *word, uint64_t pool)
{
    if (pool == 0)
        return dryi_text_fail_word(p->text, word, "a pool from 1 (0 is the default)");
    if (find_pool(p, pool) < p->pool_count)
        return dryi_text_fail_word(p->text, word, "a pool that has not begun yet");
    if (p->pool_count == POOL_DEPTH_MAX)
        return dryi_text_fail(p->text, word->at, "more than %u pools begun at once",
                              POOL_DEPTH_MAX);
    p->pools[p->pool_count++] = pool;
    return DRY_OK;
}

static enum dry_status
end_pool(struct plain *p, const struct dryi_word *word, uint64_t pool)
{
    size_t i = find_pool(p, pool);
    if (i == p->pool_count)
        return dryi_text_fail_word(p->text, word, "a pool that has begun");
    for (p->pool_count--; i < p->pool_count; i++)
        p->pools[i] = p->pools[i + 1];
    return DRY_OK;
}

static enum dry_status
read_pool(struct plain *p)
{
    struct dryi_word word;
    uint64_t pool;
    if (!dryi_text_next_word(p->text, &word))
        return dryi_text_fail(p->text, p->text->at,
                              "expected a pool, found the end of the line");
    enum dry_status status =
        dryi_text_number(p->text, &word, "a pool", UINT64_MAX, &pool);
    if (status != DRY_OK)
        return status;
    status = p->event.action == DRY_ACTION_POOL_BEGIN ? begin_pool(p, &word, pool)
                                                      : end_pool(p, &word, pool);
    return status == DRY_OK ? read_lane(p, 0, pool) : status;
}

/* Read a short line: its fields after the op, then an optional time. */
static enum dry_status
read_short(struct plain *p, enum dry_status (*read_fields)(struct plain *))
{
    enum dry_status status = read_fields(p);
    if (status == DRY_OK)
        status = read_time(p, false);
    return status == DRY_OK ? read_end(p) : status;
}

static enum dry_status
read_empty_cache(struct plain *p)
{
    return read_lane(p, 0, 0);
}

/* Read the fields after an op letter. Returns UNSUPPORTED for an unknown op. */
static enum dry_status
read_fields(struct plain *p, char op)
{
    switch (op) {
    case 'i':
        p->event.action = DRY_ACTION_LIVE;
        return read_alloc(p);
    case 'a':
        p->event.action = DRY_ACTION_ALLOC;
        return read_alloc(p);
    case 'f':
        p->event.action = DRY_ACTION_FREE_REQUESTED;
        return read_free(p);
    case 'r':
        p->event.action = DRY_ACTION_RECORD_STREAM;
        return read_short(p, read_record);
    case 's':
        p->event.action = DRY_ACTION_STREAM_END;
        return read_short(p, read_stream_end);
    case 'e':
        p->event.action = DRY_ACTION_EMPTY_CACHE;
        return read_short(p, read_empty_cache);
    case 'p':
        p->event.action = DRY_ACTION_POOL_BEGIN;
        return read_short(p, read_pool);
    case 'q':
        p->event.action = DRY_ACTION_POOL_END;
        return read_short(p, read_pool);
    default:
        return DRY_ERR_UNSUPPORTED; /* the caller reports the word */
    }
}

static enum dry_status
read_event(struct plain *p)
{
    struct dryi_word op;
    dryi_text_next_word(p->text, &op);
    p->event = (struct dry_event){.stack = DRY_NONE, .note = DRY_NONE};
    p->note = empty_note;
    p->has_note = false;
    enum dry_status status =
        op.length == 1 ? read_fields(p, op.bytes[0]) : DRY_ERR_UNSUPPORTED;
    if (status == DRY_ERR_UNSUPPORTED)
        return dryi_text_fail_word(p->text, &op, "an op, one of i a f r s e p q");
    if (status == DRY_OK && p->has_note) {
        p->event.note = dry_trace_add_note(p->r->builder, &p->note);
        if (p->event.note == DRY_NONE)
            return dryi_fail_memory(p->r->err, "a note");
    }
    return status == DRY_OK ? dryi_text_add_event(p->r, &p->event) : status;
}

enum dry_status
dryi_plain_read(struct dryi_text_read *r)
{
    struct plain p = {.r = r, .text = &r->text};
    dryi_live_init(&p.live, &r->memory);
    enum dry_status status;
    do {
        status = read_event(&p);
        if (status == DRY_OK)
            status = dryi_text_next_filled(p.text, '#');
    } while (status == DRY_OK);
    dryi_live_finish(&p.live);
    return status == DRY_END ? DRY_OK : status;
}
