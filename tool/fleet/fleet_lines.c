/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea is in fleet_lines.h. All lines of all rows are sorted three times: by
 * function, to find equal ones; by row within a function; and finally by place.
 */
#include "fleet/fleet_lines.h"

#include <stdlib.h>
#include <string.h>

#include "fleet/robust.h"

#define ALIKE_MAX 256 /* functions of one name that are compared pairwise */

struct entry {
    const struct fleet_line *line;
    size_t row;
    uint32_t function; /* number of its text, later of the matched function */
    uint32_t number;   /* line number, later the matched one */
    uint32_t place;
};

/* The text of a function, "proj/models.py update", split into its components. */
struct function {
    const char *text;
    size_t path_length, file; /* length of the path; offset of its file name */
    uint32_t same;            /* number of the matched function */
};

/* The lines of a function that one row holds. */
struct span {
    size_t begin, end;
    uint64_t key; /* hash of the line numbers */
    uint64_t bytes;
};

struct matcher {
    struct entry *entries;
    size_t entry_count;
    struct function *functions;
    size_t function_count;
    struct span *spans, *sorted;
};

/* --- functions ---------------------------------------------------------------------------- */

static int
compare_texts(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    int order = strcmp(x->line->function, y->line->function);
    return order ? order : (x->row > y->row) - (x->row < y->row);
}

static struct function
split_function(const char *text, uint32_t number)
{
    const char *space = strrchr(text, ' ');
    struct function f = {.text = text, .same = number};
    f.path_length = space ? (size_t)(space - text) : strlen(text);
    f.file = f.path_length;
    while (f.file > 0 && text[f.file - 1] != '/')
        f.file--;
    return f;
}

static void
number_functions(struct matcher *m)
{
    qsort(m->entries, m->entry_count, sizeof *m->entries, compare_texts);
    for (size_t i = 0; i < m->entry_count; i++) {
        const char *text = m->entries[i].line->function;
        if (i == 0 || strcmp(text, m->entries[i - 1].line->function) != 0) {
            m->functions[m->function_count] =
                split_function(text, (uint32_t)m->function_count);
            m->function_count++;
        }
        m->entries[i].function = (uint32_t)m->function_count - 1;
    }
}

/* Order by file name and function name, so that candidates for a match are adjacent. */
static int
compare_names(const void *a, const void *b)
{
    const struct function *x = *(const struct function *const *)a;
    const struct function *y = *(const struct function *const *)b;
    int order = strcmp(x->text + x->file, y->text + y->file);
    return order ? order : strcmp(x->text, y->text);
}

/* Return true if the path of `longer` ends in that of `shorter`. */
static bool
is_end_of(const struct function *shorter, const struct function *longer)
{
    if (shorter->path_length >= longer->path_length)
        return false;
    size_t at = longer->path_length - shorter->path_length;
    return longer->text[at - 1] == '/' &&
           memcmp(longer->text + at, shorter->text, shorter->path_length) == 0;
}

/* Match each function of one name with the one longer path that ends in its own. */
static void
match_paths(struct function **alike, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct function *longest = NULL;
        bool is_sure = true;
        for (size_t k = 0; k < count; k++) {
            if (!is_end_of(alike[i], alike[k]))
                continue;
            if (longest && !is_end_of(longest, alike[k]) && !is_end_of(alike[k], longest))
                is_sure = false;
            if (!longest || is_end_of(longest, alike[k]))
                longest = alike[k];
        }
        if (longest && is_sure)
            alike[i]->same = (uint32_t)(longest->same);
    }
}

static bool
match_functions(struct matcher *m)
{
    struct function **order = malloc((m->function_count + 1) * sizeof *order);
    if (!order)
        return false;
    for (size_t i = 0; i < m->function_count; i++)
        order[i] = &m->functions[i];
    qsort(order, m->function_count, sizeof(struct function *), compare_names);
    for (size_t i = 0, end; i < m->function_count; i = end) {
        const char *name = order[i]->text + order[i]->file;
        for (end = i + 1; end < m->function_count && end - i < ALIKE_MAX &&
                          strcmp(order[end]->text + order[end]->file, name) == 0;
             end++)
            continue;
        match_paths(order + i, end - i);
    }
    free(order);
    for (size_t i = 0; i < m->entry_count; i++)
        m->entries[i].function = m->functions[m->entries[i].function].same;
    return true;
}

/* --- lines -------------------------------------------------------------------------------- */

static int
compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->number > y->number) - (x->number < y->number);
}

static int
compare_spans(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->begin > y->begin) - (x->begin < y->begin);
}

/* Split a function's entries from `begin` to `end` by row. Returns how many spans. */
static size_t
cut_spans(struct matcher *m, size_t begin, size_t end)
{
    size_t count = 0;
    for (size_t i = begin; i < end; i++) {
        const struct entry *e = &m->entries[i];
        if (i == begin || e->row != m->entries[i - 1].row)
            m->spans[count++] = (struct span){i, i, 14695981039346656037u, 0};
        struct span *s = &m->spans[count - 1];
        s->end = i + 1;
        s->key = (s->key ^ e->number) * 1099511628211u;
        s->bytes += e->line->bytes;
    }
    return count;
}

/* Return the lines at which most rows hold the function; the first row's if equal. */
static struct span
find_usual(const struct matcher *m, size_t count)
{
    memcpy(m->sorted, m->spans, count * sizeof *m->sorted);
    qsort(m->sorted, count, sizeof *m->sorted, compare_spans);
    struct span best = m->sorted[0];
    size_t best_count = 0;
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && m->sorted[end].key == m->sorted[i].key; end++)
            continue;
        if (end - i > best_count ||
            (end - i == best_count && m->sorted[i].begin < best.begin)) {
            best = m->sorted[i];
            best_count = end - i;
        }
    }
    return best;
}

static bool
shares_a_line(const struct matcher *m, const struct span *a, const struct span *b)
{
    for (size_t i = a->begin, k = b->begin; i < a->end && k < b->end;) {
        uint32_t x = m->entries[i].number, y = m->entries[k].number;
        if (x == y)
            return true;
        if (x < y)
            i++;
        else
            k++;
    }
    return false;
}

static void
match_function_lines(struct matcher *m, size_t begin, size_t end)
{
    size_t count = cut_spans(m, begin, end);
    struct span usual = find_usual(m, count);
    for (size_t i = 0; i < count; i++) {
        const struct span *s = &m->spans[i];
        uint64_t larger = s->bytes > usual.bytes ? s->bytes : usual.bytes;
        if (s->begin == usual.begin || s->end - s->begin != usual.end - usual.begin ||
            robust_distance(s->bytes, usual.bytes) > larger / 8 ||
            shares_a_line(m, s, &usual))
            continue;
        for (size_t k = 0; k < s->end - s->begin; k++)
            m->entries[s->begin + k].place = m->entries[usual.begin + k].number;
    }
}

/* Match the lines of each function. Until places exist, `place` has the matched line. */
static bool
match_lines(struct matcher *m)
{
    m->spans = malloc((m->entry_count + 1) * sizeof *m->spans);
    m->sorted = malloc((m->entry_count + 1) * sizeof *m->sorted);
    if (!m->spans || !m->sorted)
        return false;
    qsort(m->entries, m->entry_count, sizeof *m->entries, compare_entries);
    for (size_t i = 0; i < m->entry_count; i++)
        m->entries[i].place = m->entries[i].number;
    for (size_t i = 0, end; i < m->entry_count; i = end) {
        for (end = i + 1;
             end < m->entry_count && m->entries[end].function == m->entries[i].function;
             end++)
            continue;
        match_function_lines(m, i, end);
    }
    for (size_t i = 0; i < m->entry_count; i++)
        m->entries[i].number = m->entries[i].place;
    return true;
}

/* --- places ------------------------------------------------------------------------------- */

static int
compare_places(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->function != y->function)
        return x->function < y->function ? -1 : 1;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    /* A line that was not moved comes first and gives its name to the place. */
    bool x_is_itself = x->line->line == x->number,
         y_is_itself = y->line->line == y->number;
    if (x_is_itself != y_is_itself)
        return x_is_itself ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

static void
number_places(struct fleet_lines *l, struct matcher *m)
{
    qsort(m->entries, m->entry_count, sizeof *m->entries, compare_places);
    for (size_t i = 0; i < m->entry_count; i++) {
        const struct entry *e = &m->entries[i], *last = i ? e - 1 : e;
        if (i == 0 || e->function != last->function || e->number != last->number)
            l->names[l->place_count++] = e->line->name;
        m->entries[i].place = (uint32_t)l->place_count - 1;
    }
}

static int
compare_rows(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;
    if (x->row != y->row)
        return x->row < y->row ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

/* Saturate: hostile rows may hold numbers whose sum overflows. */
static uint64_t
add_up(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void
fill_rows(struct fleet_lines *l, struct matcher *m)
{
    qsort(m->entries, m->entry_count, sizeof *m->entries, compare_rows);
    size_t used = 0, at = 0;
    for (size_t row = 0; row < l->row_count; row++) {
        l->begins[row] = used;
        for (; at < m->entry_count && m->entries[at].row == row; at++) {
            const struct entry *e = &m->entries[at];
            if (used == l->begins[row] || l->held[used - 1].place != e->place)
                l->held[used++] = (struct fleet_held){.place = e->place};
            struct fleet_held *h = &l->held[used - 1];
            h->bytes = add_up(h->bytes, e->line->bytes);
            h->count = add_up(h->count, e->line->count);
        }
    }
    l->begins[l->row_count] = used;
}

/* --- the whole match ---------------------------------------------------------------------- */

static bool
take_memory(struct fleet_lines *l, struct matcher *m, size_t count)
{
    m->entries = calloc(count + 1, sizeof *m->entries);
    m->functions = calloc(count + 1, sizeof *m->functions);
    l->names = calloc(count + 1, sizeof *l->names);
    l->begins = calloc(l->row_count + 1, sizeof *l->begins);
    l->held = calloc(count + 1, sizeof *l->held);
    return m->entries && m->functions && l->names && l->begins && l->held;
}

static void
collect(struct matcher *m, const struct fleet_row *const *rows, size_t row_count)
{
    for (size_t i = 0; i < row_count; i++) {
        for (size_t k = 0; rows[i] && k < rows[i]->line_count; k++)
            m->entries[m->entry_count++] = (struct entry){
                .line = &rows[i]->lines[k], .row = i, .number = rows[i]->lines[k].line};
    }
}

bool
fleet_lines_match(struct fleet_lines *lines, const struct fleet_row *const *rows,
                  size_t row_count)
{
    struct matcher m = {0};
    size_t count = 0;
    *lines = (struct fleet_lines){.row_count = row_count};
    for (size_t i = 0; i < row_count; i++)
        count += rows[i] ? rows[i]->line_count : 0;
    bool done = take_memory(lines, &m, count);
    if (done) {
        collect(&m, rows, row_count);
        number_functions(&m);
        done = match_functions(&m) && match_lines(&m);
    }
    if (done) {
        number_places(lines, &m);
        fill_rows(lines, &m);
    }
    free(m.entries);
    free(m.functions);
    free(m.spans);
    free(m.sorted);
    return done;
}

void
fleet_lines_finish(struct fleet_lines *lines)
{
    free(lines->names);
    free(lines->begins);
    free(lines->held);
    *lines = (struct fleet_lines){0};
}

const struct fleet_held *
fleet_lines_get(const struct fleet_lines *lines, size_t row, size_t *count)
{
    *count = lines->begins[row + 1] - lines->begins[row];
    return lines->held + lines->begins[row];
}
