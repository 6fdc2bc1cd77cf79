/* SPDX-License-Identifier: Apache-2.0 */
/* The idea is in gate_file.h. The file is hostile input and checked completely. */
#include "gate/gate_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fail.h"
#include "base/json_in.h"
#include "base/json_out.h"
#include "base/output.h"
#include "base/report.h"

static const char schema[] = "drystone.baseline/1";

/* --- reading ------------------------------------------------------------------------------ */

/* Check the figures: each is an unsigned integer, or null if it was unknown. */
static void
check_figures(struct json_in *in, const struct json_at *figures)
{
    const char *name;
    json_t *value;
    if (!json_is_object(figures->value)) {
        json_in_fail(in, figures, "an object of figures is expected");
        return;
    }
    json_object_foreach(figures->value, name, value)
    {
        if (!json_is_null(value))
            json_in_unsigned(in, json_in_key(figures, name));
    }
}

static enum dry_status
check_tree(const struct gate *gate, json_t *root, struct dry_error *err)
{
    static const char *const keys[] = {"schema", "command", "rows", NULL};
    static const char *const row_keys[] = {"of", "figures", NULL};
    struct json_in in = {.err = err};
    struct json_at top = {.value = root};
    if (!json_in_object(&in, &top, keys))
        return in.status;
    struct json_at form = json_in_key(&top, "schema"), by = json_in_key(&top, "command");
    if (strcmp(json_in_text(&in, form, ""), schema) != 0)
        json_in_fail(&in, &form, "%s is expected", schema);
    if (strcmp(json_in_text(&in, by, ""), gate->command) != 0)
        json_in_fail(&in, &by, "this is no baseline of %s", gate->command);
    struct json_at rows = json_in_key(&top, "rows");
    for (size_t i = 0; i < json_in_list(&in, &rows); i++) {
        struct json_at row = json_in_element(&rows, i);
        struct json_at of = json_in_key(&row, "of");
        struct json_at figures = json_in_key(&row, "figures");
        json_in_object(&in, &row, row_keys);
        if (!json_is_null(of.value))
            json_in_text(&in, of, NULL);
        check_figures(&in, &figures);
    }
    return in.status;
}

static enum dry_status
read_tree(const struct gate *gate, json_t **root, struct dry_error *err)
{
    char *text = NULL;
    size_t length;
    enum dry_status status =
        json_in_read_file(gate->values->baseline, &text, &length, err);
    if (status == DRY_OK)
        status = json_in_parse(text, length, root, err);
    free(text);
    if (status == DRY_OK)
        status = check_tree(gate, *root, err);
    return status;
}

int
gate_baseline_open(const struct gate *gate, struct gate_baseline *baseline)
{
    const char *path = gate->values->baseline;
    struct dry_error err;
    *baseline = (struct gate_baseline){0};
    if (!path)
        return EXIT_FINE;
    baseline->is_new = access(path, F_OK) != 0 && errno == ENOENT;
    if (baseline->is_new || read_tree(gate, &baseline->root, &err) == DRY_OK)
        return EXIT_FINE;
    gate_baseline_close(baseline);
    return report_error(gate->command, path, &err);
}

void
gate_baseline_close(struct gate_baseline *baseline)
{
    json_decref(baseline->root);
    baseline->root = NULL;
}

/* Return true if a row of the file is named `of`. The only row has no name. */
static bool
is_called(const json_t *row, const char *of)
{
    const char *name = json_string_value(json_object_get(row, "of"));
    return of && name ? strcmp(of, name) == 0 : !of && !name;
}

uint64_t
gate_baseline_get(const struct gate_baseline *baseline, const char *of,
                  const char *figure)
{
    const json_t *rows = json_object_get(baseline->root, "rows");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const json_t *value = json_object_get(json_object_get(row, "figures"), figure);
        if (is_called(row, of) && json_is_integer(value))
            return (uint64_t)json_integer_value(value);
    }
    return FIGURE_UNKNOWN;
}

/* --- writing ------------------------------------------------------------------------------ */

static json_t *
make_row(const struct gate *gate, const struct gate_row *row)
{
    json_t *figures = json_object();
    char name[FIGURE_NAME_BYTES];
    for (struct figure f = {0}; figures && figures_next(&gate->figures, &f);) {
        uint64_t value = figure_get(&f, row->objects[f.table]);
        bool is_known = value <= INT64_MAX;
        json_object_set_new(figures, figure_write_name(&f, name),
                            is_known ? json_integer((json_int_t)value) : json_null());
    }
    return json_pack("{s:o, s:o}", "of", json_out_string(row->of), "figures", figures);
}

static json_t *
make_tree(const struct gate *gate, const struct gate_row *rows, size_t row_count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < row_count && list; i++)
        list = json_out_append(list, make_row(gate, &rows[i]));
    return json_pack("{s:s, s:s, s:o}", "schema", schema, "command", gate->command,
                     "rows", list);
}

int
gate_baseline_write(const struct gate *gate, const struct gate_row *rows,
                    size_t row_count)
{
    char *text = json_out_dump(make_tree(gate, rows, row_count), JSON_INDENT(2));
    return output_write_text(gate->command, gate->values->baseline, text);
}
