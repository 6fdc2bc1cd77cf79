/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Build the trace a second time, with aliases for its strings.
 *
 * Frames, stacks and notes are added in the order of their ids; one array each maps old
 * ids to new ones. Events, segments and blocks are copied with their ids mapped. A string
 * enters the new trace only if a row refers to it, so no unused string of the original
 * can leak.
 */
#include <drystone/anonymize.h>

#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "trace/anonymize/alias.h"
#include "trace/anonymize/anonymize_rules.h"
#include "trace/anonymize/opcode_run.h"
#include "trace/anonymize/public_text.h"
#include "trace/model/trace.h"
#include "trace/pickle/pickle.h"

#define DIGITS_DEFAULT 8u
#define DIGITS_MAX 16u

struct job {
    const struct dry_trace *from;
    const struct dry_trace_view *view;
    const struct dry_anonymize_options *options;
    struct dry_memory memory;
    struct dry_error *err;
    enum dry_status status; /* first failure; every later step does nothing */
    struct dry_trace_builder *builder;
    struct dryi_alias alias;
    int64_t time_base;
    char *text; /* the string being written */
    size_t text_count, text_capacity;
    uint32_t *frames, *stacks, *notes; /* old id -> new id */
};

void
dry_anonymize_options_init_sized(struct dry_anonymize_options *options,
                                 size_t struct_size)
{
    const struct dry_anonymize_options defaults = {
        .digits = DIGITS_DEFAULT,
    };
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

enum dry_status
dryi_anonymize_take_options(struct dry_anonymize_options *options,
                            const struct dry_anonymize_options *given,
                            struct dry_error *err)
{
    dry_anonymize_options_init(options);
    enum dry_status status = dryi_sized_take(options, sizeof *options, given, err);
    if (status != DRY_OK)
        return status;
    if (!options->key || options->key_bytes == 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "no key, expected 16 random bytes: strings hashed without one "
                         "can be guessed");
    if (options->digits == 0 || options->digits > DIGITS_MAX)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "%u digits, expected 1 to %u",
                         options->digits, DIGITS_MAX);
    return DRY_OK;
}

static void
consider_time(int64_t time, int64_t *least, bool *is_known)
{
    if (!*is_known || time < *least)
        *least = time;
    *is_known = true;
}

int64_t
dryi_anonymize_time_base(const struct dry_trace *trace,
                         const struct dry_anonymize_options *options)
{
    const struct dry_trace_view *v = &trace->view;
    int64_t least = 0;
    bool is_known = false;
    for (size_t i = 0; i < v->event_count && !options->keep_times; i++) {
        if (!(dry_trace_note(trace, v->note[i])->flags & DRY_NOTE_NO_TIME))
            consider_time(v->time_us[i], &least, &is_known);
    }
    for (size_t i = 0; i < v->annotation_count && !options->keep_times; i++)
        consider_time(v->annotations[i].time_us, &least, &is_known);
    return least;
}

/* --- writing one string ------------------------------------------------------------------ */

/* Keep the first failure: later ones are its consequences. */
static void
fail(struct job *j, enum dry_status status)
{
    if (j->status == DRY_OK)
        j->status = status;
}

static void
put(struct job *j, const char *bytes, size_t count)
{
    if (j->status != DRY_OK)
        return;
    if (!dryi_memory_grow(&j->memory, &j->text, &j->text_capacity,
                          j->text_count + count + 1, 1)) {
        fail(j, dryi_fail_memory(j->err, "an anonymous string"));
        return;
    }
    if (count)
        memcpy(j->text + j->text_count, bytes, count);
    j->text_count += count;
}

/* Write an alias such as "f_3fa92c1d". */
static void
put_alias(struct job *j, char letter, const char *bytes, size_t length)
{
    if (j->status != DRY_OK)
        return;
    uint32_t id = dryi_alias_put(&j->alias, bytes, length);
    if (id == DRYI_ALIAS_FULL) {
        fail(j, dryi_fail(j->err, DRY_ERR_LIMIT,
                          "%u digits do not tell all strings apart: take another key",
                          DRYI_ALIAS_DIGITS_MAX));
        return;
    }
    if (id == DRYI_INTERN_NONE) {
        fail(j, dryi_fail_memory(j->err, "an anonymous string"));
        return;
    }
    size_t count;
    const char *digits = dryi_intern_get(&j->alias.digits, id, &count);
    put(j, (char[]){letter, '_'}, 2);
    put(j, digits, count);
}

static uint32_t
end_text(struct job *j)
{
    if (j->status != DRY_OK)
        return DRY_NONE;
    uint32_t id = dry_trace_add_string(j->builder, j->text, j->text_count);
    if (id == DRY_NONE)
        fail(j, dryi_builder_check(j->builder, j->err));
    return id;
}

static void
put_path(struct job *j, const char *path, size_t length, size_t tail)
{
    size_t at = 0, copied = 0;
    struct dryi_path_part part;
    while (dryi_path_next(path, length, tail, &at, &part)) {
        put(j, path + copied, part.begin - copied);
        copied = part.begin;
        if (part.is_public)
            continue;
        bool is_file = part.stem_length < part.length;
        put_alias(j, is_file ? 'm' : 'd', path + part.begin, part.stem_length);
        copied += part.stem_length;
    }
    put(j, path + copied, length - copied);
}

static void
put_settings(struct job *j, const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t end = at;
        while (end < length && !dryi_is_setting_separator(text[end]))
            end++;
        if (end == at)
            put(j, text + end++, 1);
        else if (dryi_public_setting(text + at, end - at))
            put(j, text + at, end - at);
        else
            put_alias(j, 's', text + at, end - at);
        at = end;
    }
}

static uint32_t
replace(struct job *j, enum dryi_text_role role, uint32_t string, size_t tail)
{
    if (string == DRY_NONE || j->status != DRY_OK)
        return DRY_NONE;
    size_t length;
    const char *text = dry_trace_string(j->from, string, &length);
    bool is_long = length > DRYI_PIECEWISE_BYTES_MAX;
    j->text_count = 0;
    if (dryi_text_is_public(j->options, role, text, length))
        put(j, text, length);
    else if (role == DRYI_TEXT_ROLE_FILE && !is_long)
        put_path(j, text, length, tail);
    else if (role == DRYI_TEXT_ROLE_SETTINGS && !is_long)
        put_settings(j, text, length);
    else
        put_alias(j, dryi_text_letter(role), text, length);
    return end_text(j);
}

/* --- unknown keys ------------------------------------------------------------------------ */

/*
 * Write an opcode, a length in `length_bytes` bytes, and the alias. The length is filled
 * in last, because the alias's length is known only then.
 */
static void
put_counted(struct job *j, enum dryi_opcode opcode, size_t length_bytes,
            const struct dryi_opcode_piece *piece)
{
    size_t begin = j->text_count, head_length = 1 + length_bytes;
    char head[9] = {0};
    put(j, head, head_length);
    put_alias(j, 's', piece->text, piece->text_length);
    if (j->status != DRY_OK)
        return;
    size_t length = j->text_count - begin - head_length;
    head[0] = (char)opcode;
    for (size_t i = 0; i < length_bytes; i++)
        head[1 + i] = (char)(length >> 8 * i & 0xff);
    memcpy(j->text + begin, head, head_length);
}

static void
put_int(struct job *j, const struct dryi_opcode_piece *piece)
{
    uint32_t number = dryi_alias_int(&j->alias.key, piece->bits, piece->is_wide);
    char bytes[5] = {DRYI_OP_BININT};
    for (size_t i = 0; i < 4; i++)
        bytes[1 + i] = (char)(number >> 8 * i & 0xff);
    put(j, bytes, sizeof bytes);
}

static void
put_float(struct job *j, const struct dryi_opcode_piece *piece)
{
    uint64_t bits = dryi_alias_float(&j->alias.key, piece->bits);
    char bytes[9] = {DRYI_OP_BINFLOAT};
    for (size_t i = 0; i < 8; i++)
        bytes[1 + i] = (char)(bits >> (56 - 8 * i) & 0xff);
    put(j, bytes, sizeof bytes);
}

static void
put_piece(struct job *j, const struct dryi_opcode_piece *piece)
{
    if (dryi_opcode_piece_is_public(piece))
        put(j, piece->bytes, piece->length);
    else if (piece->kind == DRYI_PIECE_INT)
        put_int(j, piece);
    else if (piece->kind == DRYI_PIECE_FLOAT)
        put_float(j, piece);
    else if (piece->kind == DRYI_PIECE_STRING)
        put_counted(j, DRYI_OP_SHORT_BINUNICODE, 1, piece);
    else if (piece->opcode == DRYI_OP_BYTEARRAY8)
        put_counted(j, DRYI_OP_BYTEARRAY8, 8, piece);
    else
        put_counted(j, DRYI_OP_SHORT_BINBYTES, 1, piece);
}

/*
 * Replace the strings in unknown keys. Returns the new string, or DRY_NONE if the result
 * is longer than a reader accepts: the keys are then dropped.
 */
static uint32_t
replace_extra(struct job *j, uint32_t extra)
{
    if (extra == DRY_NONE || j->status != DRY_OK)
        return DRY_NONE;
    size_t length;
    const char *bytes = dry_trace_string(j->from, extra, &length);
    struct dryi_opcode_run run;
    struct dryi_opcode_piece piece;
    dryi_opcode_run_init(&run, bytes, length);
    j->text_count = 0;
    while (j->status == DRY_OK && dryi_opcode_run_next(&run, &piece))
        put_piece(j, &piece);
    if (run.is_bad)
        fail(j, dryi_fail(j->err, DRY_ERR_ARGUMENT,
                          "unknown keys that are no run of opcodes"));
    return j->text_count > DRYI_EXTRA_BYTES_MAX ? DRY_NONE : end_text(j);
}

/* --- tables -------------------------------------------------------------------------------- */

static uint32_t
map(const uint32_t *ids, uint32_t id)
{
    return id == DRY_NONE ? DRY_NONE : ids[id];
}

static uint32_t *
take_ids(struct job *j, uint32_t count)
{
    uint32_t *ids = dryi_memory_zalloc(&j->memory, (size_t)count + 1, sizeof *ids);
    if (!ids)
        fail(j, dryi_fail_memory(j->err, "an anonymous trace"));
    return ids;
}

/* Write a frame as traceback.format_stack() does, without the line of source code. */
static uint32_t
write_frame_text(struct job *j, const struct dry_frame *frame)
{
    struct dryi_frame_text text;
    dryi_frame_text_init(&text, j->builder->trace, frame);
    j->text_count = 0;
    for (size_t i = 0; i < DRYI_FRAME_PIECES; i++)
        put(j, text.pieces[i], text.lengths[i]);
    return end_text(j);
}

static void
copy_frames(struct job *j)
{
    for (uint32_t i = 0; i < j->view->frame_count && j->status == DRY_OK; i++) {
        const struct dry_frame *old = &j->view->frames[i];
        size_t tail = dryi_frame_tail(j->from, j->options, old);
        struct dry_frame frame = {
            .name = replace(j, dryi_function_role(tail), old->name, 0),
            .file = replace(j, DRYI_TEXT_ROLE_FILE, old->file, tail),
            .line = j->options->drop_lines ? 0 : old->line,
            .flags = old->flags,
        };
        frame.extra = old->flags & DRY_FRAME_TEXT ? write_frame_text(j, &frame)
                                                  : replace_extra(j, old->extra);
        j->frames[i] = dry_trace_add_frame(j->builder, &frame);
    }
}

static void
copy_stacks(struct job *j)
{
    uint32_t *ids = NULL;
    size_t capacity = 0;
    for (uint32_t i = 0; i < j->view->stack_count && j->status == DRY_OK; i++) {
        size_t count;
        const uint32_t *frames = dry_trace_stack(j->from, i, &count);
        if (!dryi_memory_grow(&j->memory, &ids, &capacity, count + 1, sizeof *ids)) {
            fail(j, dryi_fail_memory(j->err, "an anonymous trace"));
            break;
        }
        for (size_t k = 0; k < count; k++)
            ids[k] = j->frames[frames[k]];
        j->stacks[i] = dry_trace_add_stack(j->builder, ids, count);
    }
    dryi_memory_free(&j->memory, ids, capacity, sizeof *ids);
}

static void
copy_notes(struct job *j)
{
    for (uint32_t i = 0; i < j->view->note_count && j->status == DRY_OK; i++) {
        const struct dry_note *old = dry_trace_note(j->from, i);
        struct dry_note note = {
            .action_name = replace(j, DRYI_TEXT_ROLE_TEXT, old->action_name, 0),
            .compile_context = replace(j, DRYI_TEXT_ROLE_TEXT, old->compile_context, 0),
            .user_metadata = replace(j, DRYI_TEXT_ROLE_TEXT, old->user_metadata, 0),
            .extra = replace_extra(j, old->extra),
            .flags = old->flags,
        };
        j->notes[i] = dry_trace_add_note(j->builder, &note);
    }
}

/* Lanes hold no strings, so adding them in the same order gives them the same ids. */
static void
copy_lanes(struct job *j)
{
    for (uint32_t i = 0; i < j->view->lane_count && j->status == DRY_OK; i++) {
        uint32_t id = dry_trace_add_lane(j->builder, &j->view->lanes[i]);
        DRYI_ASSERT(id == i || id == DRY_NONE);
        if (id == DRY_NONE)
            fail(j, dryi_builder_check(j->builder, j->err));
    }
}

/* --- rows ---------------------------------------------------------------------------------- */

static void
copy_events(struct job *j)
{
    const struct dry_trace_view *v = j->view;
    for (size_t i = 0; i < v->event_count && j->status == DRY_OK; i++) {
        bool has_time = !(dry_trace_note(j->from, v->note[i])->flags & DRY_NOTE_NO_TIME);
        struct dry_event event = {
            .action = v->action[i],
            .addr = v->addr[i],
            .size = v->size[i],
            .time_us =
                has_time ? dryi_shift_time(v->time_us[i], j->time_base) : v->time_us[i],
            .lane = v->lane[i],
            .stack = map(j->stacks, v->stack[i]),
            .note = map(j->notes, v->note[i]),
        };
        if (!dryi_builder_append_event(j->builder, &event))
            fail(j, dryi_builder_check(j->builder, j->err));
    }
    for (size_t i = 0; i < v->device_count && j->status == DRY_OK; i++) {
        const struct dry_trace_device *d = &v->devices[i];
        fail(j, dryi_builder_add_device(j->builder, d->device, d->first_event,
                                        d->event_count));
    }
}

static void
copy_blocks(struct job *j)
{
    for (size_t i = 0; i < j->view->block_count && j->status == DRY_OK; i++) {
        struct dry_trace_block block = j->view->blocks[i];
        block.stack = map(j->stacks, block.stack);
        block.extra = replace_extra(j, block.extra);
        if (!dryi_builder_append_block(j->builder, &block))
            fail(j, dryi_builder_check(j->builder, j->err));
    }
}

static void
copy_segments(struct job *j)
{
    for (size_t i = 0; i < j->view->segment_count && j->status == DRY_OK; i++) {
        struct dry_trace_segment segment = j->view->segments[i];
        segment.stack = map(j->stacks, segment.stack);
        segment.extra = replace_extra(j, segment.extra);
        if (!dryi_builder_append_segment(j->builder, &segment))
            fail(j, dryi_builder_check(j->builder, j->err));
    }
}

static void
copy_annotations(struct job *j)
{
    for (size_t i = 0; i < j->view->annotation_count && j->status == DRY_OK; i++) {
        struct dry_trace_annotation row = j->view->annotations[i];
        row.time_us = dryi_shift_time(row.time_us, j->time_base);
        row.name = replace(j, DRYI_TEXT_ROLE_ANNOTATION, row.name, 0);
        row.stage = replace(j, DRYI_TEXT_ROLE_TEXT, row.stage, 0);
        row.extra = replace_extra(j, row.extra);
        if (j->status == DRY_OK)
            fail(j, dry_trace_add_annotation(j->builder, &row));
    }
}

static void
copy_unknowns(struct job *j)
{
    for (size_t i = 0; i < j->view->unknown_count && j->status == DRY_OK; i++) {
        const struct dry_trace_unknown *old = &j->view->unknowns[i];
        uint32_t name = replace(j, DRYI_TEXT_ROLE_TEXT, old->name, 0);
        if (j->status != DRY_OK)
            break;
        dryi_builder_add_unknown(j->builder, name, old->where);
        fail(j, dryi_builder_check(j->builder, j->err));
        struct dry_trace *to = j->builder->trace;
        if (j->status == DRY_OK) /* distinct names keep a row each */
            to->unknown_rows[to->view.unknown_count - 1].count = old->count;
    }
}

static void
copy_top(struct job *j)
{
    struct dry_trace_settings settings = j->view->settings;
    settings.conf = replace(j, DRYI_TEXT_ROLE_SETTINGS, settings.conf, 0);
    settings.extra = replace_extra(j, settings.extra);
    uint32_t extra = replace_extra(j, j->view->top_extra);
    if (j->status != DRY_OK)
        return;
    struct dry_trace_view *to = &j->builder->trace->view;
    fail(j, dry_trace_set_settings(j->builder, &settings));
    to->top_extra = extra;
    to->protocol = j->view->protocol;
    to->is_bare_list = j->view->is_bare_list;
    to->has_traces = j->view->has_traces;
    to->has_settings = j->view->has_settings;
    to->has_annotations = j->view->has_annotations;
    to->has_host = j->view->has_host;
}

static void
copy_all(struct job *j)
{
    copy_lanes(j);
    copy_frames(j);
    copy_stacks(j);
    copy_notes(j);
    copy_events(j);
    copy_blocks(j);
    copy_segments(j);
    copy_annotations(j);
    copy_unknowns(j);
    copy_top(j);
    enum dry_status status = dryi_builder_check(j->builder, NULL);
    if (status != DRY_OK && (j->status == DRY_OK || j->status == status))
        j->status = dryi_builder_check(j->builder, j->err); /* copy its error text, too */
}

static void
run(struct job *j, const struct dry_memory *memory)
{
    j->frames = take_ids(j, j->view->frame_count);
    j->stacks = take_ids(j, j->view->stack_count);
    j->notes = take_ids(j, j->view->note_count);
    j->time_base = dryi_anonymize_time_base(j->from, j->options);
    if (j->status == DRY_OK)
        j->status =
            dryi_builder_create(memory, j->view->kind, UINT64_MAX, &j->builder, j->err);
    if (j->status == DRY_OK)
        copy_all(j);
}

static void
finish(struct job *j)
{
    const struct dry_memory *m = &j->memory;
    dryi_memory_free(m, j->frames, (size_t)j->view->frame_count + 1, sizeof *j->frames);
    dryi_memory_free(m, j->stacks, (size_t)j->view->stack_count + 1, sizeof *j->stacks);
    dryi_memory_free(m, j->notes, (size_t)j->view->note_count + 1, sizeof *j->notes);
    dryi_memory_free(m, j->text, j->text_capacity, 1);
    dryi_alias_finish(&j->alias);
}

enum dry_status
dry_trace_anonymize(const struct dry_trace *trace,
                    const struct dry_anonymize_options *given,
                    struct dry_trace **anonymized, struct dry_error *err)
{
    struct dry_anonymize_options options;
    enum dry_status status = dryi_anonymize_take_options(&options, given, err);
    if (status != DRY_OK)
        return status;
    struct dryi_siphash_key key = dryi_siphash_key_make(options.key, options.key_bytes);
    struct job j = {
        .from = trace,
        .view = &trace->view,
        .options = &options,
        .memory = dryi_memory_or_default(options.memory),
        .err = err,
    };
    dryi_alias_init(&j.alias, &j.memory, &key, options.digits);
    run(&j, options.memory);
    finish(&j);
    if (j.status == DRY_OK)
        return dry_trace_builder_finish(j.builder, anonymized, err);
    dry_trace_builder_destroy(j.builder);
    return j.status;
}
