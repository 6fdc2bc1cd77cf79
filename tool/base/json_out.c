/* SPDX-License-Identifier: Apache-2.0 */
/* See json_out.h. */
#include "base/json_out.h"

#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"
#include "base/term.h"

json_t *
json_out_number(uint64_t value)
{
    return value <= INT64_MAX ? json_integer((json_int_t)value)
                              : json_real((double)value);
}

json_t *
json_out_text(const char *bytes, size_t length)
{
    if (!bytes)
        return json_null();
    char *text = malloc(length + 1);
    if (!text)
        return NULL;
    size_t used = term_make_printable(text, length + 1, bytes, length);
    json_t *string = json_stringn(text, used);
    free(text);
    return string;
}

json_t *
json_out_string(const char *text)
{
    return json_out_text(text, text ? strlen(text) : 0);
}

json_t *
json_out_filled(const char *text)
{
    return json_out_string(text && *text ? text : NULL);
}

json_t *
json_out_known(bool is_known, uint64_t value)
{
    return is_known ? json_out_number(value) : json_null();
}

json_t *
json_out_append(json_t *list, json_t *value)
{
    if (json_array_append_new(list, value) == 0)
        return list;
    json_decref(list);
    return NULL;
}

char *
json_out_dump(json_t *root, size_t flags)
{
    char *text = root ? json_dumps(root, flags) : NULL;
    json_decref(root);
    return text;
}

int
json_out_print(const char *command, json_t *root)
{
    if (!root)
        return report_failure(command, NULL, EXIT_MACHINE, "no memory for the report");
    int failed = json_dumpf(root, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    json_decref(root);
    if (failed || fputc('\n', stdout) == EOF)
        return report_failure(command, NULL, EXIT_MACHINE, "cannot write the report");
    return EXIT_FINE;
}
