/* SPDX-License-Identifier: Apache-2.0 */
#include "support/tree.h"

#include "support/cmocka.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

void
tree_init(struct tree *tree)
{
    *tree = (struct tree){.root = "/tmp/drystone-tree-XXXXXX"};
    assert_non_null(mkdtemp(tree->root));
}

void
tree_add(const struct tree *tree, const char *path, const char *text)
{
    char whole[512];
    snprintf(whole, sizeof whole, "%s%s", tree->root, path);
    char *slash = whole + strlen(tree->root) + 1;
    while ((slash = strchr(slash, '/'))) {
        *slash = '\0';
        mkdir(whole, 0755);
        *slash++ = '/';
    }
    FILE *file = fopen(whole, "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static int
remove_entry(const char *path, const struct stat *state, int kind, struct FTW *where)
{
    (void)state;
    (void)kind;
    (void)where;
    return remove(path);
}

void
tree_finish(const struct tree *tree)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread removes */
    assert_int_equal(nftw(tree->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS), 0);
}
