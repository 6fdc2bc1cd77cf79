/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TABLE_H
#define TOOL_TABLE_H

/*
 * Aligned columns: text to the left, numbers to the right. On a terminal no line is longer
 * than it is wide: the widest text column gives way, losing the middle of its longest
 * cells. A column that tells rows apart loses nothing: its cells go on below.
 *
 *     struct table t;
 *     table_init(&t, "<pool >segments >bytes");
 *     table_add(&t, "large");
 *     table_add(&t, term_format_count(count, text));
 *     ...
 *     table_print(&t, &term);
 *     table_finish(&t);
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/term.h"

#define TABLE_COLUMNS_MAX 12

struct table {
    size_t column_count;
    bool is_number[TABLE_COLUMNS_MAX];
    bool is_whole[TABLE_COLUMNS_MAX]; /* never cut */
    bool has_header;
    bool is_bounded; /* in a pipe, too; a text column at the end is wrapped, not cut */
    char **cells;    /* row after row, the header first */
    size_t cell_count, cell_capacity;
    bool failed; /* out of memory: nothing is printed */
};

/*
 * `columns`: "<name" for text, "=name" for text that is never cut (one such column at most),
 * ">number" for numbers, apart by spaces; '_' is a space.
 */
void table_init(struct table *table, const char *columns);
/* The next cell, made printable; a row ends by itself. */
void table_add(struct table *table, const char *text);
/*
 * Add the operation of an owner, "aten::relu", in a narrow column. The namespace that
 * nearly all of them share is left out, and a text that is too long is cut.
 */
void table_add_operation(struct table *table, const char *bytes, size_t length);
/* Two blanks before and between columns. False: there was no memory. */
bool table_print(const struct table *table, const struct term *term);
void table_finish(struct table *table);

#endif
