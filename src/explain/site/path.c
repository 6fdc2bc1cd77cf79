/* SPDX-License-Identifier: Apache-2.0 */

/* One pass over the components of a path compares each with the folder names that CPython and
   PyTorch use. Cost: O(length). path.h has the rules and sources. */
#include "explain/site/path.h"

#include <string.h>

#include "base/ascii.h"

/* --- components --------------------------------------------------------------------------- */

struct part {
    const char *bytes;
    size_t length;
};

static bool
is(struct part part, const char *word)
{
    return dryi_text_is(part.bytes, part.length, word);
}

static bool
begins_with(struct part part, const char *word)
{
    return dryi_text_begins(part.bytes, part.length, word);
}

static bool
ends_with(struct part part, const char *word)
{
    return dryi_text_ends(part.bytes, part.length, word);
}

/* Compare without case; `word` is in lower case. */
static bool
has_at(struct part part, size_t at, const char *word)
{
    for (size_t i = 0; word[i]; i++) {
        if (at + i >= part.length || dryi_to_lower(part.bytes[at + i]) != word[i])
            return false;
    }
    return true;
}

/* Return whether a component contains `word`. Components of more than 255
   bytes are no known folder. */
static bool
contains(struct part part, const char *word)
{
    if (part.length > 255)
        return false;
    for (size_t at = 0; at < part.length; at++) {
        if (has_at(part, at, word))
            return true;
    }
    return false;
}

static bool
is_separator(const struct dryi_path *path, char c)
{
    return c == '/' || (c == '\\' && path->has_backslashes);
}

/* Read the next component from *at on, and move *at past it. Returns false at the end. */
static bool
next_part(const struct dryi_path *path, size_t *at, struct part *part)
{
    while (*at < path->length && is_separator(path, path->bytes[*at]))
        ++*at;
    if (*at == path->length)
        return false;
    part->bytes = path->bytes + *at;
    while (*at < path->length && !is_separator(path, path->bytes[*at]))
        ++*at;
    part->length = (size_t)(path->bytes + *at - part->bytes);
    return true;
}

/* --- a pass over the components ----------------------------------------------------------- */

struct walk {
    struct dryi_path *path;
    struct part last, before, part; /* `part` is the current component, `last` and
                                       `before` are the two before it */
    unsigned count;                 /* components before the
                                       current one, without a drive */
    bool is_machines;               /* the components so far depend on the
                             machine: the tail begins later */
    bool is_user_next;    /* the next component is a user's name, as after /home/ */
    bool is_package;      /* inside site-packages */
    bool is_package_next; /* the next component is a package's name */
    bool is_inductor, is_notebook;
};

static bool
is_torch_folder(struct part part)
{
    static const char *const names[] = {
        "nn",
        "autograd",
        "optim",
        "_dynamo",
        "_inductor",
        "_functorch",
        "_refs",
        "_prims",
        "_decomp",
        "_ops.py",
        "_tensor.py",
        "fx",
        "_higher_order_ops",
        "functional.py",
        "distributed",
        "_subclasses",
        "amp",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (is(part, names[i]))
            return true;
    }
    return false;
}

/* Match "python3.12", "python3", "python312.zip" in a lib folder. */
static bool
is_python_library(const struct walk *w)
{
    struct part part = w->part;
    if (!begins_with(part, "python"))
        return false;
    if (ends_with(part, ".zip"))
        return true;
    for (size_t i = 6; i < part.length; i++) {
        char c = part.bytes[i];
        /* 't' as in 3.13t, built without the GIL */
        if (c != '.' && c != 't' && (c < '0' || c > '9'))
            return false;
    }
    return is(w->last, "lib") || is(w->last, "lib64");
}

/* Match ...\Python312\Lib\, ...\anaconda3\Lib\, ...\envs\NAME\Lib\. */
static bool
is_windows_library(const struct walk *w)
{
    if (!w->path->has_backslashes || w->part.length != 3 || !has_at(w->part, 0, "lib"))
        return false;
    return contains(w->last, "python") || contains(w->last, "conda") ||
           is(w->before, "envs");
}

static bool
is_environment(const struct walk *w)
{
    return is(w->last, "envs") &&
           (contains(w->before, "conda") || contains(w->before, "mamba") ||
            contains(w->before, "miniforge"));
}

static void
enter_package(struct walk *w)
{
    if (ends_with(w->part, ".egg")) { /* the package is the next component:
                                         NAME-VERSION-pyX.Y.egg/NAME */
        w->is_machines = true;
        return;
    }
    w->is_package_next = false;
    bool is_torch =
        is(w->part, "torch") || is(w->part, "torchgen") || is(w->part, "functorch");
    w->path->code = is_torch ? DRYI_CODE_TORCH : DRYI_CODE_PACKAGE;
}

/* Return whether the folder is a root whose contents look alike on every machine. */
static bool
is_root(const struct walk *w)
{
    return (w->count == 0 && is(w->part, "root")) || ends_with(w->part, ".runfiles") ||
           begins_with(w->part, "_ray_pkg_") || is(w->part, "..") || is(w->part, ".") ||
           is_environment(w);
}

static void
visit_part(struct walk *w)
{
    struct dryi_path *path = w->path;
    if (w->is_machines)
        path->tail = (uint32_t)(w->part.bytes - path->bytes);
    w->is_machines = w->is_user_next;
    w->is_user_next = false;
    if (w->is_package_next)
        enter_package(w);
    if (is(w->part, "site-packages") || is(w->part, "dist-packages")) {
        w->is_package = w->is_package_next = w->is_machines = true;
        path->code = DRYI_CODE_PACKAGE;
    } else if (w->is_package) {
        return;
    } else if (is_python_library(w) || is_windows_library(w)) {
        path->code = DRYI_CODE_LIBRARY;
        w->is_machines = true;
    } else if (w->count == 0 && (is(w->part, "home") || is(w->part, "Users"))) {
        w->is_user_next = w->is_machines = true;
    } else if (is(w->last, "torch") && is_torch_folder(w->part) &&
               path->code == DRYI_CODE_USER) {
        path->code = DRYI_CODE_TORCH; /* a source checkout of PyTorch */
        path->tail = (uint32_t)(w->last.bytes - path->bytes);
    } else if (is_root(w)) {
        w->is_machines = true;
    }
    w->is_inductor |= begins_with(w->part, "torchinductor_");
    w->is_notebook |= begins_with(w->part, "ipykernel_");
}

static void
walk_parts(struct walk *w)
{
    struct part part;
    for (size_t at = 0; next_part(w->path, &at, &part);) {
        bool is_drive = w->count == 0 && part.length == 2 && part.bytes[1] == ':';
        w->part = part;
        if (is_drive) {
            w->is_machines = true;
            continue;
        }
        visit_part(w);
        w->before = w->last;
        w->last = part;
        w->count++;
    }
}

/* --- files -------------------------------------------------------------------------------- */

/* Match a file of Inductor's cache: 'c' and 51 base-32 letters, in a folder named by the second and
   third letter. The cache's own location does not matter. */
static bool
is_hashed(struct part file, struct part folder)
{
    if (file.length != 55 || folder.length != 2 || !ends_with(file, ".py") ||
        file.bytes[0] != 'c' || memcmp(file.bytes + 1, folder.bytes, 2) != 0)
        return false;
    for (size_t i = 1; i < 52; i++) {
        char c = file.bytes[i];
        if ((c < 'a' || c > 'z') && (c < '2' || c > '7'))
            return false;
    }
    return true;
}

static bool
has_extension(struct part file, const char *const *extensions, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t length = strlen(extensions[i]);
        if (file.length > length && has_at(file, file.length - length, extensions[i]))
            return true;
    }
    return false;
}

static void
classify_file(struct walk *w)
{
    static const char *const python[] = {".py", ".pyw", ".pyx", ".ipynb"};
    static const char *const native[] = {".c",   ".cc", ".cpp", ".cxx", ".cu",
                                         ".cuh", ".h",  ".hpp", ".o",   ".s",
                                         ".rs",  ".so", ".inl"};
    struct dryi_path *path = w->path;
    bool is_python = has_extension(w->last, python, sizeof python / sizeof *python);
    bool is_native = has_extension(w->last, native, sizeof native / sizeof *native);
    path->has_extension = is_python || is_native;
    if (is_native) {
        path->code = DRYI_CODE_NATIVE;
    } else if (is_python && (w->is_inductor || is_hashed(w->last, w->before))) {
        path->code = DRYI_CODE_GENERATED;
        path->form = DRYI_PATH_INDUCTOR;
    } else if (is_python && begins_with(w->last, "_drystone_")) {
        path->code = DRYI_CODE_LIBRARY; /* a dry run's hook makes the call
                                  in place of the program */
    } else if (is_python && w->is_notebook && path->code == DRYI_CODE_USER) {
        path->form = DRYI_PATH_NOTEBOOK;
    }
    if (path->form != DRYI_PATH_FILE)
        path->tail = (uint32_t)(w->last.bytes - path->bytes);
}

/* Classify "<frozen runpy>", "<eval_with_key>.7", "<ipython-input-3-ab12>", "<stdin>". "<string>"
   is user code only as the outermost frame (python -c), which only the caller knows. */
static void
classify_angle(struct dryi_path *path)
{
    struct part all = {path->bytes, path->length};
    path->has_extension = 1;
    path->code = DRYI_CODE_GENERATED;
    if (begins_with(all, "<frozen "))
        path->code = DRYI_CODE_LIBRARY;
    else if (begins_with(all, "<stdin"))
        path->code = DRYI_CODE_USER;
    if (begins_with(all, "<ipython-input")) {
        path->code = DRYI_CODE_USER;
        path->form = DRYI_PATH_NOTEBOOK;
    }
}

static void
count_parts(struct dryi_path *path)
{
    struct part part;
    unsigned count = 0;
    for (size_t at = path->tail; next_part(path, &at, &part);)
        count++;
    path->part_count = (uint8_t)(count == 0 ? 1 : count > 255 ? 255 : count);
    path->shown_parts = path->code == DRYI_CODE_USER ? 1 : path->part_count;
}

void
dryi_path_read(struct dryi_path *path, const char *bytes, size_t length)
{
    *path = (struct dryi_path){.bytes = length ? bytes : "",
                               .length = (uint32_t)length,
                               .code = DRYI_CODE_USER,
                               .part_count = 1,
                               .shown_parts = 1};
    if (length == 0 || (length == 2 && memcmp(bytes, "??", 2) == 0)) {
        path->is_unknown = 1;
        path->code = DRYI_CODE_NATIVE;
        return;
    }
    if (bytes[0] == '<') {
        classify_angle(path);
        return;
    }
    bool has_drive = length > 2 && bytes[1] == ':' && bytes[2] == '\\';
    path->has_backslashes = has_drive || bytes[0] == '\\' || !memchr(bytes, '/', length);
    struct walk w = {.path = path, .last = {"", 0}, .before = {"", 0}};
    walk_parts(&w);
    classify_file(&w);
    count_parts(path);
}

void
dryi_path_set_word(struct dryi_path *path, const char *word, enum dryi_code code)
{
    *path = (struct dryi_path){.bytes = word,
                               .length = (uint32_t)strlen(word),
                               .code = (uint8_t)code,
                               .form = DRYI_PATH_OURS,
                               .has_extension = 1,
                               .part_count = 1,
                               .shown_parts = 1};
}

/* --- text --------------------------------------------------------------------------------- */

#define PATH_BYTES_MAX 240u
#define HASH_LETTERS 7u

/* Return the offset of the last `parts` components. */
static size_t
find_parts(const struct dryi_path *path, unsigned parts)
{
    size_t at = path->length;
    while (at > path->tail && is_separator(path, path->bytes[at - 1]))
        at--;
    for (unsigned i = 0; i < parts; i++) {
        size_t end = at;
        while (end > path->tail && is_separator(path, path->bytes[end - 1]))
            end--;
        if (end == path->tail) /* the root's slash is no component */
            break;
        for (at = end; at > path->tail && !is_separator(path, path->bytes[at - 1]);)
            at--;
    }
    return at;
}

static void
write_file(const struct dryi_path *path, unsigned parts, struct dryi_label *label)
{
    size_t begin = label->length;
    size_t from = path->bytes[0] == '<' ? 0 : find_parts(path, parts);
    dryi_label_add(label, path->bytes + from, path->length - from, PATH_BYTES_MAX);
    for (size_t i = begin; path->has_backslashes && i < label->length; i++) {
        if (label->bytes[i] == '\\')
            label->bytes[i] = '/';
    }
}

void
dryi_path_write(const struct dryi_path *path, unsigned parts, struct dryi_label *label)
{
    size_t length;
    const char *stem = dryi_path_stem(path, &length);
    switch ((enum dryi_path_form)path->form) {
    case DRYI_PATH_INDUCTOR:
        dryi_label_format(label, "inductor/");
        dryi_label_add(label, stem, length < HASH_LETTERS ? length : HASH_LETTERS, 16);
        return;
    case DRYI_PATH_NOTEBOOK:
        dryi_label_format(label, "notebook/");
        dryi_label_add(label, stem, length, 24);
        return;
    case DRYI_PATH_FILE:
    case DRYI_PATH_OURS:
        break;
    }
    write_file(path, parts, label);
}

void
dryi_path_write_key(const struct dryi_path *path, unsigned parts,
                    struct dryi_label *label)
{
    if (path->form == DRYI_PATH_INDUCTOR)
        dryi_label_format(label, "inductor");
    else if (path->form == DRYI_PATH_NOTEBOOK)
        dryi_label_format(label, "notebook");
    else
        write_file(path, parts, label);
}

/* Find a notebook cell's number: 3 in "<ipython-input-3-ab12>". */
static const char *
find_cell(const struct dryi_path *path, size_t *length)
{
    size_t at = 0, end;
    while (at < path->length && (path->bytes[at] < '0' || path->bytes[at] > '9'))
        at++;
    for (end = at; end < path->length; end++) {
        if (path->bytes[end] < '0' || path->bytes[end] > '9')
            break;
    }
    *length = end - at;
    return path->bytes + at;
}

const char *
dryi_path_stem(const struct dryi_path *path, size_t *length)
{
    if (path->form == DRYI_PATH_NOTEBOOK && path->bytes[0] == '<')
        return find_cell(path, length);
    size_t from = find_parts(path, 1);
    size_t to = path->length;
    while (to > from && is_separator(path, path->bytes[to - 1]))
        to--;
    size_t dot = to;
    while (dot > from && path->bytes[dot - 1] != '.')
        dot--;
    *length = (dot > from + 1 ? dot - 1 : to) - from;
    return path->bytes + from;
}
