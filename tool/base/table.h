/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_TABLE_H
#define TOOL_TABLE_H

/*
 * Aligned columns: text to the left, numbers to the right. On a terminal the table keeps
 * to the width: the widest text column shrinks, and its longest cells lose their middles.
 * A column that tells rows apart is never cut: its cells continue on lines below.
 *
 *     struct table t;
 *     table_init(&t, "<pool >segments >bytes");
 *     table_add(&t, "large");
 *     table_add(&t, term_format_count(count, text));
 *     ...
 *     table_print(&t, &term);
 */

#include <stdbool.h>
#include <stddef.h>

#include "base/term.h"

#define TABLE_COLUMNS_MAX 12

struct table {
    size_t column_count;
    bool is_number[TABLE_COLUMNS_MAX];
    bool is_whole[TABLE_COLUMNS_MAX]; /* never cut; the rest of the cell is printed below
                                         the row */
    bool has_header;
    bool is_bounded; /* keep to the width in a pipe too; a last text column is wrapped,
                        not cut, if none is whole */
    char **cells;    /* row by row, the header first */
    size_t cell_count, cell_capacity;
    bool failed; /* memory ran out; table_print() prints nothing */
};

/*
 * Initialize a table with `columns`, separated by spaces: "<name" is text, ">number" a
 * number, "=name" text that is never cut (at most one column). A '_' prints as a space.
 */
void table_init(struct table *table, const char *columns);
/* Add the next cell, with control characters replaced. A row ends when all its columns
   are filled. */
void table_add(struct table *table, const char *text);
/* Add an owner's operation, such as "aten::relu", as a narrow cell. Omits the prefix
   "aten::", which nearly all operations share, and cuts long names. */
void table_add_operation(struct table *table, const char *bytes, size_t length);
/* Print the table with two blanks before and between columns, and release it. False:
   memory ran out. */
bool table_print(struct table *table, const struct term *term);
/* Release a table that is not printed. */
void table_finish(struct table *table);

#endif
