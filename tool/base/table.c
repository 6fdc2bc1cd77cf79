/* SPDX-License-Identifier: Apache-2.0 */
/* See table.h. Cells are kept until printing: column widths depend on all of them. */
#include "base/table.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"

static void
add_cell(struct table *t, const char *text, size_t length)
{
    char **cells = grow(t->cells, t->cell_count, &t->cell_capacity, sizeof *cells);
    if (!cells) {
        t->failed = true;
        return;
    }
    t->cells = cells;
    char *cell = malloc(length + 1);
    if (!cell) {
        t->failed = true;
        return;
    }
    term_make_printable(cell, length + 1, text, length);
    t->cells[t->cell_count++] = cell;
}

void
table_init(struct table *table, const char *columns)
{
    *table = (struct table){.has_header = true};
    while (*columns && table->column_count < TABLE_COLUMNS_MAX) {
        table->is_whole[table->column_count] = *columns == '=';
        table->is_number[table->column_count++] = *columns == '>';
        size_t length = strcspn(columns, " ");
        add_cell(table, columns + 1, length - 1);
        if (!table->failed) {
            char *cell = table->cells[table->cell_count - 1];
            for (char *c = strchr(cell, '_'); c; c = strchr(c, '_'))
                *c = ' ';
        }
        columns += length;
        columns += strspn(columns, " ");
    }
}

void
table_add(struct table *table, const char *text)
{
    if (!table->failed)
        add_cell(table, text, strlen(text));
}

#define OPERATION_COLUMNS 14u

void
table_add_operation(struct table *table, const char *bytes, size_t length)
{
    static const char space[] = "aten::";
    char text[OPERATION_COLUMNS + 4];
    if (length > sizeof space - 1 && memcmp(bytes, space, sizeof space - 1) == 0) {
        bytes += sizeof space - 1;
        length -= sizeof space - 1;
    }
    size_t limit = length > OPERATION_COLUMNS ? OPERATION_COLUMNS : sizeof text;
    size_t used = term_make_printable(text, limit, bytes, length);
    snprintf(text + used, sizeof text - used, "%s", used < length ? "…" : "");
    table_add(table, text);
}

#define TEXT_COLUMNS_MIN 12u

static size_t
measure(const struct table *t, size_t widths[TABLE_COLUMNS_MAX])
{
    memset(widths, 0, TABLE_COLUMNS_MAX * sizeof *widths);
    for (size_t i = 0; i < t->cell_count; i++) {
        size_t columns = term_columns(t->cells[i]);
        if (columns > widths[i % t->column_count])
            widths[i % t->column_count] = columns;
    }
    size_t total = 0;
    for (size_t i = 0; i < t->column_count; i++)
        total += 2 + widths[i];
    return total;
}

/* Narrow the widest text columns until the table fits, at most to TEXT_COLUMNS_MIN. */
static void
shrink(const struct table *t, size_t widths[TABLE_COLUMNS_MAX], size_t total,
       size_t limit)
{
    for (; total > limit; total--) {
        size_t widest = t->column_count;
        for (size_t i = 0; i < t->column_count; i++) {
            if (!t->is_number[i] &&
                (widest == t->column_count || widths[i] > widths[widest]))
                widest = i;
        }
        if (widest == t->column_count || widths[widest] <= TEXT_COLUMNS_MIN)
            return;
        widths[widest]--;
    }
}

/* Print a cell cut to `width`, keeping more of its end than of its front: ends tell names
   apart. Returns the columns printed. */
static size_t
print_cut(const char *cell, size_t width, FILE *out)
{
    size_t columns = term_columns(cell);
    if (columns <= width) {
        fputs(cell, out);
        return columns;
    }
    size_t front = (width - 1) / 3;
    const char *middle = term_skip_columns(cell, front);
    fwrite(cell, 1, (size_t)(middle - cell), out);
    fputs("…", out);
    fputs(term_skip_columns(cell, columns - (width - 1 - front)), out);
    return width;
}

/*
 * Measure the beginning of a cell that is printed on one line, in bytes: whole words, which
 * end at a blank, before a bracket or after a comma; of a longer word, whole parts, which
 * end after a colon, or else after an underscore. Nothing is left out.
 */
static size_t
measure_line(const char *cell, size_t width)
{
    static const char *const ends[] = {",", ":", "_"};
    size_t most = (size_t)(term_skip_columns(cell, width) - cell);
    if (!cell[most])
        return most;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        for (size_t length = most; length > 0; length--) {
            if (strchr(ends[i], cell[length - 1]) ||
                (i == 0 && strchr(" [", cell[length])))
                return length;
        }
    }
    return most;
}

/* Print one line of a cell that is never cut. Returns its columns; *rest becomes the text
   that is left. */
static size_t
print_line(const char *cell, size_t width, const char **rest, FILE *out)
{
    size_t length = measure_line(cell, width);
    fwrite(cell, 1, length, out);
    *rest = cell + length + strspn(cell + length, " ");
    return term_columns(cell) - term_columns(cell + length);
}

/* Print the rest of a row's uncut cell on lines below the row. */
static void
print_rest(const struct table *t, const char *rest, const size_t *widths, FILE *out)
{
    int before = 2;
    size_t column = 0;
    for (; !t->is_whole[column] && *rest; column++)
        before += (int)widths[column] + 2;
    while (*rest) {
        fprintf(out, "%*s", before, "");
        print_line(rest, widths[column], &rest, out);
        fputc('\n', out);
    }
}

static bool
is_wrapped(const struct table *t)
{
    for (size_t i = 0; i < t->column_count; i++) {
        if (t->is_whole[i])
            return false; /* it goes on below already */
    }
    return t->is_bounded && !t->is_number[t->column_count - 1];
}

/* Print one cell, padded. For a cell that is never cut, *rest becomes the text that did
   not fit. */
static void
print_cell(const struct table *t, size_t index, const size_t *widths, bool is_last,
           const char **rest, FILE *out)
{
    size_t column = index % t->column_count;
    size_t width = widths[column];
    size_t columns = term_columns(t->cells[index]);
    fputs("  ", out);
    if (t->is_number[column] && columns < width)
        fprintf(out, "%*s", (int)(width - columns), "");
    columns = t->is_whole[column] ? print_line(t->cells[index], width, rest, out)
                                  : print_cut(t->cells[index], width, out);
    if (!t->is_number[column] && !is_last && columns < width)
        fprintf(out, "%*s", (int)(width - columns), "");
}

/* Count a row's cells up to its last text: empty cells at the end get no padding. */
static size_t
count_cells(const struct table *t, size_t row)
{
    size_t count = t->column_count;
    while (count > 1 && !*t->cells[row * t->column_count + count - 1])
        count--;
    return count;
}

/* Print a row with its line ends. `total` is the table's width before narrowing. */
static void
print_row(const struct table *t, size_t row, const size_t *widths, size_t total,
          const struct term *term)
{
    bool is_header = row == 0 && t->has_header;
    size_t count = count_cells(t, row), first = row * t->column_count;
    bool wraps = is_wrapped(t) && count == t->column_count && !is_header;
    const char *rest = "";
    fputs(is_header ? term_style(term, TERM_DIM) : "", term->out);
    for (size_t i = 0; i + wraps < count; i++)
        print_cell(t, first + i, widths, i + 1 == count, &rest, term->out);
    if (wraps) {
        fputs("  ", term->out);
        term_print_name(term->out, t->cells[first + count - 1],
                        (int)(total - widths[count - 1]), term->width);
        return;
    }
    fputs(is_header ? term_style(term, TERM_PLAIN) : "", term->out);
    fputc('\n', term->out);
    print_rest(t, rest, widths, term->out);
}

void
table_finish(struct table *table)
{
    for (size_t i = 0; i < table->cell_count; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct table){0};
}

bool
table_print(struct table *table, const struct term *term)
{
    bool is_whole = !table->failed;
    if (is_whole) {
        size_t widths[TABLE_COLUMNS_MAX];
        size_t total = measure(table, widths);
        if ((term->has_width || table->is_bounded) && !is_wrapped(table))
            shrink(table, widths, total, (size_t)term->width);
        size_t row_count = table->cell_count / table->column_count;
        for (size_t row = 0; row < row_count; row++)
            print_row(table, row, widths, total, term);
    }
    table_finish(table);
    return is_whole;
}
