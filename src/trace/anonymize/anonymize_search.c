/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The idea is in anonymize_search.h. Words are gathered, then excused, then searched for
 * in the strings and in the raw bytes as they are read. Cost: O(bytes).
 */
#include "trace/anonymize/anonymize_search.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "trace/anonymize/public_text.h"

/* The shortest word to search for in raw pickle bytes: shorter ones match by chance. */
#define RAW_BYTES_MIN 8u

void
dryi_anonymize_search_init(struct dryi_anonymize_search *s,
                           const struct dry_trace *original,
                           const struct dry_anonymize_options *options,
                           struct dry_anonymize_proof *proof)
{
    *s = (struct dryi_anonymize_search){
        .original = original,
        .options = options,
        .proof = proof,
        .memory = dryi_memory_or_default(options->memory),
    };
    dryi_word_set_init(&s->words, &s->memory);
    dryi_intern_init(&s->seen, &s->memory);
}

void
dryi_anonymize_search_finish(struct dryi_anonymize_search *s)
{
    dryi_word_set_finish(&s->words);
    dryi_intern_finish(&s->seen);
    dryi_memory_free(&s->memory, s->scratch, s->scratch_capacity, 1);
}

void
dryi_proof_refute(struct dry_anonymize_proof *proof, const char *format, ...)
{
    char text[sizeof proof->text];
    struct dry_error clean;
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    dryi_fail(&clean, DRY_ERR_FORMAT, "%s", text); /* replaces unprintable characters */
    if (!proof->text[0])
        snprintf(proof->text, sizeof proof->text, "%.*s", (int)sizeof text - 1,
                 clean.text);
}

/* --- gathering ----------------------------------------------------------------------------- */

/*
 * Note a string under `part`, the letter of its role: lower case if it is replaced, upper
 * case if it is kept. Returns true if it is new in that role.
 */
static bool
see(struct dryi_anonymize_search *s, char part, const char *text, size_t length)
{
    if (s->is_failed)
        return false;
    if (!dryi_memory_grow(&s->memory, &s->scratch, &s->scratch_capacity, length + 1, 1)) {
        s->is_failed = true;
        return false;
    }
    s->scratch[0] = part;
    if (length)
        memcpy(s->scratch + 1, text, length);
    uint32_t before = s->seen.count;
    s->is_failed = dryi_intern_put(&s->seen, s->scratch, length + 1) == DRYI_INTERN_NONE;
    return s->seen.count > before;
}

static void
hide(struct dryi_anonymize_search *s, const char *text, size_t length)
{
    s->is_failed = s->is_failed || !dryi_word_set_put_all(&s->words, text, length);
}

static void
count_one(struct dry_anonymize_count *count, bool is_public)
{
    count->kept += is_public;
    count->replaced += !is_public;
}

/*
 * Gather the components of a path. Kept text between two hidden components is noted with
 * its separators, because a word of it may contain them.
 */
static void
gather_path(struct dryi_anonymize_search *s, const char *path, size_t length, size_t tail)
{
    size_t at = 0, kept = 0;
    struct dryi_path_part part;
    while (dryi_path_next(path, length, tail, &at, &part)) {
        if (part.is_public)
            continue;
        see(s, 'C', path + kept, part.begin - kept);
        kept = part.begin + part.stem_length;
        if (see(s, 'c', path + part.begin, part.stem_length))
            hide(s, path + part.begin, part.stem_length);
    }
    see(s, 'C', path + kept, length - kept);
}

static void
gather_settings(struct dryi_anonymize_search *s, const char *text, size_t length)
{
    size_t kept = 0;
    for (size_t at = 0; at < length; at++) {
        size_t begin = at;
        while (at < length && !dryi_is_setting_separator(text[at]))
            at++;
        bool is_public = dryi_public_setting(text + begin, at - begin);
        if (at == begin)
            continue;
        if (see(s, is_public ? 'O' : 'o', text + begin, at - begin))
            count_one(&s->proof->settings, is_public);
        if (is_public)
            continue;
        hide(s, text + begin, at - begin);
        see(s, 'C', text + kept, begin - kept);
        kept = at;
    }
    see(s, 'C', text + kept, length - kept);
}

static struct dry_anonymize_count *
get_count(struct dry_anonymize_proof *proof, enum dryi_text_role role)
{
    switch (role) {
    case DRYI_TEXT_ROLE_FUNCTION:
    case DRYI_TEXT_ROLE_TORCH_FUNCTION:
        return &proof->functions;
    case DRYI_TEXT_ROLE_FILE:
        return &proof->files;
    case DRYI_TEXT_ROLE_ANNOTATION:
        return &proof->annotations;
    case DRYI_TEXT_ROLE_SETTINGS:
    case DRYI_TEXT_ROLE_TEXT:
        break;
    }
    return &proof->texts;
}

static void
gather(struct dryi_anonymize_search *s, enum dryi_text_role role, uint32_t string,
       size_t tail)
{
    size_t length;
    const char *text = dry_trace_string(s->original, string, &length);
    if (!text || s->is_failed)
        return;
    bool is_short = length <= DRYI_PIECEWISE_BYTES_MAX;
    if (role == DRYI_TEXT_ROLE_SETTINGS && is_short) {
        gather_settings(s, text, length);
        return;
    }
    bool is_public = dryi_text_is_public(s->options, role, text, length);
    if (!see(s, (is_public ? "FFPTAO" : "ffptao")[role], text, length))
        return;
    count_one(get_count(s->proof, role), is_public);
    if (is_public)
        return;
    if (role == DRYI_TEXT_ROLE_FILE && is_short)
        gather_path(s, text, length, tail);
    else
        hide(s, text, length);
}

static void
gather_piece(struct dryi_anonymize_search *s, const struct dryi_opcode_piece *piece)
{
    bool is_public = dryi_opcode_piece_is_public(piece);
    bool is_text = piece->kind == DRYI_PIECE_STRING || piece->kind == DRYI_PIECE_BYTES;
    if (piece->kind == DRYI_PIECE_MARK_UP)
        return;
    if (!is_text)
        count_one(&s->proof->values, is_public);
    else if (see(s, is_public ? 'X' : 'x', piece->text, piece->text_length)) {
        count_one(&s->proof->values, is_public);
        if (!is_public)
            hide(s, piece->text, piece->text_length);
    }
}

static void
gather_extra(struct dryi_anonymize_search *s, uint32_t extra)
{
    size_t length;
    const char *bytes = dry_trace_string(s->original, extra, &length);
    struct dryi_opcode_run run;
    struct dryi_opcode_piece piece;
    dryi_opcode_run_init(&run, bytes, length);
    while (bytes && !s->is_failed && dryi_opcode_run_next(&run, &piece))
        gather_piece(s, &piece);
    s->is_bad = s->is_bad || run.is_bad;
    s->is_failed = s->is_failed || run.is_bad;
}

static void
gather_tables(struct dryi_anonymize_search *s)
{
    const struct dry_trace_view *v = &s->original->view;
    for (uint32_t i = 0; i < v->frame_count && !s->is_failed; i++) {
        const struct dry_frame *frame = &v->frames[i];
        size_t tail = dryi_frame_tail(s->original, s->options, frame);
        gather(s, dryi_function_role(tail), frame->name, 0);
        gather(s, DRYI_TEXT_ROLE_FILE, frame->file, tail);
        if (!(frame->flags & DRY_FRAME_TEXT))
            gather_extra(s, frame->extra);
    }
    for (uint32_t i = 0; i < v->note_count && !s->is_failed; i++) {
        const struct dry_note *note = dry_trace_note(s->original, i);
        gather(s, DRYI_TEXT_ROLE_TEXT, note->action_name, 0);
        gather(s, DRYI_TEXT_ROLE_TEXT, note->compile_context, 0);
        gather(s, DRYI_TEXT_ROLE_TEXT, note->user_metadata, 0);
        gather_extra(s, note->extra);
    }
}

static void
gather_rows(struct dryi_anonymize_search *s)
{
    const struct dry_trace_view *v = &s->original->view;
    for (size_t i = 0; i < v->segment_count && !s->is_failed; i++)
        gather_extra(s, v->segments[i].extra);
    for (size_t i = 0; i < v->block_count && !s->is_failed; i++)
        gather_extra(s, v->blocks[i].extra);
    for (size_t i = 0; i < v->annotation_count && !s->is_failed; i++) {
        gather(s, DRYI_TEXT_ROLE_ANNOTATION, v->annotations[i].name, 0);
        gather(s, DRYI_TEXT_ROLE_TEXT, v->annotations[i].stage, 0);
        gather_extra(s, v->annotations[i].extra);
    }
    gather(s, DRYI_TEXT_ROLE_SETTINGS, v->settings.conf, 0);
    gather_extra(s, v->settings.extra);
    gather_extra(s, v->top_extra);
}

/* Excuse the words of public lists and of kept strings, whose letter is upper case. */
static void
excuse_all(struct dryi_anonymize_search *s)
{
    const char *word;
    for (size_t i = 0; (word = dryi_public_word_at(i)); i++)
        dryi_word_set_excuse(&s->words, word, strlen(word));
    for (uint32_t i = 0; i < s->seen.count; i++) {
        size_t length;
        const char *text = dryi_intern_get(&s->seen, i, &length);
        if (text[0] <= 'Z')
            dryi_word_set_excuse(&s->words, text + 1, length - 1);
    }
    s->proof->public_words = s->words.public_count;
    s->proof->searched_words = s->words.table.count - s->words.public_count;
}

bool
dryi_anonymize_search_gather(struct dryi_anonymize_search *s)
{
    gather_tables(s);
    gather_rows(s);
    if (!s->is_failed)
        excuse_all(s);
    return !s->is_failed;
}

/* --- the search ---------------------------------------------------------------------------- */

static uint64_t
search(struct dryi_anonymize_search *s, const void *text, size_t length, size_t least,
       const char *where)
{
    uint32_t first;
    uint64_t count = dryi_word_set_count(&s->words, text, length, least, &first);
    if (count) {
        size_t word_length;
        const char *word = dryi_intern_get(&s->words.table, first, &word_length);
        dryi_proof_refute(s->proof, "'%.*s' is in %s", (int)word_length, word, where);
    }
    return count;
}

static uint64_t
search_bytes(struct dryi_anonymize_search *s, const void *bytes, size_t count)
{
    return search(s, bytes, count, RAW_BYTES_MIN, "the bytes of the result");
}

/* Search the last bytes of the previous read together with the first of this read. */
static void
search_seam(struct dryi_anonymize_search *s, const unsigned char *bytes, size_t count)
{
    unsigned char seam[2 * sizeof s->tail];
    size_t head = count < sizeof s->tail ? count : sizeof s->tail;
    memcpy(seam, s->tail, s->tail_count);
    memcpy(seam + s->tail_count, bytes, head);
    size_t seam_count = s->tail_count + head;
    if (s->tail_count)
        s->proof->found_bytes += search_bytes(s, seam, seam_count);
    if (head < count) { /* these bytes alone fill the tail */
        memcpy(s->tail, bytes + count - sizeof s->tail, sizeof s->tail);
        s->tail_count = sizeof s->tail;
        return;
    }
    s->tail_count = seam_count < sizeof s->tail ? seam_count : sizeof s->tail;
    memcpy(s->tail, seam + seam_count - s->tail_count, s->tail_count);
}

static enum dry_status
read_and_search(void *self, void *buffer, size_t capacity, size_t *got,
                struct dry_error *err)
{
    struct dryi_anonymize_search *s = self;
    enum dry_status status = s->source.read(s->source.self, buffer, capacity, got, err);
    if (status < DRY_OK || *got == 0)
        return status;
    s->byte_count += *got;
    s->proof->found_bytes += search_bytes(s, buffer, *got);
    search_seam(s, buffer, *got);
    return status;
}

struct dry_source
dryi_anonymize_search_source(struct dryi_anonymize_search *s,
                             const struct dry_source *source)
{
    s->source = *source;
    return (struct dry_source){.read = read_and_search, .self = s};
}

/*
 * Return the length of the alias that begins here, or 0. An alias is a letter, '_' and at
 * least options->digits digits, and ends at a word boundary.
 */
static size_t
count_alias(const struct dryi_anonymize_search *s, const char *text, size_t length)
{
    size_t n = 2;
    if (length < n || !strchr("fdms", text[0]) || text[0] == '\0' || text[1] != '_')
        return 0;
    while (n < length && text[n] != '\0' && strchr("0123456789abcdef", text[n]))
        n++;
    bool is_end = n == length || !dryi_is_word_char(text[n]);
    return is_end && n >= 2 + s->options->digits ? n : 0;
}

/* Search a text between its aliases: their digits may equal a word by chance. */
static void
search_text(struct dryi_anonymize_search *s, const char *text, size_t length)
{
    size_t begin = 0;
    for (size_t at = 0; at < length;) {
        bool is_begin = at == 0 || !dryi_is_word_char(text[at - 1]);
        size_t n = is_begin ? count_alias(s, text + at, length - at) : 0;
        if (n == 0) {
            at++;
            continue;
        }
        s->proof->found_texts +=
            search(s, text + begin, at - begin, DRYI_WORD_BYTES_MIN, "a string");
        at += n;
        begin = at;
    }
    s->proof->found_texts +=
        search(s, text + begin, length - begin, DRYI_WORD_BYTES_MIN, "a string");
}

/*
 * Mark runs of opcodes, which are not searched as texts because they contain numbers.
 * Their strings are in the string table, too.
 */
static void
mark_extras(const struct dry_trace *again, uint8_t *is_extra)
{
    const struct dry_trace_view *v = &again->view;
    uint32_t none = v->string_count; /* spare entry that takes DRY_NONE */
#define MARK(extra) is_extra[(extra) < none ? (extra) : none] = 1
    for (uint32_t i = 0; i < v->frame_count; i++)
        MARK(v->frames[i].extra); /* a text is proved by its other members */
    for (uint32_t i = 0; i < v->note_count; i++)
        MARK(dry_trace_note(again, i)->extra);
    for (size_t i = 0; i < v->segment_count; i++)
        MARK(v->segments[i].extra);
    for (size_t i = 0; i < v->block_count; i++)
        MARK(v->blocks[i].extra);
    for (size_t i = 0; i < v->annotation_count; i++)
        MARK(v->annotations[i].extra);
    MARK(v->settings.extra);
    MARK(v->top_extra);
#undef MARK
}

bool
dryi_anonymize_search_strings(struct dryi_anonymize_search *s,
                              const struct dry_trace *again)
{
    uint32_t count = again->view.string_count;
    uint8_t *is_extra = dryi_memory_zalloc(&s->memory, (size_t)count + 1, 1);
    if (!is_extra)
        return false;
    mark_extras(again, is_extra);
    for (uint32_t i = 0; i < count; i++) {
        size_t length;
        const char *text = dry_trace_string(again, i, &length);
        if (!is_extra[i])
            search_text(s, text, length);
    }
    dryi_memory_free(&s->memory, is_extra, (size_t)count + 1, 1);
    return true;
}
