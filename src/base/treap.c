/* SPDX-License-Identifier: Apache-2.0 */

/* A treap that is unzipped and zipped top-down; see treap.h for cost and sources. */

#include "base/treap.h"

#include "base/assert.h"

static bool
is_below(const struct dryi_treap_node *node, uint64_t major, uint64_t minor)
{
    return node->major < major || (node->major == major && node->minor < minor);
}

/* Compare an item of the tree with `other`, which may be outside the tree (about to
   be inserted or removed). */
static bool
is_before(const struct dryi_treap_node *nodes, uint32_t item, uint32_t other)
{
    const struct dryi_treap_node *a = &nodes[item], *b = &nodes[other];
    if (a->major != b->major)
        return a->major < b->major;
    return a->minor != b->minor ? a->minor < b->minor : item < other;
}

/* Break ties of priority by index, so that the tree's shape depends only on its contents. */
static bool
is_above_in_tree(const struct dryi_treap_node *nodes, uint32_t a, uint32_t b)
{
    return nodes[a].priority > nodes[b].priority ||
           (nodes[a].priority == nodes[b].priority && a < b);
}

void
dryi_treap_insert(struct dryi_treap_node *nodes, uint32_t *root, uint32_t item)
{
    struct dryi_treap_node *fresh = &nodes[item];
    DRYI_ASSERT(!fresh->in_set);
    fresh->in_set = 1;
    uint32_t *link = root;
    while (*link != DRYI_TREAP_NONE && is_above_in_tree(nodes, *link, item)) {
        struct dryi_treap_node *node = &nodes[*link];
        link = is_before(nodes, *link, item) ? &node->right : &node->left;
    }
    uint32_t rest = *link; /* split this subtree into items before and after `item` */
    uint32_t *before = &fresh->left, *after = &fresh->right;
    *link = item;
    while (rest != DRYI_TREAP_NONE) {
        struct dryi_treap_node *node = &nodes[rest];
        if (is_before(nodes, rest, item)) {
            *before = rest;
            before = &node->right;
            rest = node->right;
        } else {
            *after = rest;
            after = &node->left;
            rest = node->left;
        }
    }
    *before = *after = DRYI_TREAP_NONE;
}

void
dryi_treap_remove(struct dryi_treap_node *nodes, uint32_t *root, uint32_t item)
{
    struct dryi_treap_node *gone = &nodes[item];
    DRYI_ASSERT(gone->in_set);
    gone->in_set = 0;
    uint32_t *link = root;
    while (*link != item) {
        DRYI_ASSERT(*link != DRYI_TREAP_NONE);
        struct dryi_treap_node *node = &nodes[*link];
        link = is_before(nodes, *link, item) ? &node->right : &node->left;
    }
    /* join both subtrees, the higher priority on top */
    uint32_t before = gone->left, after = gone->right;
    while (before != DRYI_TREAP_NONE && after != DRYI_TREAP_NONE) {
        if (is_above_in_tree(nodes, before, after)) {
            *link = before;
            link = &nodes[before].right;
            before = *link;
        } else {
            *link = after;
            link = &nodes[after].left;
            after = *link;
        }
    }
    *link = before != DRYI_TREAP_NONE ? before : after;
}

uint32_t
dryi_treap_at_least(const struct dryi_treap_node *nodes, uint32_t root, uint64_t major,
                    uint64_t minor)
{
    uint32_t best = DRYI_TREAP_NONE;
    while (root != DRYI_TREAP_NONE) {
        const struct dryi_treap_node *node = &nodes[root];
        if (is_below(node, major, minor)) {
            root = node->right;
        } else {
            best = root;
            root = node->left;
        }
    }
    return best;
}

uint32_t
dryi_treap_below(const struct dryi_treap_node *nodes, uint32_t root, uint64_t major,
                 uint64_t minor)
{
    uint32_t best = DRYI_TREAP_NONE;
    while (root != DRYI_TREAP_NONE) {
        const struct dryi_treap_node *node = &nodes[root];
        if (is_below(node, major, minor)) {
            best = root;
            root = node->right;
        } else {
            root = node->left;
        }
    }
    return best;
}

uint32_t
dryi_treap_after(const struct dryi_treap_node *nodes, uint32_t root, uint32_t item)
{
    uint64_t major = nodes[item].major, minor = nodes[item].minor;
    if (minor < UINT64_MAX)
        return dryi_treap_at_least(nodes, root, major, minor + 1);
    return major < UINT64_MAX ? dryi_treap_at_least(nodes, root, major + 1, 0)
                              : DRYI_TREAP_NONE;
}
