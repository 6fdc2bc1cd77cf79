/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Building and sealing a graph. Sealing sorts the edges, drops duplicates, and finds or
 * checks an order (Kahn 1962, the least number first).
 */
#include <drystone/graph.h>

#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sort.h"
#include "plan/graph/graph_heap.h"
#include "plan/graph/graph_state.h"

#define SUM_MAX ((uint64_t)INT64_MAX)

/* --- building ------------------------------------------------------------------------------ */

enum dry_status
dry_graph_create(const struct dry_memory *memory, struct dry_graph **graph,
                 struct dry_error *err)
{
    struct dry_memory m = dryi_memory_or_default(memory);
    struct dry_graph *g = dryi_memory_zalloc(&m, 1, sizeof *g);
    if (!g)
        return dryi_fail_memory(err, "a graph");
    g->memory = m;
    *graph = g;
    return DRY_OK;
}

static void
free_order(struct dry_graph *g)
{
    const struct dry_memory *m = &g->memory;
    dryi_memory_free(m, g->users, g->edge_count + 1, sizeof *g->users);
    dryi_memory_free(m, g->inputs, g->edge_count + 1, sizeof *g->inputs);
    dryi_memory_free(m, g->user_first, g->count + 1, sizeof *g->user_first);
    dryi_memory_free(m, g->input_first, g->count + 1, sizeof *g->input_first);
    dryi_memory_free(m, g->rank, g->count + 1, sizeof *g->rank);
    dryi_memory_free(m, g->order, g->count + 1, sizeof *g->order);
    g->users = g->inputs = g->user_first = g->input_first = g->rank = g->order = NULL;
}

static void
free_name(struct dry_graph *g, const char *name)
{
    char *own = NULL;
    if (name) {
        /* The graph owns the name, so the const can go. */
        memcpy(&own, &name, sizeof own);
        dryi_memory_free(&g->memory, own, strlen(name) + 1, 1);
    }
}

void
dry_graph_destroy(struct dry_graph *graph)
{
    if (!graph)
        return;
    free_order(graph);
    for (size_t i = 0; i < graph->count; i++)
        free_name(graph, graph->nodes[i].name);
    struct dry_memory m = graph->memory;
    dryi_memory_free(&m, graph->edges, graph->edge_capacity, sizeof *graph->edges);
    dryi_memory_free(&m, graph->nodes, graph->node_capacity, sizeof *graph->nodes);
    dryi_memory_free(&m, graph, 1, sizeof *graph);
}

static bool
copy_name(struct dry_graph *g, const char *name, const char **copy)
{
    *copy = NULL;
    if (!name)
        return true;
    size_t size = strlen(name) + 1;
    char *own = dryi_memory_zalloc(&g->memory, size, 1);
    if (own)
        memcpy(own, name, size);
    *copy = own;
    return own != NULL;
}

static enum dry_status
check_node(const struct dry_graph *g, const struct dry_graph_node *node,
           struct dry_error *err)
{
    if (g->is_sealed)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "the graph is sealed");
    if (g->count >= DRY_GRAPH_NODES_MAX)
        return dryi_fail(err, DRY_ERR_LIMIT, "more than %u nodes", DRY_GRAPH_NODES_MAX);
    if (node->bytes > SUM_MAX - g->bytes_sum ||
        node->tmp_bytes > SUM_MAX - g->bytes_sum - node->bytes ||
        node->time_ns > SUM_MAX - g->base_ns)
        return dryi_fail(err, DRY_ERR_LIMIT,
                         "the sums of all nodes up to %zu are more than 63 bits",
                         g->count);
    return DRY_OK;
}

enum dry_status
dry_graph_add(struct dry_graph *graph, const struct dry_graph_node *node,
              struct dry_error *err)
{
    enum dry_status status = check_node(graph, node, err);
    if (status != DRY_OK)
        return status;
    struct dry_graph_node copy = *node;
    if (!dryi_memory_grow(&graph->memory, &graph->nodes, &graph->node_capacity,
                          graph->count + 1, sizeof *graph->nodes) ||
        !copy_name(graph, node->name, &copy.name))
        return dryi_fail_memory(err, "a node");
    graph->nodes[graph->count++] = copy;
    graph->bytes_sum += copy.bytes + copy.tmp_bytes;
    graph->base_ns += copy.time_ns;
    return DRY_OK;
}

enum dry_status
dry_graph_connect(struct dry_graph *graph, uint32_t from, uint32_t to,
                  struct dry_error *err)
{
    if (graph->is_sealed)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "the graph is sealed");
    if (from >= graph->count || to >= graph->count)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "an edge from %u to %u, of %zu nodes",
                         from, to, graph->count);
    if (from == to)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "an edge from %u to itself", from);
    if (graph->edge_count >= DRY_GRAPH_EDGES_MAX)
        return dryi_fail(err, DRY_ERR_LIMIT, "more than %u edges", DRY_GRAPH_EDGES_MAX);
    if (!dryi_memory_grow(&graph->memory, &graph->edges, &graph->edge_capacity,
                          graph->edge_count + 1, sizeof *graph->edges))
        return dryi_fail_memory(err, "an edge");
    graph->edges[graph->edge_count++] = (struct dryi_edge){from, to};
    return DRY_OK;
}

size_t
dry_graph_get_count(const struct dry_graph *graph)
{
    return graph->count;
}

const struct dry_graph_node *
dry_graph_get_node(const struct dry_graph *graph, uint32_t index)
{
    return index < graph->count ? &graph->nodes[index] : NULL;
}

const uint32_t *
dry_graph_get_order(const struct dry_graph *graph)
{
    return graph->is_sealed ? graph->order : NULL;
}

/* --- sealing: links --------------------------------------------------------------------------- */

struct sealing {
    struct dry_graph *g;
    struct dryi_sort_item *items, *scratch; /* edge_count + 1 elements */
    uint32_t *missing;           /* inputs of each node that are not ordered so far */
    struct dryi_heap_item *heap; /* nodes whose inputs are all ordered */
    size_t heap_count;
};

/*
 * Fill links, grouped by the node at one end: links[first[i]] to links[first[i + 1] - 1]
 * belong to i. Both ends are ranks, or numbers if `rank` is NULL. Groups are ascending,
 * without duplicates. Returns the number of links.
 */
static size_t
make_links(struct sealing *s, const uint32_t *rank, bool by_user, uint32_t *first,
           uint32_t *links)
{
    const struct dry_graph *g = s->g;
    for (size_t e = 0; e < g->edge_count; e++) {
        uint32_t from = rank ? rank[g->edges[e].from] : g->edges[e].from;
        uint32_t to = rank ? rank[g->edges[e].to] : g->edges[e].to;
        uint64_t near = by_user ? to : from, far = by_user ? from : to;
        s->items[e].key = near << 32 | far;
    }
    dryi_sort_items(s->items, s->scratch, g->edge_count);
    size_t count = 0;
    memset(first, 0, (g->count + 1) * sizeof *first);
    for (size_t e = 0; e < g->edge_count; e++) {
        if (e > 0 && s->items[e].key == s->items[e - 1].key)
            continue;
        links[count++] = (uint32_t)s->items[e].key;
        first[(s->items[e].key >> 32) + 1]++;
    }
    for (size_t i = 0; i < g->count; i++)
        first[i + 1] += first[i];
    return count;
}

/* --- sealing: an order -------------------------------------------------------------------------- */

/*
 * Name a node on a cycle. Every node that waits has an input that waits too. After
 * `count` steps back along such inputs, the node must be on a cycle.
 */
static enum dry_status
fail_cycle(const struct sealing *s, struct dry_error *err)
{
    const struct dry_graph *g = s->g;
    uint32_t node = 0;
    while (s->missing[node] == 0)
        node++;
    for (size_t step = 0; step < g->count; step++) {
        uint32_t e = g->input_first[node];
        while (s->missing[g->inputs[e]] == 0)
            e++;
        node = g->inputs[e];
    }
    return dryi_fail(err, DRY_ERR_ARGUMENT, "node %u (%.60s) is on a cycle", node,
                     g->nodes[node].name ? g->nodes[node].name : "no name");
}

/* Find an order. Requires links by node number. */
static enum dry_status
find_order(struct sealing *s, struct dry_error *err)
{
    struct dry_graph *g = s->g;
    size_t count = 0;
    for (uint32_t i = 0; i < g->count; i++) {
        s->missing[i] = g->input_first[i + 1] - g->input_first[i];
        if (s->missing[i] == 0)
            dryi_heap_push(s->heap, s->heap_count++, (struct dryi_heap_item){i, 0});
    }
    while (s->heap_count > 0) {
        uint32_t node = (uint32_t)dryi_heap_pop(s->heap, s->heap_count--).key;
        g->order[count++] = node;
        for (uint32_t e = g->user_first[node]; e < g->user_first[node + 1]; e++) {
            if (--s->missing[g->users[e]] == 0)
                dryi_heap_push(s->heap, s->heap_count++,
                               (struct dryi_heap_item){g->users[e], 0});
        }
    }
    return count == g->count ? DRY_OK : fail_cycle(s, err);
}

static enum dry_status
take_order(struct dry_graph *g, const uint32_t *order, struct dry_error *err)
{
    memset(g->rank, 0xff, g->count * sizeof *g->rank);
    for (uint32_t at = 0; at < g->count; at++) {
        if (order[at] >= g->count || g->rank[order[at]] != UINT32_MAX)
            return dryi_fail(err, DRY_ERR_ARGUMENT,
                             "place %u of the order has node %u, %s", at, order[at],
                             order[at] < g->count ? "for the second time"
                                                  : "which there is none of");
        g->rank[order[at]] = at;
    }
    for (size_t e = 0; e < g->edge_count; e++) {
        uint32_t from = g->edges[e].from, to = g->edges[e].to;
        if (g->rank[from] >= g->rank[to])
            return dryi_fail(err, DRY_ERR_ARGUMENT,
                             "the order has node %u before its input, node %u", to, from);
    }
    memcpy(g->order, order, g->count * sizeof *order);
    return DRY_OK;
}

static enum dry_status
rank_nodes(struct sealing *s, const uint32_t *order, struct dry_error *err)
{
    struct dry_graph *g = s->g;
    enum dry_status status;
    if (order) {
        status = take_order(g, order, err);
    } else {
        make_links(s, NULL, true, g->input_first, g->inputs);
        make_links(s, NULL, false, g->user_first, g->users);
        status = find_order(s, err);
    }
    if (status != DRY_OK)
        return status;
    for (uint32_t at = 0; at < g->count; at++)
        g->rank[g->order[at]] = at;
    make_links(s, g->rank, true, g->input_first, g->inputs);
    g->link_count = make_links(s, g->rank, false, g->user_first, g->users);
    return DRY_OK;
}

static bool
take_memory(struct sealing *s)
{
    struct dry_graph *g = s->g;
    const struct dry_memory *m = &g->memory;
    g->order = dryi_memory_zalloc(m, g->count + 1, sizeof *g->order);
    g->rank = dryi_memory_zalloc(m, g->count + 1, sizeof *g->rank);
    g->input_first = dryi_memory_zalloc(m, g->count + 1, sizeof *g->input_first);
    g->user_first = dryi_memory_zalloc(m, g->count + 1, sizeof *g->user_first);
    g->inputs = dryi_memory_zalloc(m, g->edge_count + 1, sizeof *g->inputs);
    g->users = dryi_memory_zalloc(m, g->edge_count + 1, sizeof *g->users);
    s->items = dryi_memory_zalloc(m, g->edge_count + 1, sizeof *s->items);
    s->scratch = dryi_memory_zalloc(m, g->edge_count + 1, sizeof *s->scratch);
    s->missing = dryi_memory_zalloc(m, g->count + 1, sizeof *s->missing);
    s->heap = dryi_memory_zalloc(m, g->count + 1, sizeof *s->heap);
    return g->order && g->rank && g->input_first && g->user_first && g->inputs &&
           g->users && s->items && s->scratch && s->missing && s->heap;
}

enum dry_status
dry_graph_seal(struct dry_graph *graph, const uint32_t *order, struct dry_error *err)
{
    if (graph->is_sealed)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "the graph is sealed");
    struct sealing s = {.g = graph};
    const struct dry_memory *m = &graph->memory;
    enum dry_status status = take_memory(&s) ? rank_nodes(&s, order, err)
                                             : dryi_fail_memory(err, "a graph's order");
    dryi_memory_free(m, s.heap, graph->count + 1, sizeof *s.heap);
    dryi_memory_free(m, s.missing, graph->count + 1, sizeof *s.missing);
    dryi_memory_free(m, s.scratch, graph->edge_count + 1, sizeof *s.scratch);
    dryi_memory_free(m, s.items, graph->edge_count + 1, sizeof *s.items);
    graph->is_sealed = status == DRY_OK;
    if (status != DRY_OK)
        free_order(graph);
    return status;
}
