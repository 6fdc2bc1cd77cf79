/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of modules: which owns what at the peak, as the hook found it.
 *
 * Modules whose paths differ in numbers alone are one row: "layers.*.mlp (32)". A row is found by
 * search: there are few. Cost: O(modules times rows).
 */
#include "dryrun/dry_report.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/table.h"

#define ROWS_MAX 400 /* more are not told apart: the last one has the rest */
#define ROWS_SHOWN 6
#define PATH_BYTES 200

static const char *const kinds[] = {"weights", "gradients", "optimizer", "made"};
#define KINDS (sizeof kinds / sizeof *kinds)

struct row {
    char pattern[PATH_BYTES], path[PATH_BYTES]; /* path: of its first module */
    uint64_t bytes[KINDS], total;
    unsigned count;
};

/* Write a path with '*' for each part that is a number. */
static void
write_pattern(const char *path, char pattern[PATH_BYTES])
{
    size_t used = 0;
    for (const char *at = path; *at && used + 1 < PATH_BYTES;) {
        size_t digits = strspn(at, "0123456789"), part = strcspn(at, ".");
        const char *from = part > 0 && digits == part ? "*" : at;
        size_t length = from == at ? part : 1;
        if (length > PATH_BYTES - 2 - used)
            length = PATH_BYTES - 2 - used;
        memcpy(pattern + used, from, length);
        used += length;
        at += part;
        if (*at == '.') {
            pattern[used++] = '.';
            at++;
        }
    }
    pattern[used] = '\0';
}

static struct row *
find_row(struct row *rows, size_t *count, const char *path)
{
    char pattern[PATH_BYTES];
    write_pattern(path, pattern);
    for (size_t i = 0; i < *count; i++) {
        if (strcmp(rows[i].pattern, pattern) == 0)
            return &rows[i];
    }
    struct row *row = &rows[*count < ROWS_MAX ? (*count)++ : ROWS_MAX - 1];
    memcpy(row->pattern, pattern, sizeof pattern);
    snprintf(row->path, sizeof row->path, "%s", path);
    return row;
}

static void
add_module(struct row *row, const json_t *module)
{
    for (size_t k = 0; k < KINDS; k++) {
        json_int_t bytes = json_integer_value(json_object_get(module, kinds[k]));
        row->bytes[k] += bytes > 0 ? (uint64_t)bytes : 0;
        row->total += bytes > 0 ? (uint64_t)bytes : 0;
    }
    row->count++;
}

static int
compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    return x->total != y->total ? (x->total > y->total ? -1 : 1)
                                : strcmp(x->pattern, y->pattern);
}

static void
add_cells(struct table *table, const struct row *row)
{
    char text[PATH_BYTES + 40];
    table_add(table, term_format_bytes(row->total, text));
    for (size_t k = 0; k < KINDS; k++)
        table_add(table, row->bytes[k] ? term_format_bytes(row->bytes[k], text) : "-");
    snprintf(text, sizeof text, "%s (%u)", row->pattern, row->count);
    table_add(table, row->count > 1 ? text : row->path);
}

bool
dry_report_print_modules(const struct dry_report *r, const struct term *term)
{
    const json_t *owners = json_object_get(trial_main(r->trial)->json, "owners");
    struct row *rows = calloc(ROWS_MAX, sizeof *rows);
    size_t count = 0;
    if (!rows)
        return false;
    for (size_t i = 0; i < json_array_size(owners); i++) {
        const json_t *module = json_array_get(owners, i);
        const char *path = json_string_value(json_object_get(module, "module"));
        add_module(find_row(rows, &count, path ? path : ""), module);
    }
    qsort(rows, count, sizeof *rows, compare_rows);
    struct table table;
    table_init(&table, ">bytes >weights >gradients >optimizer >made =module");
    table.is_bounded = true;
    for (size_t i = 0; i < count && i < ROWS_SHOWN; i++)
        add_cells(&table, &rows[i]);
    free(rows);
    if (count == 0 || r->trial->verdict.is_cut) {
        table_finish(&table);
        return true;
    }
    fprintf(term->out, "\nwhich modules hold it then, and what they made\n");
    return table_print(&table, term);
}
