/* SPDX-License-Identifier: Apache-2.0 */
/* See run_report.h. */
#include "run/run_report.h"

#include <string.h>

#include "base/json_out.h"
#include "base/term.h"

#define NAME_COLUMN 9
#define VALUE_COLUMN 31
#define WIDTH 80

/* Print a value, broken after ',' (or after ':' if there is no comma) where lines get too
   long. Returns the column reached. */
static int
print_value(const char *value, FILE *out)
{
    const char *ends = strchr(value, ',') ? "," : ":";
    int column = VALUE_COLUMN;
    while (*value) {
        size_t length = strcspn(value, ends);
        length += value[length] != '\0';
        if (column > VALUE_COLUMN && column + (int)length > WIDTH) {
            fprintf(out, "\n%*s", VALUE_COLUMN, "");
            column = VALUE_COLUMN;
        }
        term_print_text(out, value, length);
        column += (int)length;
        value += length;
    }
    return column;
}

void
run_report_row(const struct run_row *row, FILE *out)
{
    char reason[RUN_REASON_MAX + 64];
    fprintf(out, "  %-*s%-*s", NAME_COLUMN - 2, row->word, VALUE_COLUMN - NAME_COLUMN,
            row->name);
    if (strlen(row->name) >= VALUE_COLUMN - NAME_COLUMN)
        fprintf(out, "\n%*s", VALUE_COLUMN, "");
    int column = print_value(row->value, out);
    if (!*row->reason) {
        fputc('\n', out);
        return;
    }
    term_make_printable(reason, sizeof reason, row->reason, strlen(row->reason));
    if (column > VALUE_COLUMN && column + 2 + (int)term_columns(reason) > WIDTH)
        fprintf(out, "\n%*s", VALUE_COLUMN, "");
    else if (column > VALUE_COLUMN)
        fputs("  ", out);
    term_print_wrapped(out, reason, VALUE_COLUMN, WIDTH);
}

static const char *
get_state_name(enum run_state state)
{
    static const char *const arguments[] = {
        [RUN_SET] = "set", [RUN_KEPT] = "kept", [RUN_LEFT] = "left"};
    return arguments[state];
}

void
run_report_plan(const struct run_plan *plan, FILE *out)
{
    for (size_t i = 0; i < plan->count; i++) {
        const struct run_setting *s = &plan->settings[i];
        const struct run_row row = {get_state_name(s->state), s->name, s->value,
                                    s->reason};
        run_report_row(&row, out);
    }
}

/* --- JSON --------------------------------------------------------------------------------- */

static json_t *
make_settings(const struct run_plan *plan)
{
    static const char *const kinds[] = {[RUN_WHAT_CPUS] = "cpus",
                                        [RUN_WHAT_MEMORY] = "memory",
                                        [RUN_WHAT_THP] = "thp",
                                        [RUN_WHAT_VARIABLE] = "variable",
                                        [RUN_WHAT_NOTE] = "note"};
    json_t *list = json_array();
    for (size_t i = 0; i < plan->count; i++) {
        const struct run_setting *s = &plan->settings[i];
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o, s:o}", "kind",
                                              kinds[s->what], "name", s->name, "state",
                                              get_state_name(s->state), "value",
                                              json_out_filled(s->value), "reason",
                                              json_out_filled(s->reason)));
    }
    return list;
}

static json_t *
make_arguments_json(const char *const *arguments, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        json_array_append_new(list, json_out_string(arguments[i]));
    return list;
}

int
run_report_json(const struct run_plan *plan, const char *const *arguments, size_t count)
{
    const char *name = run_malloc_name(plan->malloc);
    json_t *node = plan->node < 0 ? json_null() : json_integer(plan->node);
    json_t *gpu = plan->gpu < 0 ? json_null() : json_integer(plan->gpu);
    json_t *root =
        json_pack("{s:s, s:n, s:o, s:o, s:o, s:o, s:o}", "schema", "drystone.run/1",
                  "file", "command", make_arguments_json(arguments, count), "node", node,
                  "gpu", gpu, "malloc", name ? json_string(name) : json_null(),
                  "settings", make_settings(plan));
    return json_out_print("run", root);
}
