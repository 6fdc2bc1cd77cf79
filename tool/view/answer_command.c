/* SPDX-License-Identifier: Apache-2.0 */
/* Answers that are JSON: what another command prints, and what was made here. */
#include <jansson.h>

#include "view/answers.h"
#include "view/aside.h"

#include <string.h>

bool
answer_command(const char *name, const char *path, struct answer *answer)
{
    struct aside_command asked = {name, path, true};
    struct aside aside;
    return aside_begin(&aside, aside_print_command, &asked) &&
           aside_is_over(&aside, true) && aside_end(&aside, answer);
}

bool
answer_json(json_t *root, struct answer *answer)
{
    char *text = root ? json_dumps(root, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
    json_decref(root);
    if (!text)
        return false;
    *answer = (struct answer){(unsigned char *)text, strlen(text), true};
    return true;
}
