/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The bound for problems whose items depend on each other: a byte of the budget gets a price, and
 * a minimum cut solves the rest.
 *
 * At a price, the minimum of (recomputation time + price of kept bytes) is a minimum cut (a
 * closure problem, Picard 1976). An item has two nodes, "it must be there" and "it is run again":
 *
 *   source -> there      no limit, if the backward reads it
 *   there  -> again      the price of its bytes: cut, it is kept
 *   again  -> sink       its time: cut, it is run again
 *   again  -> there      of each of its inputs, no limit
 *
 * At any price, the cut less the price of the whole budget is a lower bound of the time of every
 * choice that fits (Lagrange). The best price is searched once, at the root. Groups and ties are
 * ignored, which only lowers the bound.
 *
 * Prices of items are rounded down, the budget's up. If the effort ends during the flow, the flow
 * is below the cut, so the bound still holds.
 */
#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"
#include "plan/knapsack/knapsack_state.h"

#define NOBODY UINT32_MAX
#define UNLIMITED (UINT64_C(1) << 62)
#define PRICE_BITS 32u /* fraction bits of `price` */

struct dryi_cut {
    struct dryi_keep *k;
    uint32_t node_count, edge_count;
    uint32_t *head;     /* first edge of each node */
    uint32_t *next;     /* next edge of the same node */
    uint32_t *to;       /* node that each edge leads to; edge ^ 1 is its reverse */
    uint64_t *residual; /* residual capacity of each edge */
    uint32_t *level;    /* steps from the source to each node; NOBODY: unreachable */
    uint32_t *at;       /* the next edge of each node to try */
    uint32_t *queue;    /* nodes to visit; in push_level(), the edges of the path */
    uint64_t price;     /* per byte, in units of 2^-32 */
};

static uint32_t
there(uint32_t item)
{
    return 2 + 2 * item;
}

static uint32_t
again(uint32_t item)
{
    return 3 + 2 * item;
}

/* --- the network ------------------------------------------------------------------------------ */

static void
add_edge(struct dryi_cut *c, uint32_t from, uint32_t to)
{
    for (uint32_t way = 0; way < 2; way++) {
        uint32_t e = c->edge_count++;
        c->to[e] = way ? from : to;
        c->next[e] = c->head[way ? to : from];
        c->head[way ? to : from] = e;
    }
}

/*
 * Build the network. Item i has the edges 6 i (kept), 6 i + 2 (time) and 6 i + 4 (read);
 * edges of inputs follow.
 */
static void
build(struct dryi_cut *c)
{
    const struct dryi_keep *k = c->k;
    for (uint32_t n = 0; n < c->node_count; n++)
        c->head[n] = NOBODY;
    for (uint32_t i = 0; i < k->count; i++) {
        add_edge(c, there(i), again(i));
        add_edge(c, again(i), 1);
        add_edge(c, 0, there(i));
    }
    for (uint32_t i = 0; i < k->count; i++) {
        for (uint32_t e = k->first[i]; e < k->first[i + 1]; e++)
            add_edge(c, again(i), there(k->inputs[e]));
    }
}

static uint64_t
get_price(const struct dryi_cut *c, uint64_t bytes)
{
    dryi_wide price = (dryi_wide)bytes * c->price >> PRICE_BITS;
    return price < UNLIMITED ? (uint64_t)price : UNLIMITED;
}

static void
fill(struct dryi_cut *c)
{
    const struct dryi_keep *k = c->k;
    for (uint32_t e = 0; e < c->edge_count; e++)
        c->residual[e] = e & 1 ? 0 : UNLIMITED;
    for (uint32_t i = 0; i < k->count; i++) {
        uint8_t state = k->clusters[k->cluster[i]].state;
        c->residual[6 * i + 2] = k->items[i].time_ns;
        c->residual[6 * i + 4] = k->items[i].is_unread ? 0 : UNLIMITED;
        if (state == DRYI_KEEP_KEPT)
            c->residual[6 * i] = 0; /* its bytes are already off the budget */
        else if (state == DRYI_KEEP_OPEN)
            c->residual[6 * i] = get_price(c, k->items[i].bytes);
    }
}

/* --- the flow (Dinic 1970) ---------------------------------------------------------------------- */

static bool
find_levels(struct dryi_cut *c)
{
    size_t begin = 0, end = 0;
    for (uint32_t n = 0; n < c->node_count; n++)
        c->level[n] = NOBODY;
    c->level[0] = 0;
    c->queue[end++] = 0;
    while (begin < end) {
        uint32_t n = c->queue[begin++];
        c->at[n] = c->head[n];
        for (uint32_t e = c->head[n]; e != NOBODY; e = c->next[e]) {
            if (c->residual[e] == 0 || c->level[c->to[e]] != NOBODY)
                continue;
            c->level[c->to[e]] = c->level[n] + 1;
            c->queue[end++] = c->to[e];
        }
    }
    uint64_t visits = c->node_count + c->edge_count;
    c->k->effort -= visits < c->k->effort ? visits : c->k->effort;
    return c->level[1] != NOBODY;
}

/* Push the path's flow and return it. The path then ends at its first full edge. */
static uint64_t
push_along(struct dryi_cut *c, size_t *length)
{
    uint64_t flow = UINT64_MAX;
    size_t narrow = 0;
    for (size_t n = *length; n-- > 0;) {
        if (c->residual[c->queue[n]] <= flow) {
            flow = c->residual[c->queue[n]];
            narrow = n;
        }
    }
    for (size_t n = 0; n < *length; n++) {
        c->residual[c->queue[n]] -= flow;
        c->residual[c->queue[n] ^ 1] += flow;
    }
    *length = narrow;
    return flow;
}

static uint64_t
push_level(struct dryi_cut *c)
{
    uint64_t flow = 0;
    size_t length = 0;
    uint32_t n = 0;
    for (;;) {
        if (n == 1) {
            flow += push_along(c, &length);
            n = length > 0 ? c->to[c->queue[length - 1]] : 0;
        }
        uint32_t e = c->at[n];
        while (e != NOBODY &&
               (c->residual[e] == 0 || c->level[c->to[e]] != c->level[n] + 1))
            e = c->next[e];
        c->at[n] = e;
        if (e != NOBODY) {
            c->queue[length++] = e;
            n = c->to[e];
        } else if (length == 0) {
            return flow;
        } else {
            n = c->to[c->queue[--length] ^ 1];
            c->at[n] = c->next[c->at[n]];
        }
    }
}

uint64_t
dryi_cut_bound(struct dryi_cut *c, uint64_t left)
{
    uint64_t flow = 0, budget = get_price(c, left) + 1;
    fill(c);
    while (c->k->effort > 0 && find_levels(c))
        flow += push_level(c);
    return flow > budget ? flow - budget : 0;
}

bool
dryi_cut_is_kept(const struct dryi_cut *c, uint32_t item)
{
    return c->level[there(item)] != NOBODY && c->level[again(item)] == NOBODY;
}

/* --- the price ------------------------------------------------------------------------------------ */

void
dryi_cut_set_price(struct dryi_cut *c, uint64_t price)
{
    c->price = price;
}

void
dryi_cut_destroy(struct dryi_cut *c)
{
    if (!c)
        return;
    struct dry_memory m = c->k->memory;
    size_t edges = 6 * c->k->count + 2 * c->k->input_count;
    dryi_memory_free(&m, c->queue, c->node_count, sizeof *c->queue);
    dryi_memory_free(&m, c->at, c->node_count, sizeof *c->at);
    dryi_memory_free(&m, c->level, c->node_count, sizeof *c->level);
    dryi_memory_free(&m, c->residual, edges, sizeof *c->residual);
    dryi_memory_free(&m, c->to, edges, sizeof *c->to);
    dryi_memory_free(&m, c->next, edges, sizeof *c->next);
    dryi_memory_free(&m, c->head, c->node_count, sizeof *c->head);
    dryi_memory_free(&m, c, 1, sizeof *c);
}

struct dryi_cut *
dryi_cut_create(struct dryi_keep *k)
{
    const struct dry_memory *m = &k->memory;
    size_t edges = 6 * k->count + 2 * k->input_count;
    struct dryi_cut *c = dryi_memory_zalloc(m, 1, sizeof *c);
    if (!c)
        return NULL;
    c->k = k;
    c->node_count = (uint32_t)(2 + 2 * k->count);
    c->head = dryi_memory_zalloc(m, c->node_count, sizeof *c->head);
    c->next = dryi_memory_zalloc(m, edges, sizeof *c->next);
    c->to = dryi_memory_zalloc(m, edges, sizeof *c->to);
    c->residual = dryi_memory_zalloc(m, edges, sizeof *c->residual);
    c->level = dryi_memory_zalloc(m, c->node_count, sizeof *c->level);
    c->at = dryi_memory_zalloc(m, c->node_count, sizeof *c->at);
    c->queue = dryi_memory_zalloc(m, c->node_count, sizeof *c->queue);
    if (!c->head || !c->next || !c->to || !c->residual || !c->level || !c->at ||
        !c->queue) {
        dryi_cut_destroy(c);
        return NULL;
    }
    build(c);
    DRYI_ASSERT(c->edge_count == edges);
    return c;
}
