/* SPDX-License-Identifier: Apache-2.0 */
#include "support/machine.h"

#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX (1u << 20)
#define MARK "== /"

const char *const machine_names[MACHINE_COUNT] = {
    "one-node",  "two-nodes", "eight-nodes", "cxl",
    "container", "arm64-64k", "gpu-r580",    "thp-never",
};

static char *
read_archive(const char *name)
{
    char path[512];
    const char *data = getenv("DRY_TEST_DATA"); /* NOLINT(concurrency-mt-unsafe) */
    assert_non_null(data);
    snprintf(path, sizeof path, "%s/machines/%s.txt", data, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    char *text = calloc(TEXT_MAX, 1);
    assert_non_null(text);
    size_t length = fread(text, 1, TEXT_MAX - 1, file);
    assert_true(length > 0 && length < TEXT_MAX - 1);
    assert_int_equal(fclose(file), 0);
    return text;
}

/* The next "\n== /", or the end. */
static char *
find_end(char *text)
{
    char *mark = strstr(text, "\n" MARK);
    return mark ? mark + 1 : text + strlen(text);
}

void
machine_unpack(struct tree *tree, const char *name)
{
    char *text = read_archive(name), *at = text;
    tree_init(tree);
    while (strncmp(at, MARK, sizeof MARK - 1) == 0) {
        char *path = at + sizeof MARK - 2, *line = strchr(path, '\n');
        assert_non_null(line);
        char *end = find_end(line);
        char first = *end;
        *line = *end = '\0';
        tree_add(tree, path, end > line ? line + 1 : "");
        *end = first;
        at = end;
    }
    assert_int_equal(*at, '\0');
    free(text);
}
