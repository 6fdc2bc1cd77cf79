/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Collect all marks and sort them by kind and moment. The strongest kind with at least two moments
 * is used. Cost: O(n log n) in annotations, O(events) for user_metadata. markers.h has the rules.
 */
#include "explain/steps/markers.h"

#include <stdlib.h>
#include <string.h>

#include "base/ascii.h"
#include "base/fail.h"
#include "base/memory.h"

/* Kinds of marks, strongest first. */
enum kind {
    KIND_PROFILER,      /* ProfilerStep#12 */
    KIND_COUNTED_STEP,  /* "step 12" */
    KIND_COUNTED_ITER,  /* "iteration 12" */
    KIND_COUNTED_BATCH, /* "batch 12" */
    KIND_STEP_WORD,
    KIND_OPTIMIZER,
    KIND_ZERO_GRAD,
    KIND_LOADER,
    KIND_COUNT,
    KIND_NONE = KIND_COUNT,
};

/* --- names -------------------------------------------------------------------------------- */

/* Find `word` (lower case) in the text, ignoring case. Returns the offset after the word, or 0 if
   the text does not contain it. */
static size_t
find_word(const char *text, size_t length, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= length; i++) {
        size_t same = 0;
        while (same < n && dryi_to_lower(text[i + same]) == word[same])
            same++;
        if (same == n)
            return i + n;
    }
    return 0;
}

/* In the order of KIND_COUNTED_... */
#define STEP_WORD_COUNT 3u
static const char *const step_words[STEP_WORD_COUNT] = {"step", "iter", "batch"};

/* Only the first bytes of a name are examined, because many annotations may share a long name. */
#define NAME_BYTES_MAX 256u

static const char *
read_string(const struct dry_trace *trace, uint32_t string, size_t *length)
{
    const char *text = dry_trace_string(trace, string, length);
    if (text && *length > NAME_BYTES_MAX)
        *length = NAME_BYTES_MAX;
    return text;
}

static bool
is_counted(uint8_t kind)
{
    return kind <= KIND_COUNTED_BATCH;
}

static bool
read_digits(const char *text, size_t length, size_t at, uint64_t *number)
{
    if (at >= length || !dryi_is_digit(text[at]))
        return false;
    *number = 0;
    for (; at < length && dryi_is_digit(text[at]); at++) {
        if (*number > (UINT64_MAX - 9) / 10)
            return false;
        *number = *number * 10 + (uint64_t)(text[at] - '0');
    }
    return true;
}

static bool
read_number_behind(const char *text, size_t length, const char *word, uint64_t *number)
{
    size_t at = find_word(text, length, word);
    if (at == 0)
        return false;
    /* skip the rest of the word, as in "iteration" */
    while (at < length && dryi_is_letter(text[at]))
        at++;
    size_t marks = 0;
    while (at < length && marks < 3 && !dryi_is_digit(text[at]) &&
           !dryi_is_letter(text[at])) {
        at++;
        marks++;
    }
    return read_digits(text, length, at, number);
}

static enum kind
classify_name(const char *text, size_t length, uint64_t *number)
{
    if (find_word(text, length, "optimizer.step") > 0)
        return KIND_OPTIMIZER;
    if (find_word(text, length, "zero_grad") > 0)
        return KIND_ZERO_GRAD;
    if (find_word(text, length, "dataloader") > 0)
        return KIND_LOADER;
    for (unsigned w = 0; w < STEP_WORD_COUNT; w++) {
        if (read_number_behind(text, length, step_words[w], number))
            return find_word(text, length, "profilerstep#") > 0
                       ? KIND_PROFILER
                       : (enum kind)(KIND_COUNTED_STEP + w);
    }
    /* "batch" alone is too common in names of other purposes. */
    if (find_word(text, length, "step") > 0 || find_word(text, length, "iter") > 0)
        return KIND_STEP_WORD;
    return KIND_NONE;
}

/* --- annotations -------------------------------------------------------------------------- */

/* An annotation that may mark a step. */
struct mark {
    uint32_t name;
    uint32_t moment;
    uint32_t order; /* index in the file's order */
    uint8_t kind, is_end;
    uint64_t number;
};

struct marks {
    struct mark *rows;
    size_t count, capacity;
};

/* Return the moment of a time stamp. Events with equal time stamps (1 us resolution)
   all come after the mark. */
static uint32_t
find_moment(const struct dry_timeline *timeline, int64_t time_us)
{
    uint32_t moment = dry_timeline_find_time(timeline, time_us);
    uint32_t last = dry_timeline_get_view(timeline)->event_count;
    return moment < last ? moment : last;
}

static bool
is_stage(const struct dry_trace *trace, uint32_t stage, const char *word)
{
    size_t length;
    const char *text = dry_trace_string(trace, stage, &length);
    return text && length == strlen(word) && memcmp(text, word, length) == 0;
}

static bool
collect_marks(const struct dry_timeline *timeline, uint32_t until,
              const struct dry_memory *memory, struct marks *marks)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(timeline);
    const struct dry_trace_view *t = dry_trace_get_view(v->trace);
    for (size_t i = 0; i < t->annotation_count && i < UINT32_MAX; i++) {
        const struct dry_trace_annotation *a = &t->annotations[i];
        size_t length;
        const char *text = read_string(v->trace, a->name, &length);
        struct mark mark = {.name = a->name, .order = (uint32_t)i};
        mark.is_end = is_stage(v->trace, a->stage, "END");
        if (a->device != v->device || !text ||
            (!mark.is_end && !is_stage(v->trace, a->stage, "START")))
            continue;
        mark.kind = (uint8_t)classify_name(text, length, &mark.number);
        mark.moment = find_moment(timeline, a->time_us);
        if (mark.kind == KIND_NONE || mark.moment >= until)
            continue;
        if (!dryi_memory_grow(memory, &marks->rows, &marks->capacity, marks->count + 1,
                              sizeof *marks->rows))
            return false;
        marks->rows[marks->count++] = mark;
    }
    return true;
}

/* Sort by kind, then by moment. At equal moments, ends come before begins. */
static int
compare_marks(const void *a, const void *b)
{
    const struct mark *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (x->moment != y->moment)
        return x->moment < y->moment ? -1 : 1;
    if (x->is_end != y->is_end)
        return x->is_end ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

static bool
add_moment(struct dryi_markers *m, uint32_t moment, uint32_t name)
{
    if (m->count > 0 && m->moments[m->count - 1] >= moment)
        return true;
    if (!dryi_memory_grow(&m->memory, &m->moments, &m->capacity, m->count + 1,
                          sizeof *m->moments))
        return false;
    m->moments[m->count++] = moment;
    m->name = name;
    return true;
}

/* Return the number of moments in the scopes of a name; 0 if the name begins only once. */
static uint64_t
measure_cover(const struct mark *rows, size_t count, uint32_t name)
{
    uint64_t cover = 0;
    size_t begins = 0;
    const struct mark *open = NULL;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].name != name)
            continue;
        if (rows[i].is_end && open)
            cover += rows[i].moment - open->moment;
        open = rows[i].is_end ? NULL : &rows[i];
        begins += !rows[i].is_end;
    }
    return begins >= 2 ? cover + 1 : 0;
}

static bool
is_among(const uint32_t *names, size_t count, uint32_t name)
{
    for (size_t i = 0; i < count; i++) {
        if (names[i] == name)
            return true;
    }
    return false;
}

/* A sound file has few names per kind. The limit bounds the time for a hostile file. */
#define NAMES_MAX 64u

/* Choose the name whose scopes cover most moments. Others are nested in it, or occur rarely. */
static uint32_t
choose_name(const struct mark *rows, size_t count)
{
    uint32_t best = DRY_NONE, names[NAMES_MAX];
    uint64_t most = 0;
    size_t name_count = 0;
    for (size_t i = 0; i < count && name_count < NAMES_MAX; i++) {
        if (is_among(names, name_count, rows[i].name))
            continue;
        names[name_count++] = rows[i].name;
        uint64_t cover = measure_cover(rows, count, rows[i].name);
        if (cover > most) {
            most = cover;
            best = rows[i].name;
        }
    }
    return best;
}

/* Convert marks of one kind to moments. *is_good is set if there are at least two, and numbered
   marks mostly ascend: fewer than a quarter of the numbers fall. */
static bool
use_marks(struct dryi_markers *m, const struct mark *rows, size_t count, bool *is_good)
{
    uint8_t kind = rows[0].kind;
    uint32_t name = is_counted(kind) ? DRY_NONE : choose_name(rows, count);
    bool at_end = kind == KIND_OPTIMIZER;
    uint64_t number = 0;
    size_t falls = 0;
    const struct mark *last = NULL; /* the last END mark */
    m->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct mark *mark = &rows[i];
        if (!is_counted(kind) && mark->name != name)
            continue;
        last = mark->is_end ? mark : last;
        if (mark->is_end != at_end)
            continue;
        falls += is_counted(kind) && m->count > 0 && mark->number < number;
        number = mark->number;
        if (!add_moment(m, mark->moment, mark->name))
            return false;
    }
    *is_good = m->count >= 2 && falls * 4 < m->count;
    m->ends_last = *is_good && kind <= KIND_STEP_WORD && last &&
                   last->moment > m->moments[m->count - 1];
    return !m->ends_last || add_moment(m, last->moment, last->name);
}

static bool
read_annotations(struct dryi_markers *m, const struct dry_timeline *timeline,
                 uint32_t until)
{
    struct marks marks = {0};
    bool is_good = false;
    bool is_ok = collect_marks(timeline, until, &m->memory, &marks);
    if (is_ok && marks.count > 0)
        qsort(marks.rows, marks.count, sizeof *marks.rows, compare_marks);
    for (size_t i = 0; is_ok && !is_good && i < marks.count;) {
        size_t n = 1;
        while (i + n < marks.count && marks.rows[i + n].kind == marks.rows[i].kind)
            n++;
        is_ok = use_marks(m, marks.rows + i, n, &is_good);
        i += n;
    }
    if (!is_good) {
        m->count = 0;
        m->name = DRY_NONE;
    }
    dryi_memory_free(&m->memory, marks.rows, marks.capacity, sizeof *marks.rows);
    return is_ok;
}

/* --- metadata ----------------------------------------------------------------------------- */

/* Read "step 12", "iteration=12" or a bare number. */
static bool
read_metadata_number(const char *text, size_t length, uint64_t *number)
{
    for (unsigned w = 0; w < STEP_WORD_COUNT; w++) {
        if (read_number_behind(text, length, step_words[w], number))
            return true;
    }
    for (size_t i = 0; i < length; i++) {
        if (!dryi_is_digit(text[i]))
            return false;
    }
    return read_digits(text, length, 0, number);
}

/* The last string read and its number: runs of equal strings are parsed once. */
struct reading {
    uint32_t string;
    bool is_number;
    uint64_t number;
};

static void
read_note(const struct dry_trace *trace, uint32_t note, struct reading *r)
{
    uint32_t string = dry_trace_note(trace, note)->user_metadata;
    if (string == r->string)
        return;
    size_t length;
    const char *text = read_string(trace, string, &length);
    r->string = string;
    r->is_number = text && length > 0 && read_metadata_number(text, length, &r->number);
}

/* Read step numbers from user_metadata. A number that falls again counts layers or
   micro-batches, not steps. */
static bool
read_metadata(struct dryi_markers *m, const struct dry_timeline *timeline, uint32_t until)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(timeline);
    const struct dry_trace_view *t = dry_trace_get_view(v->trace);
    uint32_t count = v->event_count < until ? v->event_count : until;
    struct reading reading = {.string = DRY_NONE};
    uint64_t number = 0;
    bool has_fallen = false;
    for (uint32_t e = 0; e < count && !has_fallen && t->note_count > 0; e++) {
        if (t->note[v->first_event + e] == DRY_NONE)
            continue;
        read_note(v->trace, t->note[v->first_event + e], &reading);
        if (!reading.is_number || (m->count > 0 && reading.number == number))
            continue;
        has_fallen = m->count > 0 && reading.number < number;
        number = reading.number;
        if (!add_moment(m, e, reading.string))
            return false;
    }
    m->is_metadata = true;
    if (has_fallen || m->count < 2) {
        m->count = 0;
        m->name = DRY_NONE;
    }
    return true;
}

/* --- public calls ------------------------------------------------------------------------- */

enum dry_status
dryi_markers_init(struct dryi_markers *m, const struct dry_timeline *timeline,
                  uint32_t until, const struct dry_memory *memory, struct dry_error *err)
{
    *m = (struct dryi_markers){.memory = *memory, .name = DRY_NONE};
    bool is_ok = read_annotations(m, timeline, until) &&
                 (m->count > 0 || read_metadata(m, timeline, until));
    if (is_ok)
        return DRY_OK;
    dryi_markers_finish(m);
    return dryi_fail_memory(err, "the marks of steps");
}

void
dryi_markers_finish(struct dryi_markers *m)
{
    dryi_memory_free(&m->memory, m->moments, m->capacity, sizeof *m->moments);
    *m = (struct dryi_markers){.memory = m->memory, .name = DRY_NONE};
}

static bool
holds_word(const struct dry_trace *trace, uint32_t string, const char *word)
{
    size_t length;
    const char *text = read_string(trace, string, &length);
    return text && memmem(text, length, word, strlen(word)) != NULL;
}

static bool
read_scopes(struct dryi_scopes *s, const struct dry_timeline *timeline, const char *word)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(timeline);
    const struct dry_trace_view *t = dry_trace_get_view(v->trace);
    size_t depth = 0;
    for (size_t i = 0; i < t->annotation_count; i++) {
        const struct dry_trace_annotation *a = &t->annotations[i];
        if (a->device != v->device || !holds_word(v->trace, a->name, word))
            continue;
        uint32_t moment = find_moment(timeline, a->time_us);
        if (is_stage(v->trace, a->stage, "START")) {
            if (depth++ > 0)
                continue;
            if (!dryi_memory_grow(&s->memory, &s->rows, &s->capacity, s->count + 1,
                                  sizeof *s->rows))
                return false;
            s->rows[s->count++] =
                (struct dryi_scope){.begin = moment, .end = DRY_MOMENT_NEVER};
        } else if (depth > 0 && --depth == 0) {
            struct dryi_scope *scope = &s->rows[s->count - 1];
            scope->end = moment > scope->begin ? moment : scope->begin;
        }
    }
    return true;
}

enum dry_status
dryi_scopes_init(struct dryi_scopes *s, const struct dry_timeline *timeline,
                 const char *word, const struct dry_memory *memory, struct dry_error *err)
{
    *s = (struct dryi_scopes){.memory = *memory};
    if (read_scopes(s, timeline, word))
        return DRY_OK;
    dryi_scopes_finish(s);
    return dryi_fail_memory(err, "the scopes of annotations");
}

void
dryi_scopes_finish(struct dryi_scopes *s)
{
    dryi_memory_free(&s->memory, s->rows, s->capacity, sizeof *s->rows);
    *s = (struct dryi_scopes){.memory = s->memory};
}
