/* SPDX-License-Identifier: Apache-2.0 */
/* The idea stands in profile.h. Lines that are neither a section nor a key are passed over. */
#include "bucket/profile.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Cut blanks off both ends of a text in place. */
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

/* Return the value if the line has the key, else NULL. */
static char *
value_of(char *line, const char *key)
{
    char *equals = strchr(line, '=');
    if (!equals)
        return NULL;
    *equals = '\0';
    return strcmp(trim(line), key) == 0 ? trim(equals + 1) : NULL;
}

static char *
find_in(FILE *file, const char *section, const char *key)
{
    char *line = NULL, *found = NULL;
    size_t capacity = 0;
    bool is_inside = false;
    while (getline(&line, &capacity, file) > 0) {
        bool is_indented = line[0] == ' ' || line[0] == '\t'; /* of a key's own list */
        char *text = trim(line);
        if (*text == '[') {
            is_inside = is_section(text, section);
            continue;
        }
        const char *value =
            is_inside && !is_indented && *text != '#' ? value_of(text, key) : NULL;
        if (value) {
            free(found);
            found = strdup(value);
        }
    }
    free(line);
    return found;
}

char *
profile_find(const char *path, const char *section, const char *key)
{
    FILE *file = fopen(path, "re");
    if (!file)
        return NULL;
    char *found = find_in(file, section, key);
    fclose(file);
    return found;
}
