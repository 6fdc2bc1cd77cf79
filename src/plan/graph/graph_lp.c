/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Checkmate's mixed integer program (Jain et al., MLSys 2020, sections 4.4 to 4.8) as text.
 *
 * In stage t the t-th node of the order runs for the first time. Nodes before it may run again, in
 * the order. With i, k ranks, D(k) the inputs of k:
 *
 *   advance   R_t_t = 1
 *   input     R_t_k <= R_t_i + S_t_i                      for i in D(k)
 *   hold      S_t+1_i <= S_t_i + R_t_i
 *   free      F_t_i_k = 1 exactly where k runs, nothing after k in stage t reads i, and i is
 *             not held into stage t + 1; for i = k, and i in D(k). As two rows, of the hazards
 *             h = (1 - R_t_k) + S_t+1_i + the R_t_j of later users j of i:
 *             1 - F <= h, and h <= H (1 - F), H being the most h can be
 *   memory    U_t_0 = sum of what is held into t + b_0 R_t_0
 *             U_t_k = U_t_k-1 + b_k R_t_k - b_i F_t_i_k-1 for all i freed after k - 1
 *             U_t_k + tmp_k R_t_k <= budget
 *
 * If there are outputs, an additional last stage only runs nodes again, and outputs are held after
 * it. Fixed nodes run in their own stage only.
 *
 * Cost: stages x (nodes + edges) rows and variables.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/bits.h"
#include "base/fail.h"
#include "plan/graph/graph_state.h"

#define NODES_MAX 300u

struct lp {
    const struct dry_graph *g;
    const struct dry_graph_writer *writer;
    uint32_t count, stages;
    uint64_t unit;
    bool is_stopped;
};

__attribute__((format(printf, 2, 3))) static void
put(struct lp *lp, const char *format, ...)
{
    char text[160];
    va_list args;
    if (lp->is_stopped)
        return;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    lp->is_stopped = lp->writer->write(lp->writer->self, text, (size_t)length) != 0;
}

static uint64_t
get_bytes(const struct lp *lp, uint32_t rank)
{
    return dryi_graph_at(lp->g, rank)->bytes / lp->unit;
}

static bool
is_output(const struct lp *lp, uint32_t rank)
{
    return dryi_graph_at(lp->g, rank)->is_output;
}

/*
 * Return whether the program has the variable R_t_i; a variable left out is 0. has_held()
 * is the same for S_t_i.
 */
static bool
has_run(const struct lp *lp, uint32_t t, uint32_t i)
{
    return i == t || (i < t && !dryi_graph_at(lp->g, i)->is_fixed);
}

static bool
has_held(const struct lp *lp, uint32_t t, uint32_t i)
{
    return i < t && (t < lp->stages || is_output(lp, i));
}

static uint64_t
find_unit(const struct dry_graph *g)
{
    uint64_t unit = 0;
    for (size_t i = 0; i < g->count; i++)
        unit = dryi_common_divisor(g->nodes[i].tmp_bytes,
                                   dryi_common_divisor(g->nodes[i].bytes, unit));
    return unit ? unit : 1;
}

/* --- rows ---------------------------------------------------------------------------------- */

static void
write_goal(struct lp *lp)
{
    put(lp, "Minimize\n time:");
    for (uint32_t t = 0; t < lp->stages; t++) {
        for (uint32_t i = 0; i <= t && i < lp->count; i++) {
            if (has_run(lp, t, i))
                put(lp, "\n  + %" PRIu64 " R_%u_%u", dryi_graph_at(lp->g, i)->time_ns, t,
                    i);
        }
    }
    put(lp, "\nSubject To\n");
}

static void
write_inputs(struct lp *lp, uint32_t t, uint32_t k)
{
    const struct dry_graph *g = lp->g;
    for (uint32_t e = g->input_first[k]; e < g->input_first[k + 1]; e++) {
        uint32_t i = g->inputs[e];
        put(lp, " in_%u_%u_%u: R_%u_%u - S_%u_%u", t, i, k, t, k, t, i);
        if (has_run(lp, t, i))
            put(lp, " - R_%u_%u", t, i);
        put(lp, " <= 0\n");
    }
}

/* Write the rows that limit what stage t holds to what the stage before held or ran. */
static void
write_holds(struct lp *lp, uint32_t t)
{
    for (uint32_t i = 0; i < t && i < lp->count; i++) {
        if (!has_held(lp, t, i))
            continue;
        put(lp, " hold_%u_%u: S_%u_%u", t, i, t, i);
        if (has_held(lp, t - 1, i))
            put(lp, " - S_%u_%u", t - 1, i);
        if (has_run(lp, t - 1, i))
            put(lp, " - R_%u_%u", t - 1, i);
        put(lp, " <= 0\n");
    }
}

/* Write the sum of hazards without the constant 1. Returns H, the largest sum possible. */
static uint32_t
write_hazards(struct lp *lp, uint32_t t, uint32_t i, uint32_t k)
{
    const struct dry_graph *g = lp->g;
    uint32_t most = 1;
    put(lp, " - R_%u_%u", t, k);
    if (has_held(lp, t + 1, i)) {
        put(lp, " + S_%u_%u", t + 1, i);
        most++;
    }
    for (uint32_t e = g->user_first[i]; e < g->user_first[i + 1]; e++) {
        uint32_t user = g->users[e];
        if (user <= k || !has_run(lp, t, user))
            continue;
        put(lp, "\n  + R_%u_%u", t, user);
        most++;
    }
    return most;
}

static void
write_free(struct lp *lp, uint32_t t, uint32_t i, uint32_t k)
{
    put(lp, " some_%u_%u_%u: F_%u_%u_%u", t, i, k, t, i, k);
    uint32_t most = write_hazards(lp, t, i, k);
    put(lp, " >= 0\n none_%u_%u_%u: %u F_%u_%u_%u", t, i, k, most, t, i, k);
    write_hazards(lp, t, i, k);
    put(lp, " <= %u\n", most - 1);
}

/* Write the rows of what may be freed after k: its own value and its inputs. */
static void
write_frees(struct lp *lp, uint32_t t, uint32_t k)
{
    const struct dry_graph *g = lp->g;
    if (!has_run(lp, t, k))
        return;
    write_free(lp, t, k, k);
    for (uint32_t e = g->input_first[k]; e < g->input_first[k + 1]; e++)
        write_free(lp, t, g->inputs[e], k);
}

static void
write_freed_bytes(struct lp *lp, uint32_t t, uint32_t k)
{
    const struct dry_graph *g = lp->g;
    if (!has_run(lp, t, k))
        return;
    put(lp, "\n  + %" PRIu64 " F_%u_%u_%u", get_bytes(lp, k), t, k, k);
    for (uint32_t e = g->input_first[k]; e < g->input_first[k + 1]; e++)
        put(lp, "\n  + %" PRIu64 " F_%u_%u_%u", get_bytes(lp, g->inputs[e]), t,
            g->inputs[e], k);
}

static void
write_memory(struct lp *lp, uint32_t t, uint32_t k, uint64_t budget)
{
    uint64_t tmp = dryi_graph_at(lp->g, k)->tmp_bytes / lp->unit;
    put(lp, " mem_%u_%u: U_%u_%u", t, k, t, k);
    if (has_run(lp, t, k))
        put(lp, " - %" PRIu64 " R_%u_%u", get_bytes(lp, k), t, k);
    for (uint32_t i = 0; k == 0 && i < t && i < lp->count; i++)
        put(lp, "\n  - %" PRIu64 " S_%u_%u", get_bytes(lp, i), t, i);
    if (k > 0) {
        put(lp, " - U_%u_%u", t, k - 1);
        write_freed_bytes(lp, t, k - 1);
    }
    put(lp, " = 0\n max_%u_%u: U_%u_%u", t, k, t, k);
    if (has_run(lp, t, k))
        put(lp, " + %" PRIu64 " R_%u_%u", tmp, t, k);
    put(lp, " <= %" PRIu64 "\n", budget / lp->unit);
}

static void
write_stage(struct lp *lp, uint32_t t, uint64_t budget)
{
    if (t < lp->count)
        put(lp, " first_%u: R_%u_%u = 1\n", t, t, t);
    write_holds(lp, t);
    for (uint32_t k = 0; k <= t && k < lp->count; k++) {
        if (has_run(lp, t, k))
            write_inputs(lp, t, k);
        write_frees(lp, t, k);
        write_memory(lp, t, k, budget);
    }
}

/* --- variables ------------------------------------------------------------------------------- */

static void
write_binaries(struct lp *lp)
{
    const struct dry_graph *g = lp->g;
    put(lp, "Binary\n");
    for (uint32_t t = 0; t <= lp->stages; t++) {
        for (uint32_t k = 0; k <= t && k < lp->count; k++) {
            if (has_held(lp, t, k))
                put(lp, " S_%u_%u\n", t, k);
            if (t == lp->stages || !has_run(lp, t, k))
                continue;
            put(lp, " R_%u_%u\n F_%u_%u_%u\n", t, k, t, k, k);
            for (uint32_t e = g->input_first[k]; e < g->input_first[k + 1]; e++)
                put(lp, " F_%u_%u_%u\n", t, g->inputs[e], k);
        }
    }
    put(lp, "End\n");
}

static void
write_outputs(struct lp *lp)
{
    write_holds(lp, lp->stages);
    for (uint32_t i = 0; i < lp->count; i++) {
        if (is_output(lp, i))
            put(lp, " out_%u: S_%u_%u = 1\n", i, lp->stages, i);
    }
}

enum dry_status
dry_graph_write_lp(const struct dry_graph *graph, uint64_t budget_bytes,
                   const struct dry_graph_writer *writer, struct dry_error *err)
{
    if (!graph->is_sealed || graph->count == 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "the graph is not sealed, or empty");
    if (graph->count > NODES_MAX)
        return dryi_fail(err, DRY_ERR_LIMIT, "%zu nodes, more than %u", graph->count,
                         NODES_MAX);
    struct lp lp = {.g = graph, .writer = writer, .count = (uint32_t)graph->count};
    lp.stages = lp.count;
    for (uint32_t rank = 0; rank < lp.count; rank++)
        lp.stages = is_output(&lp, rank) ? lp.count + 1 : lp.stages;
    if (budget_bytes > graph->bytes_sum)
        budget_bytes = graph->bytes_sum;
    lp.unit = find_unit(graph);
    put(&lp, "\\ %u nodes, sizes in units of %" PRIu64 " bytes\n", lp.count, lp.unit);
    write_goal(&lp);
    for (uint32_t t = 0; t < lp.stages && !lp.is_stopped; t++)
        write_stage(&lp, t, budget_bytes);
    write_outputs(&lp);
    write_binaries(&lp);
    if (lp.is_stopped)
        return dryi_fail(err, DRY_ERR_CANCELLED, "the writer said stop");
    return DRY_OK;
}
