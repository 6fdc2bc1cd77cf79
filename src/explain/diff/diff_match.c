/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Match owners of different subjects.
 *
 * First match all but the line: the last components of the file, the function, or the name of an
 * owner that is no source line. Equal texts get equal numbers. Then match lines, function by
 * function: each subject's lines are aligned with those of all earlier subjects.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "explain/diff/align.h"
#include "explain/diff/diff_inside.h"

/* --- files -------------------------------------------------------------------------------- */

/* For each file name of the user's files: the largest number of components that any subject
   needs to make its files unique. */
struct depths {
    struct dryi_intern names;
    uint8_t *parts;
    size_t capacity;
};

static uint32_t
put_name(struct depths *d, const struct dryi_path *path)
{
    struct dryi_label label;
    dryi_label_init(&label);
    dryi_path_write_key(path, 1, &label);
    return dryi_intern_put(&d->names, label.bytes, label.length);
}

static bool
add_depth(struct dry_diff *diff, struct depths *d, const struct dryi_path *path)
{
    if (path->code != DRYI_CODE_USER)
        return true;
    uint32_t known = d->names.count;
    uint32_t id = put_name(d, path);
    if (id == DRYI_INTERN_NONE ||
        !dryi_memory_grow(&diff->memory, &d->parts, &d->capacity, (size_t)id + 1, 1))
        return false;
    if (id == known || d->parts[id] < path->shown_parts)
        d->parts[id] = path->shown_parts;
    return true;
}

static bool
find_depths(struct dry_diff *diff, struct depths *d)
{
    for (size_t t = 0; t < diff->trace_count; t++) {
        const struct dryi_sites *sites = &diff->traces[t].sites;
        for (uint32_t i = 0; i < sites->path_count; i++) {
            if (!add_depth(diff, d, &sites->paths[i]))
                return false;
        }
    }
    return true;
}

static unsigned
get_depth(struct depths *d, const struct dryi_path *path)
{
    if (path->code != DRYI_CODE_USER)
        return path->shown_parts;
    struct dryi_label label;
    dryi_label_init(&label);
    dryi_path_write_key(path, 1, &label);
    uint32_t id = dryi_intern_find(&d->names, label.bytes, label.length);
    return id == DRYI_INTERN_NONE ? 1 : d->parts[id];
}

/* --- functions ---------------------------------------------------------------------------- */

/* Write an owner's key without the line. A zero byte separates fields that may
   contain any other byte. */
static void
write_key(struct dry_diff *diff, struct depths *d, const struct dryi_diff_entry *entry,
          struct dryi_label *label)
{
    const struct dry_owner *o = entry->owner;
    if (o->frame == DRY_NONE) {
        dryi_label_format(label, "%c", '=');
        dryi_label_add(label, o->name, o->name_length, DRYI_LABEL_BYTES);
        return;
    }
    const struct dryi_sites *sites = &diff->traces[diff->trace_of[entry->subject]].sites;
    const struct dryi_path *path = &sites->paths[sites->frames[o->frame].path];
    bool is_forward = sites->view->frames[o->frame].flags & DRY_FRAME_FORWARD;
    dryi_label_format(label, "%c", o->is_of_free ? 'f' : is_forward ? 'b' : 'a');
    dryi_path_write_key(path, get_depth(d, path), label);
    if (diff->key == DRY_OWNER_MODULE)
        return;
    dryi_label_add(label, "", 1, 16);
    dryi_sites_write_name(sites, o->frame, label);
}

static bool
number_functions(struct dry_diff *diff, struct depths *d)
{
    struct dryi_intern functions;
    dryi_intern_init(&functions, &diff->memory);
    bool done = true;
    for (size_t i = 0; done && i < diff->entry_count; i++) {
        struct dryi_diff_entry *entry = &diff->entries[i];
        struct dryi_label label;
        dryi_label_init(&label);
        write_key(diff, d, entry, &label);
        entry->function = dryi_intern_put(&functions, label.bytes, label.length);
        done = entry->function != DRYI_INTERN_NONE;
    }
    dryi_intern_finish(&functions);
    return done;
}

/* --- lines -------------------------------------------------------------------------------- */

static int
compare_entries(const void *a, const void *b)
{
    const struct dryi_diff_entry *x = a, *y = b;
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    if (x->subject != y->subject)
        return x->subject < y->subject ? -1 : 1;
    return (x->line > y->line) - (x->line < y->line);
}

/* A line of the function, in the line numbers of the first subject that has it. */
struct base_line {
    int64_t line;
    uint32_t row;
};

struct matcher {
    struct dry_diff *diff;
    struct base_line *base;
    size_t base_count, base_capacity;
    int64_t *base_lines, *lines;
    size_t base_lines_capacity, line_capacity;
    size_t *partners;
    size_t partner_capacity;
    bool is_one_source; /* all subjects are of one trace */
};

static int
compare_base(const void *a, const void *b)
{
    const struct base_line *x = a, *y = b;
    return (x->line > y->line) - (x->line < y->line);
}

/* Collect a subject's lines without duplicates. Entries share a line if their files
   differ only by hashes. */
static size_t
collect_lines(struct matcher *m, const struct dryi_diff_entry *entries, size_t count)
{
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        if (used == 0 || m->lines[used - 1] != (int64_t)entries[i].line)
            m->lines[used++] = (int64_t)entries[i].line;
    }
    return used;
}

static bool
make_room(struct matcher *m, size_t count)
{
    const struct dry_memory *memory = &m->diff->memory;
    return dryi_memory_grow(memory, &m->lines, &m->line_capacity, count,
                            sizeof *m->lines) &&
           dryi_memory_grow(memory, &m->partners, &m->partner_capacity, count,
                            sizeof *m->partners) &&
           dryi_memory_grow(memory, &m->base, &m->base_capacity, m->base_count + count,
                            sizeof *m->base) &&
           dryi_memory_grow(memory, &m->base_lines, &m->base_lines_capacity,
                            m->base_count + count, sizeof *m->base_lines);
}

/* Align lines with the base. In one source equal line numbers match. */
static int64_t
align(struct matcher *m, size_t line_count)
{
    for (size_t i = 0; i < m->base_count; i++)
        m->base_lines[i] = m->base[i].line;
    if (!m->is_one_source)
        return dryi_align_lines(m->base_lines, m->base_count, m->lines, line_count,
                                m->partners);
    size_t b = 0;
    for (size_t i = 0; i < line_count; i++) {
        while (b < m->base_count && m->base[b].line < m->lines[i])
            b++;
        bool is_pair = b < m->base_count && m->base[b].line == m->lines[i];
        m->partners[i] = is_pair ? b : SIZE_MAX;
    }
    return 0;
}

/* Set the rows for one subject's lines. Lines without a partner are added to the base. */
static bool
match_subject(struct matcher *m, struct dryi_diff_entry *entries, size_t count)
{
    if (!make_room(m, count))
        return false;
    size_t line_count = collect_lines(m, entries, count);
    int64_t shift = align(m, line_count);
    size_t base_count = m->base_count, at = 0;
    for (size_t i = 0; i < line_count; i++) {
        uint32_t row = m->partners[i] == SIZE_MAX ? m->diff->row_count++
                                                  : m->base[m->partners[i]].row;
        if (m->partners[i] == SIZE_MAX)
            m->base[base_count++] = (struct base_line){m->lines[i] + shift, row};
        for (; at < count && (int64_t)entries[at].line == m->lines[i]; at++)
            entries[at].row = row;
    }
    m->base_count = base_count;
    qsort(m->base, m->base_count, sizeof *m->base, compare_base);
    return true;
}

/* Count the entries from `from` on with the same function and subject. */
static size_t
count_alike(const struct dry_diff *diff, size_t from)
{
    const struct dryi_diff_entry *first = &diff->entries[from];
    size_t to = from + 1;
    while (to < diff->entry_count && diff->entries[to].function == first->function &&
           diff->entries[to].subject == first->subject)
        to++;
    return to - from;
}

static bool
match_lines(struct dry_diff *diff)
{
    struct matcher m = {.diff = diff, .is_one_source = diff->trace_count <= 1};
    bool done = true;
    for (size_t i = 0; done && i < diff->entry_count;) {
        if (i == 0 || diff->entries[i].function != diff->entries[i - 1].function)
            m.base_count = 0;
        size_t count = count_alike(diff, i);
        done = match_subject(&m, &diff->entries[i], count);
        i += count;
    }
    const struct dry_memory *memory = &diff->memory;
    dryi_memory_free(memory, m.base, m.base_capacity, sizeof *m.base);
    dryi_memory_free(memory, m.base_lines, m.base_lines_capacity, sizeof *m.base_lines);
    dryi_memory_free(memory, m.lines, m.line_capacity, sizeof *m.lines);
    dryi_memory_free(memory, m.partners, m.partner_capacity, sizeof *m.partners);
    return done;
}

bool
dryi_diff_match(struct dry_diff *diff)
{
    struct depths d = {.capacity = 0};
    dryi_intern_init(&d.names, &diff->memory);
    bool done = find_depths(diff, &d) && number_functions(diff, &d);
    dryi_intern_finish(&d.names);
    dryi_memory_free(&diff->memory, d.parts, d.capacity, 1);
    if (!done)
        return false;
    if (diff->entry_count > 1)
        qsort(diff->entries, diff->entry_count, sizeof *diff->entries, compare_entries);
    return match_lines(diff);
}
