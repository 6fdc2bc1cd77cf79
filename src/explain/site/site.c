/* SPDX-License-Identifier: Apache-2.0 */

/* Each file and each frame is classified once, then each stack in one pass over its frames. site.h
   has the rules and the cost. */
#include "explain/site/site.h"

#include <string.h>

#include "base/ascii.h"
#include "base/assert.h"
#include "base/fail.h"
#include "base/map.h"
#include "base/memory.h"
#include "explain/site/symbol.h"

#define WHAT_BYTES_MAX 120u
#define NAME_BYTES_MAX 240u
#define DEPTH_MAX 4u /* folders to show at most, to tell the user's files apart */

/* Index of the paths that are words. */
enum word_path { WORD_AUTOGRAD, WORD_TORCH, WORD_NATIVE, WORD_COUNT };

/* --- files -------------------------------------------------------------------------------- */

static bool
add_path(struct dryi_sites *s, const struct dryi_path *path)
{
    if (!dryi_memory_grow(&s->memory, &s->paths, &s->path_capacity,
                          (size_t)s->path_count + 1, sizeof *s->paths))
        return false;
    s->paths[s->path_count++] = *path;
    return true;
}

static bool
add_native_labels(struct dryi_sites *s)
{
    static const char *const words[WORD_COUNT] = {"autograd", "libtorch", "native"};
    for (size_t i = 0; i < WORD_COUNT; i++) {
        struct dryi_path path;
        dryi_path_set_word(&path, words[i], DRYI_CODE_NATIVE);
        if (!add_path(s, &path))
            return false;
    }
    return true;
}

/* Return the path of a file in *index; classify the file on first use. */
static bool
find_path(struct dryi_sites *s, struct dryi_map *by_file, uint32_t file, uint32_t *index)
{
    const uint32_t *known = dryi_map_find(by_file, file);
    if (known) {
        *index = *known;
        return true;
    }
    size_t length = 0;
    const char *bytes = dry_trace_string(s->trace, file, &length);
    struct dryi_path path;
    dryi_path_read(&path, bytes, bytes ? length : 0);
    *index = s->path_count;
    return add_path(s, &path) && dryi_map_put(by_file, file, *index);
}

/* --- frames ------------------------------------------------------------------------------- */

/* Return whether a frame is Python. A script may lack .py, but it has a line, and a function
   name that C++ cannot have. */
static bool
is_python(const struct dryi_path *path, uint32_t line, const char *name, size_t length)
{
    if (path->code == DRYI_CODE_NATIVE)
        return false;
    if (path->has_extension)
        return true;
    if (line == 0 || length > WHAT_BYTES_MAX)
        return false;
    return !memchr(name, '(', length) && !memchr(name, ':', length);
}

static bool
set_what(struct dryi_sites *s, struct dryi_frame_site *frame, const char *prefix,
         const char *bytes, size_t length)
{
    struct dryi_label label;
    dryi_label_init(&label);
    dryi_label_format(&label, "%s", prefix);
    dryi_label_add(&label, bytes, length, WHAT_BYTES_MAX);
    frame->what = dryi_intern_put(&s->words, label.bytes, label.length);
    return frame->what != DRYI_INTERN_NONE;
}

static bool
classify_native(struct dryi_sites *s, struct dryi_frame_site *frame, const char *name,
                size_t length)
{
    struct dryi_symbol symbol;
    dryi_symbol_read(&symbol, name, length);
    frame->code = (uint8_t)symbol.code;
    frame->operation = (uint8_t)symbol.operation;
    frame->name_begin = symbol.begin;
    frame->name_length = symbol.length;
    if (symbol.code == DRYI_CODE_AUTOGRAD)
        frame->path = WORD_AUTOGRAD;
    else if (symbol.code != DRYI_CODE_NATIVE)
        frame->path = WORD_TORCH;
    else if (s->paths[frame->path].is_unknown)
        frame->path = WORD_NATIVE;
    if (symbol.operation == DRYI_OPERATION_NONE)
        return true;
    if (symbol.operation == DRYI_OPERATION_WORKSPACE)
        return set_what(s, frame, "", "cuBLAS workspace", 16);
    bool is_binding = symbol.operation == DRYI_OPERATION_BINDING;
    return set_what(s, frame, is_binding ? "" : "aten::", name + symbol.op_begin,
                    symbol.op_length);
}

/* Functions that only forward a call do not tell what was called. */
static bool
is_wrapper(const char *name, size_t length)
{
    static const char *const names[] = {
        "_call_impl",
        "_wrapped_call_impl",
        "__call__",
        "wrapper",
        "inner",
        "_fn",
        "decorate_context",
        "call",
        "decorate_autocast",
        "<lambda>",
        "_wrapped",
        "<module>",
        "",
        "wrapped",
        "_apply",
        "fn",
        "__torch_function__",
        "<genexpr>",
        "<listcomp>",
        "<dictcomp>",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (length == strlen(names[i]) && memcmp(name, names[i], length) == 0)
            return true;
    }
    return false;
}

static bool
classify_python(struct dryi_sites *s, struct dryi_frame_site *frame, const char *name,
                size_t length)
{
    const struct dryi_path *path = &s->paths[frame->path];
    frame->code = path->code;
    frame->name_length = (uint32_t)length;
    if (path->length == 8 && memcmp(path->bytes, "<string>", 8) == 0 &&
        dryi_text_is(name, length, "<module>"))
        frame->code = DRYI_CODE_USER; /* "<string>" is user code as the
                                         outermost frame: python -c */
    if (frame->code == DRYI_CODE_GENERATED && path->form == DRYI_PATH_INDUCTOR)
        return set_what(s, frame, "", "compiled code", 13);
    if (frame->code == DRYI_CODE_USER || is_wrapper(name, length))
        return true;
    if (dryi_text_is(name, length, "forward")) /* name forward() of linear.py "linear" */
        name = dryi_path_stem(path, &length);
    return set_what(s, frame, "", name, length);
}

struct frame_tables {
    struct dryi_map paths;                /* file -> path index */
    struct dryi_intern places, functions; /* numbers of (path, name,
                                             line) and of (path, name) */
};

static bool
number_frame(struct frame_tables *t, struct dryi_frame_site *frame,
             const struct dry_frame *from)
{
    uint32_t key[3] = {frame->path, from->name, from->line};
    frame->place = dryi_intern_put(&t->places, key, sizeof key);
    frame->function = dryi_intern_put(&t->functions, key, 2 * sizeof *key);
    return frame->place != DRYI_INTERN_NONE && frame->function != DRYI_INTERN_NONE;
}

static bool
classify_frame(struct dryi_sites *s, struct frame_tables *t, uint32_t id)
{
    const struct dry_frame *from = &s->view->frames[id];
    struct dryi_frame_site *frame = &s->frames[id];
    frame->what = DRY_NONE;
    size_t length = 0;
    const char *name = dry_trace_string(s->trace, from->name, &length);
    if (!name) {
        name = "";
        length = 0;
    }
    if (!find_path(s, &t->paths, from->file, &frame->path))
        return false;
    bool done = is_python(&s->paths[frame->path], from->line, name, length)
                    ? classify_python(s, frame, name, length)
                    : classify_native(s, frame, name, length);
    return done && number_frame(t, frame, from);
}

static bool
classify_frames(struct dryi_sites *s)
{
    struct frame_tables t;
    dryi_map_init(&t.paths, &s->memory);
    dryi_intern_init(&t.places, &s->memory);
    dryi_intern_init(&t.functions, &s->memory);
    bool done = true;
    for (uint32_t id = 0; done && id < s->view->frame_count; id++)
        done = classify_frame(s, &t, id);
    dryi_map_finish(&t.paths);
    dryi_intern_finish(&t.places);
    dryi_intern_finish(&t.functions);
    return done;
}

/* --- components that make paths unique ---------------------------------------------------- */

/* Numbers of path endings: `ids` by path; `counts` by id, the paths that end so. */
struct endings {
    uint32_t *ids, *counts;
};

static bool
is_deepened(const struct dryi_path *path, unsigned parts)
{
    return path->code == DRYI_CODE_USER && path->form == DRYI_PATH_FILE &&
           path->shown_parts == parts;
}

static bool
count_endings(struct dryi_sites *s, unsigned parts, struct endings *e)
{
    struct dryi_intern endings;
    dryi_intern_init(&endings, &s->memory);
    memset(e->counts, 0, s->path_count * sizeof *e->counts);
    bool done = true;
    for (uint32_t i = 0; done && i < s->path_count; i++) {
        if (!is_deepened(&s->paths[i], parts))
            continue;
        struct dryi_label label;
        dryi_label_init(&label);
        dryi_path_write(&s->paths[i], parts, &label);
        e->ids[i] = dryi_intern_put(&endings, label.bytes, label.length);
        done = e->ids[i] != DRYI_INTERN_NONE;
        if (done)
            e->counts[e->ids[i]]++;
    }
    dryi_intern_finish(&endings);
    return done;
}

/* Show one more folder for each user file whose ending is not unique. */
static bool
deepen(struct dryi_sites *s, unsigned parts, struct endings *e)
{
    if (!count_endings(s, parts, e))
        return false;
    for (uint32_t i = 0; i < s->path_count; i++) {
        struct dryi_path *path = &s->paths[i];
        if (is_deepened(path, parts) && e->counts[e->ids[i]] > 1 &&
            path->part_count > parts)
            path->shown_parts++;
    }
    return true;
}

static bool
tell_paths_apart(struct dryi_sites *s)
{
    struct endings e = {
        .ids = dryi_memory_zalloc(&s->memory, s->path_count, sizeof *e.ids),
        .counts = dryi_memory_zalloc(&s->memory, s->path_count, sizeof *e.counts),
    };
    bool done = e.ids && e.counts;
    for (unsigned parts = 1; done && parts < DEPTH_MAX; parts++)
        done = deepen(s, parts, &e);
    dryi_memory_free(&s->memory, e.ids, s->path_count, sizeof *e.ids);
    dryi_memory_free(&s->memory, e.counts, s->path_count, sizeof *e.counts);
    return done;
}

/* --- stacks ------------------------------------------------------------------------------- */

static bool
is_native_code(uint8_t code)
{
    return code <= DRYI_CODE_AUTOGRAD;
}

/* Find the operation in the C++ frames before the first Python frame. */
static uint32_t
find_operation(const struct dryi_sites *s, const uint32_t *frames, size_t count)
{
    uint32_t what = DRY_NONE;
    uint8_t best = DRYI_OPERATION_NONE;
    for (size_t i = 0; i < count; i++) {
        const struct dryi_frame_site *frame = &s->frames[frames[i]];
        if (!is_native_code(frame->code))
            break;
        if (frame->operation == DRYI_OPERATION_NONE || frame->operation < best)
            continue;
        best = frame->operation;
        what = frame->what;
    }
    return what;
}

/* Return the innermost Python function that is no wrapper. */
static uint32_t
find_called(const struct dryi_sites *s, const uint32_t *frames, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct dryi_frame_site *frame = &s->frames[frames[i]];
        if (!is_native_code(frame->code) && frame->what != DRY_NONE)
            return frame->what;
    }
    return DRY_NONE;
}

/* Return the index of the first frame of the forward pass, 0 if there is none. */
static size_t
find_forward(const struct dryi_sites *s, const uint32_t *frames, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (s->view->frames[frames[i]].flags & DRY_FRAME_FORWARD)
            return i;
    return 0;
}

static void
read_stack(const struct dryi_sites *s, uint32_t stack, struct dryi_site *site)
{
    size_t count;
    const uint32_t *frames = dry_trace_stack(s->trace, stack, &count);
    const size_t first = find_forward(s, frames, count);
    size_t at = first;
    *site = (struct dryi_site){DRY_NONE, DRY_NONE, DRY_NONE};
    for (size_t i = first; i < count; i++) {
        uint8_t code = s->frames[frames[i]].code;
        if (i == first || code > s->frames[site->owner].code) {
            site->owner = frames[i];
            at = i;
        }
        if (code == s->frames[site->owner].code)
            site->outermost = frames[i];
    }
    if (count == 0)
        return;
    bool is_operation = s->frames[site->owner].code == DRYI_CODE_OPERATION;
    site->what = find_operation(s, frames, is_operation ? count : at);
    if (site->what == DRY_NONE)
        site->what = find_called(s, frames, at);
}

/* --- creation ----------------------------------------------------------------------------- */

static bool
make(struct dryi_sites *s)
{
    const struct dry_trace_view *v = s->view;
    if (v->frame_count > 0) {
        s->frames = dryi_memory_zalloc(&s->memory, v->frame_count, sizeof *s->frames);
        if (!s->frames)
            return false;
    }
    if (v->stack_count > 0) {
        s->stacks = dryi_memory_zalloc(&s->memory, v->stack_count, sizeof *s->stacks);
        if (!s->stacks)
            return false;
    }
    if (!add_native_labels(s) || !classify_frames(s) || !tell_paths_apart(s))
        return false;
    for (uint32_t i = 0; i < v->stack_count; i++)
        read_stack(s, i, &s->stacks[i]);
    return true;
}

enum dry_status
dryi_sites_init(struct dryi_sites *sites, const struct dry_trace *trace,
                const struct dry_memory *memory, struct dry_error *err)
{
    *sites = (struct dryi_sites){.memory = dryi_memory_or_default(memory),
                                 .trace = trace,
                                 .view = dry_trace_get_view(trace)};
    dryi_intern_init(&sites->words, &sites->memory);
    return make(sites) ? DRY_OK : dryi_fail_memory(err, "the frames' owners");
}

void
dryi_sites_finish(struct dryi_sites *s)
{
    const struct dry_memory *m = &s->memory;
    if (!s->view)
        return;
    dryi_memory_free(m, s->paths, s->path_capacity, sizeof *s->paths);
    dryi_memory_free(m, s->frames, s->view->frame_count, sizeof *s->frames);
    dryi_memory_free(m, s->stacks, s->view->stack_count, sizeof *s->stacks);
    dryi_intern_finish(&s->words);
    *s = (struct dryi_sites){0};
}

/* --- text --------------------------------------------------------------------------------- */

const char *
dryi_sites_what(const struct dryi_sites *sites, uint32_t what, size_t *length)
{
    if (what == DRY_NONE) {
        *length = 0;
        return "";
    }
    return dryi_intern_get(&sites->words, what, length);
}

static void
write_path(const struct dryi_sites *s, uint32_t frame, struct dryi_label *label)
{
    const struct dryi_path *path = &s->paths[s->frames[frame].path];
    dryi_path_write(path, path->shown_parts, label);
}

void
dryi_sites_write_module(const struct dryi_sites *s, uint32_t frame,
                        struct dryi_label *label)
{
    if (s->view->frames[frame].flags & DRY_FRAME_FORWARD)
        dryi_label_format(label, "backward of ");
    write_path(s, frame, label);
}

void
dryi_sites_write_name(const struct dryi_sites *s, uint32_t frame,
                      struct dryi_label *label)
{
    const struct dryi_frame_site *site = &s->frames[frame];
    size_t length = 0;
    const char *name = dry_trace_string(s->trace, s->view->frames[frame].name, &length);
    if (!name)
        return;
    DRYI_ASSERT((size_t)site->name_begin + site->name_length <= length);
    dryi_label_add(label, name + site->name_begin, site->name_length, NAME_BYTES_MAX);
}

/* Append a blank and the function's name; nothing if it has no name. */
static void
add_name(const struct dryi_sites *s, uint32_t frame, struct dryi_label *label)
{
    if (s->frames[frame].name_length == 0)
        return;
    dryi_label_format(label, " ");
    dryi_sites_write_name(s, frame, label);
}

void
dryi_sites_write_function(const struct dryi_sites *s, uint32_t frame,
                          struct dryi_label *label)
{
    dryi_sites_write_module(s, frame, label);
    add_name(s, frame, label);
}

/* Append ":174 update_nodes". */
static void
add_line(const struct dryi_sites *s, uint32_t frame, struct dryi_label *label)
{
    uint32_t line = s->view->frames[frame].line;
    if (line > 0)
        dryi_label_format(label, ":%u", (unsigned)line);
    add_name(s, frame, label);
}

void
dryi_sites_write_line(const struct dryi_sites *s, uint32_t frame,
                      struct dryi_label *label)
{
    dryi_sites_write_module(s, frame, label);
    add_line(s, frame, label);
}

void
dryi_sites_write_stack(const struct dryi_sites *s, uint32_t stack,
                       struct dryi_label *label)
{
    size_t count;
    const uint32_t *frames = dry_trace_stack(s->trace, stack, &count);
    const struct dryi_site *site = &s->stacks[stack];
    if (site->owner == DRY_NONE)
        return;
    if (s->frames[site->owner].code != DRYI_CODE_USER) {
        dryi_sites_write_line(s, site->owner, label);
        return;
    }
    const size_t empty = label->length;
    for (size_t i = find_forward(s, frames, count); i < count; i++) {
        if (s->frames[frames[i]].code != DRYI_CODE_USER)
            continue;
        if (label->length + 64 > DRYI_LABEL_BYTES) {
            dryi_label_format(label, " < \xe2\x80\xa6");
            return;
        }
        if (label->length == empty) {
            dryi_sites_write_line(s, frames[i], label);
            continue;
        }
        dryi_label_format(label, " < ");
        write_path(s, frames[i], label);
        add_line(s, frames[i], label);
    }
}

size_t
dryi_sites_name_stack(const struct dryi_sites *sites, uint32_t stack, char *text,
                      size_t capacity)
{
    struct dryi_label label;
    dryi_label_init(&label);
    uint32_t owner = stack != DRY_NONE ? sites->stacks[stack].owner : DRY_NONE;
    if (owner == DRY_NONE) {
        dryi_label_format(&label, "(no stack)");
    } else {
        size_t length;
        const char *what = dryi_sites_what(sites, sites->stacks[stack].what, &length);
        dryi_sites_write_line(sites, owner, &label);
        if (length > 0) {
            dryi_label_format(&label, " (");
            dryi_label_add(&label, what, length, 64);
            dryi_label_format(&label, ")");
        }
    }
    size_t length = label.length < capacity ? label.length : capacity - 1;
    memcpy(text, label.bytes, length);
    text[length] = '\0';
    return length;
}
