/* SPDX-License-Identifier: Apache-2.0 */
/* The idea is in profile.h. Lines that are neither a section nor a key are ignored. */
#include "bucket/profile.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *
trim(char *text)
{
    text += strspn(text, " \t\r\n");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\r\n", text[length - 1]))
        text[--length] = '\0';
    return text;
}

static bool
is_section(char *line, const char *section)
{
    size_t length = strlen(line);
    if (length < 2 || line[length - 1] != ']')
        return false;
    line[length - 1] = '\0';
    return strcmp(trim(line + 1), section) == 0;
}

/* Store the value of a line if its key is one of those wanted. */
static void
take_line(char *line, struct profile_entry *entries, size_t count)
{
    char *equals = strchr(line, '=');
    if (!equals)
        return;
    *equals = '\0';
    const char *key = trim(line), *value = trim(equals + 1);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(key, entries[i].key) != 0)
            continue;
        free(entries[i].value);
        entries[i].value = strdup(value);
    }
}

static void
find_in(FILE *file, const char *section, struct profile_entry *entries, size_t count)
{
    char *line = NULL;
    size_t capacity = 0;
    bool is_inside = false;
    while (getline(&line, &capacity, file) > 0) {
        /* Indented lines belong to a list nested under a key. */
        bool is_indented = line[0] == ' ' || line[0] == '\t';
        char *text = trim(line);
        if (*text == '[')
            is_inside = is_section(text, section);
        else if (is_inside && !is_indented && *text != '#')
            take_line(text, entries, count);
    }
    free(line);
}

void
profile_find(const char *path, const char *section, struct profile_entry *entries,
             size_t count)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return;
    find_in(file, section, entries, count);
    fclose(file);
}
