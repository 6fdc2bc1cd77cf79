/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Eviction: run the order with a cache as large as the budget. A needed value that is missing is
 * recomputed, with the inputs that it lacks. The values least worth keeping are evicted for it.
 * This is like DTR (Kirisame et al., ICLR 2021), except that the next use of a value is known.
 *
 * A node that waits for inputs pins those that are present. If everything is pinned and the cache
 * is full, this planner finds no sequence; another may.
 *
 * Cost: a pass over all values for each eviction; VISITS_MAX bounds the total.
 */
#include <string.h>

#include "base/memory.h"
#include "plan/graph/graph_state.h"

#define NOBODY UINT32_MAX
#define VISITS_MAX UINT64_C(300000000)
#define TOLD_EVERY 64u /* nodes between two progress reports */

struct cache {
    const struct dry_graph *g;
    struct dry_memory memory;
    uint64_t budget, held, visits;
    unsigned variant;
    uint32_t frontier; /* rank of the node that runs for the first time */
    uint8_t *is_there;
    uint32_t *pins;      /* waiting nodes that have the rank as an input */
    uint32_t *next_user; /* index into `users` of each rank's next user */
    struct dryi_graph_search *s;
    uint32_t *waiting; /* stack of nodes that wait for inputs */
    size_t waiting_count;
    struct dryi_graph_runs *sequence;
};

/* Return what evicting the value would cost by the variant's measure; the least is evicted. */
static double
worth(struct cache *c, uint32_t rank)
{
    const struct dry_graph *g = c->g;
    const struct dry_graph_node *node = dryi_graph_at(g, rank);
    double time = 1.0 + (double)node->time_ns, distance = 2.0 * (double)g->count;
    for (uint32_t e = g->input_first[rank]; e < g->input_first[rank + 1]; e++) {
        const struct dry_graph_node *input = dryi_graph_at(g, g->inputs[e]);
        time += c->is_there[g->inputs[e]] ? 0.0 : (double)input->time_ns;
    }
    uint32_t *next = &c->next_user[rank];
    while (*next < g->user_first[rank + 1] && g->users[*next] < c->frontier)
        ++*next;
    if (*next < g->user_first[rank + 1])
        distance = 1.0 + (double)(g->users[*next] - c->frontier);
    c->visits += 2 + g->input_first[rank + 1] - g->input_first[rank];
    double bytes = 1.0 + (double)node->bytes;
    if (c->variant == 0)
        return time / bytes / distance;
    return c->variant == 1 ? 1.0 / distance : time / bytes;
}

/*
 * Return whether the value is never evicted. Outputs stay, so that they are present at
 * the end. Fixed values with users stay because they cannot be recomputed.
 */
static bool
is_held_for_good(const struct dry_graph *g, uint32_t rank)
{
    const struct dry_graph_node *node = dryi_graph_at(g, rank);
    return node->is_output ||
           (node->is_fixed && g->user_first[rank] < g->user_first[rank + 1]);
}

/*
 * Evict the value of the least worth. Returns false if none can be evicted, or VISITS_MAX
 * is used up.
 */
static bool
evict(struct cache *c)
{
    uint32_t least = NOBODY;
    double least_worth = 0.0;
    for (uint32_t rank = 0; rank < c->frontier; rank++) {
        c->visits++;
        if (!c->is_there[rank] || c->pins[rank] > 0 || is_held_for_good(c->g, rank))
            continue;
        double value = worth(c, rank);
        if (least == NOBODY || value < least_worth) {
            least = rank;
            least_worth = value;
        }
    }
    if (least == NOBODY || c->visits > VISITS_MAX)
        return false;
    c->is_there[least] = 0;
    c->held -= dryi_graph_at(c->g, least)->bytes;
    return true;
}

static bool
make_room(struct cache *c, uint64_t bytes)
{
    while (c->held > c->budget || bytes > c->budget - c->held) {
        if (!evict(c))
            return false;
    }
    return true;
}

/* Push a node that waits for its inputs, and pin those inputs. */
static void
wait_for(struct cache *c, uint32_t rank)
{
    const struct dry_graph *g = c->g;
    c->waiting[c->waiting_count++] = rank;
    for (uint32_t e = g->input_first[rank]; e < g->input_first[rank + 1]; e++)
        c->pins[g->inputs[e]]++;
}

static uint32_t
missing_input(const struct cache *c, uint32_t rank)
{
    const struct dry_graph *g = c->g;
    for (uint32_t e = g->input_first[rank]; e < g->input_first[rank + 1]; e++) {
        if (!c->is_there[g->inputs[e]])
            return g->inputs[e];
    }
    return NOBODY;
}

static enum dry_status
run(struct cache *c, uint32_t rank, bool *is_found)
{
    const struct dry_graph *g = c->g;
    const struct dry_graph_node *node = dryi_graph_at(g, rank);
    *is_found = make_room(c, node->bytes + node->tmp_bytes) &&
                c->sequence->count < DRYI_RUNS_PER_NODE * g->count;
    if (!*is_found)
        return DRY_OK;
    if (!dryi_graph_runs_insert(&c->memory, c->sequence, c->sequence->count, rank))
        return DRY_ERR_MEMORY;
    c->is_there[rank] = 1;
    c->held += node->bytes;
    c->waiting_count--;
    for (uint32_t e = g->input_first[rank]; e < g->input_first[rank + 1]; e++)
        c->pins[g->inputs[e]]--;
    return DRY_OK;
}

static enum dry_status
run_all(struct cache *c, bool *is_found)
{
    enum dry_status status = DRY_OK;
    *is_found = true;
    for (; c->frontier < c->g->count && status == DRY_OK && *is_found; c->frontier++) {
        if (c->frontier % TOLD_EVERY == 0 && !dryi_graph_go_on(c->s)) {
            *is_found = false;
            break;
        }
        wait_for(c, c->frontier);
        while (c->waiting_count > 0 && status == DRY_OK && *is_found) {
            uint32_t rank = c->waiting[c->waiting_count - 1];
            uint32_t missing = missing_input(c, rank);
            if (missing != NOBODY)
                wait_for(c, missing);
            else
                status = run(c, rank, is_found);
        }
    }
    return status;
}

enum dry_status
dryi_graph_evict(struct dryi_graph_search *s, unsigned variant,
                 struct dryi_graph_runs *sequence, bool *is_found)
{
    const struct dry_graph *g = s->graph;
    const struct dry_memory *m = &s->memory;
    struct cache c = {.g = g,
                      .s = s,
                      .memory = *m,
                      .budget = s->options.budget_bytes,
                      .variant = variant,
                      .sequence = sequence};
    c.is_there = dryi_memory_zalloc(m, g->count, 1);
    c.pins = dryi_memory_zalloc(m, g->count, sizeof *c.pins);
    c.next_user = dryi_memory_zalloc(m, g->count, sizeof *c.next_user);
    c.waiting = dryi_memory_zalloc(m, g->count, sizeof *c.waiting);
    enum dry_status status = DRY_ERR_MEMORY;
    sequence->count = 0;
    if (c.is_there && c.pins && c.next_user && c.waiting) {
        memcpy(c.next_user, g->user_first, g->count * sizeof *c.next_user);
        status = run_all(&c, is_found);
    }
    dryi_memory_free(m, c.waiting, g->count, sizeof *c.waiting);
    dryi_memory_free(m, c.next_user, g->count, sizeof *c.next_user);
    dryi_memory_free(m, c.pins, g->count, sizeof *c.pins);
    dryi_memory_free(m, c.is_there, g->count, 1);
    return status;
}
