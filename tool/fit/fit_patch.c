/* SPDX-License-Identifier: Apache-2.0 */
/* See fit_patch.h. */
#include "fit/fit_patch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/json_out.h"
#include "base/report.h"
#include "base/term.h"

#define SCRIPT_BYTES_MAX ((size_t)8 << 20)
#define CONTEXT 3 /* lines before and behind, as diff(1) prints them */

/* Return the first word that names a file of Python; NULL: none does. */
static const char *
find_script(const struct option_list *arguments)
{
    for (size_t i = 0; i < arguments->count; i++) {
        const char *word = arguments->values[i];
        size_t length = strlen(word);
        if (length > 3 && strcmp(word + length - 3, ".py") == 0)
            return word;
    }
    return NULL;
}

/* Read a file that has no zero byte. Returns an exit_code; the caller frees *text. */
static int
read_script(const char *path, char **text)
{
    FILE *in = fopen(path, "rb");
    *text = calloc(1, SCRIPT_BYTES_MAX + 1);
    if (!in || !*text) {
        int code = in ? report_memory("fit", path)
                      : report_failure("fit", path, EXIT_INPUT, "%s", strerror(errno));
        if (in)
            fclose(in);
        return code;
    }
    size_t length = fread(*text, 1, SCRIPT_BYTES_MAX + 1, in);
    fclose(in);
    bool is_whole = length <= SCRIPT_BYTES_MAX;
    (*text)[is_whole ? length : 0] = '\0';
    if (is_whole && strlen(*text) == length)
        return EXIT_FINE;
    return report_failure("fit", path, EXIT_INPUT,
                          "expected a script of at most 8 MiB without zero bytes");
}

/* Tell whether a line is "from torch...", or "import" with torch among its names. */
static bool
imports_torch(const char *line)
{
    static const char ends[] = " .,;\r\n";
    size_t length = strcspn(line, "\n");
    if (strncmp(line, "from torch", 10) == 0)
        return strcspn(line + 10, ends) == 0;
    if (strncmp(line, "import ", 7) != 0)
        return false;
    for (const char *at = line + 6; at < line + length;) {
        const char *name = at + 1 + strspn(at + 1, " ");
        if (strncmp(name, "torch", 5) == 0 && strcspn(name + 5, ends) == 0)
            return true;
        at = name + strcspn(name, ",\n");
    }
    return false;
}

/* Return the first line that imports torch, and its number from 1; NULL: none does. */
static const char *
find_import(const char *text, size_t *number)
{
    *number = 1;
    for (const char *line = text; *line; (*number)++) {
        if (imports_torch(line))
            return line;
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    return NULL;
}

/* Print a line of the script with its mark. */
static const char *
print_line(const char *line)
{
    size_t length = strcspn(line, "\n");
    printf(" %.*s\n", (int)length, line);
    if (!line[length])
        printf("\\ No newline at end of file\n");
    return line[length] ? line + length + 1 : line + length;
}

/* Write a value as Python has it. False: memory ran out. */
static bool
write_value(FILE *out, const json_t *value)
{
    char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_ENSURE_ASCII);
    bool is_made = text != NULL;
    fputs(json_is_true(value) ? "True" : is_made ? text : "", out);
    free(text);
    return is_made;
}

/* Return the changes as Python has them; the caller frees the text. NULL: memory ran out. */
static char *
make_call(const json_t *changes)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    bool is_made = out != NULL;
    const char *name;
    json_t *value;
    if (!out)
        return NULL;
    json_object_foreach((json_t *)(uintptr_t)changes, name, value)
    {
        json_t *key = json_string(name);
        fputs(ftell(out) > 0 ? ", " : "{", out);
        is_made = is_made && write_value(out, key);
        fputs(": ", out);
        is_made = is_made && write_value(out, value);
        json_decref(key);
    }
    fputs("}", out);
    is_made = !ferror(out) && is_made;
    if (fclose(out) == 0 && is_made)
        return text;
    free(text);
    return NULL;
}

static void
print_hunk(const char *text, const char *place, size_t number, const char *call,
           const char *label)
{
    const char *begin = place, *line = place;
    size_t before = 0, after = 0;
    for (; before < CONTEXT && begin > text; before++) {
        for (begin--; begin > text && begin[-1] != '\n';)
            begin--;
    }
    for (; after < CONTEXT && *line; after++) {
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    printf("@@ -%zu,%zu +%zu,%zu @@\n", number - before, before + after, number - before,
           before + after + 2);
    while (begin < place)
        begin = print_line(begin);
    printf("+import drystone.fit\n+drystone.fit.apply(%s)  # %s\n", call, label);
    for (size_t i = 0; i < after; i++)
        begin = print_line(begin);
}

/* Print the lines that a person would write, indented. */
static void
print_hand(const json_t *row)
{
    const json_t *lines = json_object_get(row, "by_hand");
    if (json_array_size(lines) > 0)
        printf("by hand, in words of the program's own:\n");
    for (size_t i = 0; i < json_array_size(lines); i++) {
        const char *line = json_string_value(json_array_get(lines, i));
        printf("    ");
        if (line)
            term_print_text(stdout, line, strlen(line));
        printf("\n");
    }
}

int
fit_patch_print(const struct option_list *arguments, const json_t *row)
{
    const char *path = find_script(arguments),
               *label = json_string_value(json_object_get(row, "change"));
    char *text = NULL, *call = NULL, safe[400];
    size_t number;
    if (json_object_size(json_object_get(row, "changes")) == 0) {
        print_hand(row);
        return EXIT_FINE;
    }
    if (!path)
        return report_failure(
            "fit", NULL, EXIT_INPUT,
            "no word of the program is a script to patch: expected a .py");
    int code = read_script(path, &text);
    const char *place = code == EXIT_FINE ? find_import(text, &number) : NULL;
    if (code == EXIT_FINE && !place)
        code = report_failure("fit", path, EXIT_INPUT,
                              "no line begins with \"import torch\" or \"from torch\": "
                              "call drystone.fit.apply() before torch is imported");
    if (code == EXIT_FINE) {
        call = make_call(json_object_get(row, "changes"));
        code = call ? EXIT_FINE : report_memory("fit", path);
    }
    if (code == EXIT_FINE) {
        term_make_printable(safe, sizeof safe, label, strlen(label));
        print_hand(row);
        printf("--- ");
        term_print_text(stdout, path, strlen(path));
        printf("\n+++ ");
        term_print_text(stdout, path, strlen(path));
        printf("\n");
        print_hunk(text, place, number, call, safe);
    }
    free(call);
    free(text);
    return code;
}
