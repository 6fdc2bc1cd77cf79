/* SPDX-License-Identifier: Apache-2.0 */

/* A view has no bytes of its own and keeps the bytes of its base alive. An edge expresses
   that: a reader of the view also reads the base, so the base outlives the view. */
#include "plan/graph_json.h"

#include <stdlib.h>
#include <string.h>

#include "base/fail.h"
#include "base/json_in.h"

static const char *const graph_keys[] = {"format", "name",  "budget", "always",
                                         "nodes",  "edges", "order",  NULL};
static const char *const node_keys[] = {"name",  "cost",   "bytes",    "tmp", "alias_of",
                                        "fixed", "output", "backward", "rng", NULL};

struct reader {
    struct json_in in;
    struct graph_file *file;
    size_t node_count;
    struct dry_graph_node *nodes;
    uint32_t *bases; /* base of each node that is a view, else the node itself */
};

/* Take the status of a library call: contradictory nodes are an error of the file. */
static void
take_status(struct reader *r, enum dry_status status)
{
    if (status == DRY_ERR_ARGUMENT)
        status = r->in.err->status = DRY_ERR_FORMAT;
    r->in.status = status;
}

/* --- nodes -------------------------------------------------------------------------------- */

static void
read_alias(struct reader *r, const struct json_at *at, size_t i)
{
    struct json_at alias = json_in_key(at, "alias_of"), bytes = json_in_key(at, "bytes");
    r->bases[i] = (uint32_t)i;
    if (!alias.value)
        return;
    uint64_t base = json_in_unsigned(&r->in, alias);
    if (base >= i)
        json_in_fail(&r->in, &alias, "%llu is no node before this one",
                     (unsigned long long)base);
    if (r->nodes[i].bytes > 0)
        json_in_fail(&r->in, &bytes, "a view has no bytes of its own");
    if (r->in.status != DRY_OK)
        return;
    r->bases[i] = r->bases[base];
    if (r->nodes[i].is_output)
        r->nodes[r->bases[i]].is_output = true;
}

static void
read_node(struct reader *r, const struct json_at *at, size_t i)
{
    struct dry_graph_node *node = &r->nodes[i];
    if (!json_in_object(&r->in, at, node_keys))
        return;
    node->name = json_in_text(&r->in, json_in_key(at, "name"), NULL);
    node->time_ns = json_in_time(&r->in, json_in_key(at, "cost"));
    node->bytes = json_in_unsigned_or(&r->in, json_in_key(at, "bytes"), 0);
    node->tmp_bytes = json_in_unsigned_or(&r->in, json_in_key(at, "tmp"), 0);
    node->is_fixed = json_in_flag(&r->in, json_in_key(at, "fixed"), false);
    node->is_output = json_in_flag(&r->in, json_in_key(at, "output"), false);
    /* only people and the program that runs the plan need these keys */
    (void)json_in_flag(&r->in, json_in_key(at, "backward"), false);
    (void)json_in_flag(&r->in, json_in_key(at, "rng"), false);
    read_alias(r, at, i);
}

static void
read_nodes(struct reader *r, const struct json_at *root)
{
    struct json_at list = json_in_key(root, "nodes");
    r->node_count = json_in_list(&r->in, &list);
    if (r->node_count == 0)
        json_in_fail(&r->in, &list, "there is no node");
    if (r->node_count > DRY_GRAPH_NODES_MAX)
        json_in_fail(&r->in, &list, "%zu nodes, more than %u", r->node_count,
                     DRY_GRAPH_NODES_MAX);
    if (r->in.status != DRY_OK)
        return;
    r->nodes = calloc(r->node_count, sizeof *r->nodes);
    r->bases = calloc(r->node_count, sizeof *r->bases);
    if (!r->nodes || !r->bases) {
        r->in.status = fail_memory(r->in.err, "no memory for a graph");
        return;
    }
    for (size_t i = 0; i < r->node_count && r->in.status == DRY_OK; i++) {
        struct json_at node = json_in_element(&list, i);
        read_node(r, &node, i);
    }
    /* Add nodes after all are read: an output that is a view makes its base an output. */
    for (size_t i = 0; i < r->node_count && r->in.status == DRY_OK; i++)
        take_status(r, dry_graph_add(r->file->graph, &r->nodes[i], r->in.err));
}

/* --- edges and order ---------------------------------------------------------------------- */

static void
connect(struct reader *r, uint32_t from, uint32_t to)
{
    if (r->in.status == DRY_OK)
        take_status(r, dry_graph_connect(r->file->graph, from, to, r->in.err));
}

static void
read_edge(struct reader *r, const struct json_at *at)
{
    struct json_at ends[2] = {json_in_element(at, 0), json_in_element(at, 1)};
    uint64_t nodes[2];
    if (json_in_list(&r->in, at) != 2)
        json_in_fail(&r->in, at, "a pair [from, to] is expected");
    for (size_t i = 0; i < 2 && r->in.status == DRY_OK; i++) {
        nodes[i] = json_in_unsigned(&r->in, ends[i]);
        if (nodes[i] >= r->node_count)
            json_in_fail(&r->in, &ends[i], "there is no node %llu",
                         (unsigned long long)nodes[i]);
    }
    if (r->in.status != DRY_OK)
        return;
    uint32_t from = (uint32_t)nodes[0], to = (uint32_t)nodes[1];
    connect(r, from, to);
    if (r->bases[from] != from && r->bases[from] != to)
        connect(r, r->bases[from], to);
}

static void
read_edges(struct reader *r, const struct json_at *root)
{
    struct json_at list = json_in_key(root, "edges");
    size_t count = json_in_list(&r->in, &list);
    if (count > DRY_GRAPH_EDGES_MAX / 2)
        json_in_fail(&r->in, &list, "%zu edges, more than %u", count,
                     DRY_GRAPH_EDGES_MAX / 2);
    for (size_t i = 0; i < count && r->in.status == DRY_OK; i++) {
        struct json_at edge = json_in_element(&list, i);
        read_edge(r, &edge);
    }
    for (size_t i = 0; i < r->node_count && r->in.status == DRY_OK; i++) {
        if (r->bases[i] != i)
            connect(r, r->bases[i], (uint32_t)i);
    }
    r->file->edge_count = count;
}

/* Seal the graph with the file's order, or without one. */
static void
read_order(struct reader *r, const struct json_at *root)
{
    struct json_at list = json_in_key(root, "order");
    size_t count = json_in_list(&r->in, &list);
    if (list.value && count != r->node_count)
        json_in_fail(&r->in, &list, "%zu nodes, not the graph's %zu", count,
                     r->node_count);
    if (r->in.status != DRY_OK)
        return;
    /* The array of bases is no longer needed; it now holds the order. */
    for (size_t i = 0; i < count && r->in.status == DRY_OK; i++) {
        struct json_at at = json_in_element(&list, i);
        uint64_t node = json_in_unsigned(&r->in, at);
        if (node >= r->node_count)
            json_in_fail(&r->in, &at, "there is no node %llu", (unsigned long long)node);
        r->bases[i] = (uint32_t)node;
    }
    if (r->in.status == DRY_OK)
        take_status(
            r, dry_graph_seal(r->file->graph, list.value ? r->bases : NULL, r->in.err));
}

/* --- the file ----------------------------------------------------------------------------- */

bool
graph_json_is(const json_t *tree)
{
    const char *format = json_string_value(json_object_get(tree, "format"));
    return format && strcmp(format, "ckpt-graph/1") == 0;
}

static void
read_graph(struct reader *r, const struct json_at *root)
{
    if (!json_in_object(&r->in, root, graph_keys))
        return;
    (void)json_in_text(&r->in, json_in_key(root, "name"), NULL);
    chain_budget_read(&r->in, root, &r->file->budget);
    r->file->always_bytes = json_in_unsigned_or(&r->in, json_in_key(root, "always"), 0);
    read_nodes(r, root);
    if (r->in.status == DRY_OK)
        read_edges(r, root);
    if (r->in.status == DRY_OK)
        read_order(r, root);
}

enum dry_status
graph_json_read(json_t *tree, const struct dry_memory *memory, struct graph_file *file,
                struct dry_error *err)
{
    struct graph_file made = {0};
    struct reader r = {.in = {.err = err}, .file = &made};
    const struct json_at root = {.value = tree};
    r.in.status = dry_graph_create(memory, &made.graph, err);
    if (r.in.status == DRY_OK)
        read_graph(&r, &root);
    free(r.nodes);
    free(r.bases);
    if (r.in.status == DRY_OK)
        *file = made;
    else
        graph_file_finish(&made);
    return r.in.status;
}

void
graph_file_finish(struct graph_file *file)
{
    dry_graph_destroy(file->graph);
    *file = (struct graph_file){0};
}
