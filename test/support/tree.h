/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_TREE_H
#define TEST_TREE_H

/* A folder of files that stands for another machine's /sys and /proc. */

struct tree {
    char root[64];
};

void tree_init(struct tree *tree);
/* Add a file; `path` begins with a slash, and folders on the way are made. */
void tree_add(const struct tree *tree, const char *path, const char *text);
/* End the tree, and remove the folder. */
void tree_finish(const struct tree *tree);

#endif
