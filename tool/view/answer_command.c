/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that other commands give, run in child processes. */
#include "view/answers.h"

#include <stdlib.h>
#include <string.h>

bool
answer_take(struct child *child, struct answer *answer)
{
    struct child_output output;
    if (!child_end(child, &output))
        return false;
    bool is_fine = output.code <= EXIT_FOUND && output.length > output.error_length;
    if (!is_fine) {
        free(output.text);
        return false;
    }
    answer->bytes = (unsigned char *)output.text;
    answer->length = output.length - output.error_length;
    answer->is_json = output.text[0] == '{';
    return true;
}

bool
answer_command(const struct command *command, const char *path, bool is_json,
               struct answer *answer)
{
    char json[] = "--json", end[] = "--";
    char *name = strdup(command->name), *file = strdup(path);
    char *with[] = {name, json, end, file, NULL}, *without[] = {name, end, file, NULL};
    struct child_command run = {command, is_json ? 4 : 3, is_json ? with : without};
    struct child_work work = {.print = child_print_command, .self = &run};
    struct child child;
    bool is_fine = name && file && child_begin(&child, &work) &&
                   child_is_over(&child, true) && answer_take(&child, answer);
    free(name);
    free(file);
    return is_fine;
}
