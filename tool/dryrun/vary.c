/* SPDX-License-Identifier: Apache-2.0 */
/* See vary.h. */
#include "dryrun/vary.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"

/* --- reading ------------------------------------------------------------------------------ */

bool
vary_is_name(const char *text, size_t length)
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
    static const char all[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
    return length > 0 && length < 60 && strchr(letters, text[0]) &&
           strspn(text, all) >= length;
}

bool
vary_has_place(const struct option_list *arguments, const char *name)
{
    char place[64];
    snprintf(place, sizeof place, "{%.60s}", name);
    for (size_t i = 0; i < arguments->count; i++) {
        if (strstr(arguments->values[i], place))
            return true;
    }
    return false;
}

/* Split `values` in place at its commas. False: memory ran out, or a value is empty. */
static bool
split(struct vary_name *n, char *values)
{
    size_t capacity = 1;
    for (const char *c = values; *c; c++)
        capacity += *c == ',';
    n->values = calloc(capacity, sizeof *n->values);
    bool is_full = n->values != NULL;
    for (char *at = values; n->values && at;) {
        char *comma = strchr(at, ',');
        if (comma)
            *comma = '\0';
        is_full &= *at != '\0';
        n->values[n->count++] = at;
        at = comma ? comma + 1 : NULL;
    }
    return is_full;
}

/* Tell whether all values are UTF-8, as JSON wants. */
static bool
are_texts(const struct vary_name *n)
{
    bool are_all = true;
    for (size_t i = 0; i < n->count && are_all; i++) {
        json_t *text = json_string(n->values[i]);
        are_all = text != NULL;
        json_decref(text);
    }
    return are_all;
}

static int
read_one(struct vary *v, const char *command, const char *spec,
         const struct option_list *arguments)
{
    const char *equals = strchr(spec, '=');
    if (!equals || !vary_is_name(spec, (size_t)(equals - spec)))
        return report_usage(command, "--vary %s: expected NAME=VALUE,VALUE", spec);
    if (v->name_count == VARY_NAMES_MAX)
        return report_usage(command, "--vary %s: more than %d names", spec,
                            VARY_NAMES_MAX);
    struct vary_name *n = &v->names[v->name_count++];
    n->name = strdup(spec);
    if (!n->name)
        return report_memory(command, NULL);
    n->name[equals - spec] = '\0';
    for (size_t i = 0; i + 1 < v->name_count; i++) {
        if (strcmp(v->names[i].name, n->name) == 0)
            return report_usage(command, "--vary %s: %s is given twice", spec, n->name);
    }
    if (!split(n, n->name + (equals - spec) + 1))
        return report_usage(command, "--vary %s: a value is empty", spec);
    if (!are_texts(n))
        return report_failure(command, NULL, EXIT_INPUT,
                              "--vary %s: a value is not UTF-8 text", spec);
    if (!vary_has_place(arguments, n->name))
        return report_usage(command, "--vary %s: no word of the program has {%s}", spec,
                            n->name);
    v->combination_count *= n->count;
    if (v->combination_count > VARY_COMBINATIONS_MAX)
        return report_usage(command, "--vary: more than %d combinations",
                            VARY_COMBINATIONS_MAX);
    return EXIT_FINE;
}

int
vary_read(struct vary *v, const char *command, const struct option_list *specs,
          const struct option_list *arguments)
{
    *v = (struct vary){.combination_count = 1};
    int code = EXIT_FINE;
    for (size_t i = 0; i < specs->count && code == EXIT_FINE; i++)
        code = read_one(v, command, specs->values[i], arguments);
    return code;
}

void
vary_finish(struct vary *v)
{
    for (size_t i = 0; i < v->name_count; i++) {
        free(v->names[i].name);
        free(v->names[i].values);
    }
    *v = (struct vary){0};
}

const char *
vary_value(const struct vary *v, size_t index, size_t name)
{
    for (size_t i = v->name_count; i-- > name + 1;)
        index /= v->names[i].count;
    return v->names[name].values[index % v->names[name].count];
}

size_t
vary_together(const struct vary *v, size_t row)
{
    size_t index = 0;
    for (size_t i = 0; i < v->name_count; i++)
        index = index * v->names[i].count + row;
    return index;
}

void
vary_label(const struct vary *v, size_t index, char label[VARY_LABEL_BYTES])
{
    size_t used = 0;
    label[0] = '\0';
    for (size_t i = 0; i < v->name_count && used < VARY_LABEL_BYTES; i++)
        used += (size_t)snprintf(label + used, VARY_LABEL_BYTES - used, "%s%s=%s",
                                 i ? " " : "", v->names[i].name, vary_value(v, index, i));
}

/* --- filling ------------------------------------------------------------------------------ */

/* Copy `text` and replace every "{name}" by `value`; nothing, for an empty name. NULL: memory ran
   out. */
static char *
replace(const char *text, const char *name, const char *value)
{
    if (!*name)
        return strdup(text);
    char place[64];
    size_t length = (size_t)snprintf(place, sizeof place, "{%.60s}", name), count = 0;
    for (const char *at = text; (at = strstr(at, place)) != NULL; at += length)
        count++;
    char *filled = malloc(strlen(text) + count * strlen(value) + 1), *to = filled;
    const char *next;
    while (filled && (next = strstr(text, place)) != NULL) {
        memcpy(to, text, (size_t)(next - text));
        to += next - text;
        memcpy(to, value, strlen(value));
        to += strlen(value);
        text = next + length;
    }
    if (filled)
        memcpy(to, text, strlen(text) + 1);
    return filled;
}

bool
vary_fill_one(const char *name, const char *value, const struct option_list *arguments,
              struct option_list *filled)
{
    *filled =
        (struct option_list){.values = calloc(arguments->count + 1, sizeof(char *))};
    for (size_t i = 0; filled->values && i < arguments->count; i++) {
        filled->values[i] = replace(arguments->values[i], name, value);
        if (!filled->values[i]) {
            vary_free(filled);
            return false;
        }
        filled->count++;
    }
    return filled->values != NULL;
}

bool
vary_fill(const struct vary *v, size_t index, const struct option_list *arguments,
          struct option_list *filled)
{
    struct option_list last, next;
    if (!vary_fill_one("", "", arguments, &last)) /* a copy */
        return false;
    for (size_t i = 0; i < v->name_count; i++) {
        bool is_filled =
            vary_fill_one(v->names[i].name, vary_value(v, index, i), &last, &next);
        vary_free(&last);
        if (!is_filled)
            return false;
        last = next;
    }
    *filled = last;
    return true;
}

void
vary_free(struct option_list *filled)
{
    for (size_t i = 0; i < filled->count; i++)
        free((char *)(uintptr_t)filled->values[i]);
    free(filled->values);
    *filled = (struct option_list){0};
}
