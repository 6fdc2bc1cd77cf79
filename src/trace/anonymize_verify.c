/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Prove that a trace is anonymous: read the written file and compare it with the
 * original, row by row.
 *
 * The check does not know how aliases were chosen. It pairs each original string with its
 * alias, in the order in which they are met. If equal strings have equal aliases and
 * different strings have different ones, both strings of a pair get the same number.
 */
#include <drystone/anonymize.h>

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "trace/anonymize/alias.h"
#include "trace/anonymize/anonymize_rules.h"
#include "trace/anonymize/anonymize_search.h"
#include "trace/anonymize/public_text.h"
#include "trace/pickle/pickle.h"

struct span {
    const char *bytes; /* NULL if there is no string */
    size_t length;
};

struct job {
    const struct dry_trace *old, *new;
    const struct dry_trace_view *a, *b; /* the views of `old` and `new` */
    const struct dry_anonymize_options *options;
    struct dryi_siphash_key key;
    struct dry_memory memory;
    struct dry_anonymize_proof *proof;
    bool is_failed; /* memory ran out */
    /* Both strings of a pair have one id. A role letter precedes each string. */
    struct dryi_intern olds, news;
    uint32_t *frames, *stacks, *notes; /* old id -> new id + 1; 0 until compared */
    char *scratch;
    size_t scratch_capacity;
    int64_t time_base;
};

/* --- pairs of strings ------------------------------------------------------------------------ */

static uint32_t
put(struct job *j, struct dryi_intern *table, char part, struct span text)
{
    if (!dryi_memory_grow(&j->memory, &j->scratch, &j->scratch_capacity, text.length + 1,
                          1)) {
        j->is_failed = true;
        return DRYI_INTERN_NONE;
    }
    j->scratch[0] = part;
    if (text.length)
        memcpy(j->scratch + 1, text.bytes, text.length);
    uint32_t id = dryi_intern_put(table, j->scratch, text.length + 1);
    j->is_failed = j->is_failed || id == DRYI_INTERN_NONE;
    return id;
}

/* Return true if both strings are new, or if both were met before as a pair. */
static bool
is_pair(struct job *j, char part, struct span old, struct span new)
{
    uint32_t old_id = put(j, &j->olds, part, old);
    uint32_t new_id = put(j, &j->news, part, new);
    return !j->is_failed && old_id == new_id;
}

static bool
is_equal(struct span a, struct span b)
{
    return a.length == b.length &&
           (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0);
}

/* Return true for `letter`, '_' and at least options->digits hexadecimal digits. */
static bool
is_alias(const struct job *j, char letter, struct span text)
{
    if (text.length < 2 + j->options->digits || text.bytes[0] != letter ||
        text.bytes[1] != '_')
        return false;
    for (size_t i = 2; i < text.length; i++) {
        if (text.bytes[i] == '\0' || !strchr("0123456789abcdef", text.bytes[i]))
            return false;
    }
    return true;
}

static bool
is_hidden(struct job *j, char part, char letter, struct span old, struct span new)
{
    return is_alias(j, letter, new) && is_pair(j, part, old, new);
}

static struct span
sub(struct span text, size_t begin, size_t length)
{
    return (struct span){text.bytes + begin, length};
}

/* Compare a component of a path: unchanged if public, else an alias with its ending. */
static bool
same_part(struct job *j, struct span old, const struct dryi_path_part *o, struct span new,
          const struct dryi_path_part *n)
{
    struct span was = sub(old, o->begin, o->length), is = sub(new, n->begin, n->length);
    if (o->is_public)
        return is_equal(was, is);
    size_t ending = o->length - o->stem_length;
    if (is.length < ending ||
        !is_equal(sub(was, o->stem_length, ending), sub(is, is.length - ending, ending)))
        return false;
    char letter = ending ? 'm' : 'd';
    return is_hidden(j, letter, letter, sub(was, 0, o->stem_length),
                     sub(is, 0, is.length - ending));
}

static bool
same_path(struct job *j, struct span old, struct span new, size_t tail)
{
    size_t old_at = 0, new_at = 0;
    struct dryi_path_part o, n;
    for (;;) {
        size_t old_end = old_at, new_end = new_at;
        bool has_old = dryi_path_next(old.bytes, old.length, tail, &old_at, &o);
        bool has_new = dryi_path_next(new.bytes, new.length, DRYI_NO_TAIL, &new_at, &n);
        if (has_old != has_new)
            return false;
        size_t old_next = has_old ? o.begin : old.length;
        size_t new_next = has_new ? n.begin : new.length;
        if (!is_equal(sub(old, old_end, old_next - old_end),
                      sub(new, new_end, new_next - new_end)))
            return false;
        if (!has_old)
            return true;
        if (!same_part(j, old, &o, new, &n))
            return false;
    }
}

static size_t
count_setting(struct span text, size_t at)
{
    size_t n = 0;
    while (at + n < text.length && !dryi_is_setting_separator(text.bytes[at + n]))
        n++;
    return n;
}

static bool
same_settings_text(struct job *j, struct span old, struct span new)
{
    size_t o = 0, n = 0;
    while (o < old.length || n < new.length) {
        size_t old_count = count_setting(old, o), new_count = count_setting(new, n);
        struct span was = sub(old, o, old_count), is = sub(new, n, new_count);
        bool is_same = dryi_public_setting(was.bytes, was.length) || was.length == 0
                           ? is_equal(was, is)
                           : is_hidden(j, 'o', 's', was, is);
        o += old_count;
        n += new_count;
        if (!is_same || (o < old.length) != (n < new.length))
            return false;
        if (o < old.length && old.bytes[o++] != new.bytes[n++])
            return false;
    }
    return true;
}

static bool
same_text(struct job *j, enum dryi_text_role role, uint32_t old_id, uint32_t new_id,
          size_t tail)
{
    struct span old, new;
    old.bytes = dry_trace_string(j->old, old_id, &old.length);
    new.bytes = dry_trace_string(j->new, new_id, &new.length);
    if (!old.bytes || !new.bytes)
        return !old.bytes && !new.bytes;
    if (dryi_text_is_public(j->options, role, old.bytes, old.length))
        return is_equal(old, new);
    bool is_short = old.length <= DRYI_PIECEWISE_BYTES_MAX;
    if (role == DRYI_TEXT_ROLE_FILE && is_short)
        return same_path(j, old, new, tail);
    if (role == DRYI_TEXT_ROLE_SETTINGS && is_short)
        return same_settings_text(j, old, new);
    return is_hidden(j, "ffptao"[role], dryi_text_letter(role), old, new);
}

/* --- unknown keys ---------------------------------------------------------------------------- */

static bool
same_piece(struct job *j, const struct dryi_opcode_piece *old,
           const struct dryi_opcode_piece *new)
{
    struct span was = {old->text, old->text_length}, is = {new->text, new->text_length};
    if (dryi_opcode_piece_is_public(old))
        return is_equal((struct span){old->bytes, old->length},
                        (struct span){new->bytes, new->length});
    if (old->kind != new->kind)
        return false;
    if (old->kind == DRYI_PIECE_INT)
        return new->bits == dryi_alias_int(&j->key, old->bits, old->is_wide);
    if (old->kind == DRYI_PIECE_FLOAT)
        return new->bits == dryi_alias_float(&j->key, old->bits);
    bool was_array = old->opcode == DRYI_OP_BYTEARRAY8;
    return was_array == (new->opcode == DRYI_OP_BYTEARRAY8) &&
           is_hidden(j, 'x', 's', was, is);
}

static bool
same_extra(struct job *j, uint32_t old_id, uint32_t new_id)
{
    struct dryi_opcode_run old = {0}, new = {0};
    struct dryi_opcode_piece o, n;
    size_t old_length, new_length;
    const char *old_bytes = dry_trace_string(j->old, old_id, &old_length);
    const char *new_bytes = dry_trace_string(j->new, new_id, &new_length);
    if (!old_bytes || !new_bytes) {
        j->proof->dropped_values += old_bytes != NULL;
        return !new_bytes;
    }
    dryi_opcode_run_init(&old, old_bytes, old_length);
    dryi_opcode_run_init(&new, new_bytes, new_length);
    for (;;) {
        bool has_old = dryi_opcode_run_next(&old, &o);
        bool has_new = dryi_opcode_run_next(&new, &n);
        if (!has_old || !has_new)
            return !has_old && !has_new && !old.is_bad && !new.is_bad;
        if (!same_piece(j, &o, &n))
            return false;
    }
}

/* --- tables ------------------------------------------------------------------------------------ */

/* Check that a frame's text has nothing but its other members. */
static bool
is_own_text(const struct job *j, const struct dry_frame *frame)
{
    struct dryi_frame_text text;
    size_t left;
    const char *bytes = dry_trace_string(j->new, frame->extra, &left);
    dryi_frame_text_init(&text, j->new, frame);
    for (size_t i = 0; i < DRYI_FRAME_PIECES; i++) {
        size_t length = text.lengths[i];
        if (length > left || (length && memcmp(bytes, text.pieces[i], length) != 0))
            return false;
        bytes += length;
        left -= length;
    }
    return left == 0;
}

static bool
same_frame(struct job *j, uint32_t old_id, uint32_t new_id)
{
    if (j->frames[old_id] == new_id + 1)
        return true;
    const struct dry_frame *old = &j->a->frames[old_id], *new = &j->b->frames[new_id];
    size_t tail = dryi_frame_tail(j->old, j->options, old);
    bool is_same = j->frames[old_id] == 0 &&
                   new->line == (j->options->drop_lines ? 0 : old->line) &&
                   same_text(j, dryi_function_role(tail), old->name, new->name, 0) &&
                   same_text(j, DRYI_TEXT_ROLE_FILE, old->file, new->file, tail) &&
                   new->flags == old->flags &&
                   (old->flags & DRY_FRAME_TEXT ? is_own_text(j, new)
                                                : same_extra(j, old->extra, new->extra));
    if (is_same)
        j->frames[old_id] = new_id + 1;
    return is_same;
}

static bool
same_stack(struct job *j, uint32_t old_id, uint32_t new_id)
{
    if (old_id == DRY_NONE || new_id == DRY_NONE)
        return old_id == new_id;
    if (j->stacks[old_id] == new_id + 1)
        return true;
    size_t old_count, new_count;
    const uint32_t *old = dry_trace_stack(j->old, old_id, &old_count);
    const uint32_t *new = dry_trace_stack(j->new, new_id, &new_count);
    bool is_same = j->stacks[old_id] == 0 && old_count == new_count;
    for (size_t i = 0; i < old_count && is_same; i++)
        is_same = same_frame(j, old[i], new[i]);
    if (is_same)
        j->stacks[old_id] = new_id + 1;
    return is_same;
}

static bool
same_note(struct job *j, uint32_t old_id, uint32_t new_id)
{
    if (old_id != DRY_NONE && new_id != DRY_NONE && j->notes[old_id] == new_id + 1)
        return true;
    const struct dry_note *old = dry_trace_note(j->old, old_id);
    const struct dry_note *new = dry_trace_note(j->new, new_id);
    bool is_same =
        old->flags == new->flags &&same_text(j, DRYI_TEXT_ROLE_TEXT, old->action_name,
                                             new->action_name, 0) &&
        same_text(j, DRYI_TEXT_ROLE_TEXT, old->compile_context, new->compile_context,
                  0) &&
        same_text(j, DRYI_TEXT_ROLE_TEXT, old->user_metadata, new->user_metadata, 0) &&
        same_extra(j, old->extra, new->extra);
    if (is_same && old_id != DRY_NONE && new_id != DRY_NONE)
        j->notes[old_id] = new_id + 1;
    return is_same;
}

static bool
same_lane(const struct job *j, uint32_t old, uint32_t new)
{
    return memcmp(&j->a->lanes[old], &j->b->lanes[new], sizeof *j->a->lanes) == 0;
}

/* --- rows -------------------------------------------------------------------------------------- */

static const char *
compare_event(struct job *j, size_t i)
{
    const struct dry_trace_view *a = j->a, *b = j->b;
    bool has_time = !(dry_trace_note(j->old, a->note[i])->flags & DRY_NOTE_NO_TIME);
    if (a->action[i] != b->action[i])
        return "action";
    if (a->addr[i] != b->addr[i])
        return "address";
    if (a->size[i] != b->size[i])
        return "size";
    if (has_time && b->time_us[i] != dryi_shift_time(a->time_us[i], j->time_base))
        return "time";
    if (!same_lane(j, a->lane[i], b->lane[i]))
        return "stream or pool";
    if (!same_stack(j, a->stack[i], b->stack[i]))
        return "stack";
    return same_note(j, a->note[i], b->note[i]) ? NULL : "text";
}

static bool
same_block(struct job *j, const struct dry_trace_block *a,
           const struct dry_trace_block *b)
{
    return a->address == b->address && a->size == b->size &&
           a->requested_size == b->requested_size && a->state == b->state &&
           same_stack(j, a->stack, b->stack) && same_extra(j, a->extra, b->extra);
}

static bool
same_segment(struct job *j, const struct dry_trace_segment *a,
             const struct dry_trace_segment *b)
{
    return a->address == b->address && a->total_size == b->total_size &&
           a->allocated_size == b->allocated_size && a->active_size == b->active_size &&
           a->requested_size == b->requested_size && same_lane(j, a->lane, b->lane) &&
           a->first_block == b->first_block && a->block_count == b->block_count &&
           a->device == b->device && a->is_large == b->is_large &&
           a->is_expandable == b->is_expandable && a->pool_id_known == b->pool_id_known &&
           a->expandable_known == b->expandable_known &&
           same_stack(j, a->stack, b->stack) && same_extra(j, a->extra, b->extra);
}

static bool
same_annotation(struct job *j, const struct dry_trace_annotation *a,
                const struct dry_trace_annotation *b)
{
    return b->time_us == dryi_shift_time(a->time_us, j->time_base) &&
           a->device == b->device &&
           same_text(j, DRYI_TEXT_ROLE_ANNOTATION, a->name, b->name, 0) &&
           same_text(j, DRYI_TEXT_ROLE_TEXT, a->stage, b->stage, 0) &&
           same_extra(j, a->extra, b->extra);
}

/* Compare the bits, because a hostile file may hold a NaN, which differs from itself. */
static bool
same_double(double a, double b)
{
    uint64_t old, new;
    memcpy(&old, &a, sizeof old);
    memcpy(&new, &b, sizeof new);
    return old == new;
}

static bool
same_settings(struct job *j)
{
    const struct dry_trace_settings *a = &j->a->settings, *b = &j->b->settings;
    return a->known == b->known && a->max_split_size == b->max_split_size &&
           same_double(a->garbage_collection_threshold,
                       b->garbage_collection_threshold) &&
           a->expandable_segments == b->expandable_segments &&
           a->roundup_known == b->roundup_known &&
           memcmp(a->roundup_power2_divisions, b->roundup_power2_divisions,
                  sizeof a->roundup_power2_divisions) == 0 &&
           same_text(j, DRYI_TEXT_ROLE_SETTINGS, a->conf, b->conf, 0) &&
           same_extra(j, a->extra, b->extra);
}

/* Compare devices. The first index of an empty range has no meaning and may differ. */
static bool
same_device(const struct dry_trace_device *a, const struct dry_trace_device *b)
{
    return a->device == b->device && a->event_count == b->event_count &&
           (a->event_count == 0 || a->first_event == b->first_event) &&
           a->segment_count == b->segment_count &&
           (a->segment_count == 0 || a->first_segment == b->first_segment);
}

static bool
same_shape(const struct job *j)
{
    const struct dry_trace_view *a = j->a, *b = j->b;
    bool is_same =
        a->event_count == b->event_count && a->device_count == b->device_count &&
        a->segment_count == b->segment_count && a->block_count == b->block_count &&
        a->annotation_count == b->annotation_count &&
        a->is_bare_list == b->is_bare_list &&
        (a->has_traces || a->kind != DRY_TRACE_SNAPSHOT) == b->has_traces &&
        a->has_settings == b->has_settings && a->has_annotations == b->has_annotations &&
        a->has_host == b->has_host;
    for (size_t i = 0; is_same && i < a->device_count; i++)
        is_same = same_device(&a->devices[i], &b->devices[i]);
    return is_same;
}

static void
compare_rows(struct job *j)
{
    const struct dry_trace_view *a = j->a, *b = j->b;
    struct dry_anonymize_proof *proof = j->proof;
    const char *what = NULL;
    for (size_t i = 0; i < a->event_count && !what; i++) {
        what = compare_event(j, i);
        if (what)
            dryi_proof_refute(proof, "event %zu: another %s", i, what);
    }
    for (size_t i = 0; i < a->segment_count && !proof->text[0]; i++) {
        if (!same_segment(j, &a->segments[i], &b->segments[i]))
            dryi_proof_refute(proof, "segment %zu is another", i);
    }
    for (size_t i = 0; i < a->block_count && !proof->text[0]; i++) {
        if (!same_block(j, &a->blocks[i], &b->blocks[i]))
            dryi_proof_refute(proof, "block %zu is another", i);
    }
    for (size_t i = 0; i < a->annotation_count && !proof->text[0]; i++) {
        if (!same_annotation(j, &a->annotations[i], &b->annotations[i]))
            dryi_proof_refute(proof, "annotation %zu is another", i);
    }
}

static void
compare(struct job *j)
{
    if (!same_shape(j)) {
        dryi_proof_refute(j->proof, "other devices, or another number of events, "
                                    "segments, blocks or annotations");
        return;
    }
    compare_rows(j);
    if (!same_settings(j))
        dryi_proof_refute(j->proof, "other allocator settings");
    if (!same_extra(j, j->a->top_extra, j->b->top_extra))
        dryi_proof_refute(j->proof, "other unknown keys of the snapshot");
}

static enum dry_status
compare_all(struct job *j, struct dry_error *err)
{
    const struct dry_memory *m = &j->memory;
    size_t frames = (size_t)j->a->frame_count + 1, stacks = (size_t)j->a->stack_count + 1,
           notes = (size_t)j->a->note_count + 1;
    dryi_intern_init(&j->olds, m);
    dryi_intern_init(&j->news, m);
    j->frames = dryi_memory_zalloc(m, frames, sizeof *j->frames);
    j->stacks = dryi_memory_zalloc(m, stacks, sizeof *j->stacks);
    j->notes = dryi_memory_zalloc(m, notes, sizeof *j->notes);
    j->is_failed = !j->frames || !j->stacks || !j->notes;
    if (!j->is_failed)
        compare(j);
    dryi_memory_free(m, j->frames, frames, sizeof *j->frames);
    dryi_memory_free(m, j->stacks, stacks, sizeof *j->stacks);
    dryi_memory_free(m, j->notes, notes, sizeof *j->notes);
    dryi_memory_free(m, j->scratch, j->scratch_capacity, 1);
    dryi_intern_finish(&j->olds);
    dryi_intern_finish(&j->news);
    return j->is_failed ? dryi_fail_memory(err, "the proof") : DRY_OK;
}

/* --- the whole trace --------------------------------------------------------------------------- */

/* Read the source to its end: bytes after the pickle could hold original data. */
static enum dry_status
read_result(struct dryi_anonymize_search *s, const struct dry_source *written,
            struct dry_trace **again, struct dry_error *err)
{
    struct dry_source source = dryi_anonymize_search_source(s, written);
    struct dry_trace_options options;
    dry_trace_options_init(&options);
    options.memory = s->options->memory;
    enum dry_status status = dry_trace_read(&source, &options, again, err);
    if (status != DRY_OK)
        return status;
    char more[1];
    size_t got = 0;
    status = source.read(source.self, more, sizeof more, &got, err);
    if (status < DRY_OK) {
        dry_trace_destroy(*again);
        return status;
    }
    if ((*again)->view.byte_count != s->byte_count)
        dryi_proof_refute(s->proof, "bytes behind its end");
    return DRY_OK;
}

static enum dry_status
prove(struct dryi_anonymize_search *s, const struct dry_trace *again,
      struct dry_error *err)
{
    struct job j = {
        .old = s->original,
        .new = again,
        .a = &s->original->view,
        .b = &again->view,
        .options = s->options,
        .key = dryi_siphash_key_make(s->options->key, s->options->key_bytes),
        .memory = s->memory,
        .proof = s->proof,
        .time_base = dryi_anonymize_time_base(s->original, s->options),
    };
    if (!dryi_anonymize_search_strings(s, again))
        return dryi_fail_memory(err, "the proof");
    return compare_all(&j, err);
}

enum dry_status
dry_anonymize_verify(const struct dry_trace *original,
                     const struct dry_anonymize_options *given,
                     const struct dry_source *written, struct dry_anonymize_proof *proof,
                     struct dry_error *err)
{
    struct dry_anonymize_options options;
    enum dry_status status = dryi_anonymize_take_options(&options, given, err);
    if (status != DRY_OK)
        return status;
    struct dry_anonymize_proof found = {0};
    struct dryi_anonymize_search s;
    struct dry_trace *again = NULL;
    dryi_anonymize_search_init(&s, original, &options, &found);
    if (!dryi_anonymize_search_gather(&s))
        status = s.is_bad ? dryi_fail(err, DRY_ERR_ARGUMENT,
                                      "unknown keys that are no run of opcodes")
                          : dryi_fail_memory(err, "the proof");
    if (status == DRY_OK)
        status = read_result(&s, written, &again, err);
    if (status == DRY_OK)
        status = prove(&s, again, err);
    dryi_anonymize_search_finish(&s);
    dry_trace_destroy(again);
    if (status != DRY_OK)
        return status;
    found.is_verified = found.text[0] == '\0';
    return dryi_sized_give(proof, &found, sizeof found);
}
