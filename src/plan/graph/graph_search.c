/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The local search over sequences.
 *
 * Any sequence with first runs in the order is a valid plan: what a run reads is held from the run
 * that made it last. Only the peak can be too high, so two moves suffice. One runs a node again
 * before the next use of its value, which frees its bytes since the previous use. The other
 * removes a rerun.
 *
 * Repair: while the sequence exceeds the budget, relieve its peak. The candidates are the values
 * that are held but not used at the peak. The best has the rerun with the least time for the bytes
 * and runs it relieves. Inputs of it that are gone by then are rerun too, or held for longer if
 * they fit. If the value relieves more bytes, small inputs are held even over the peak.
 *
 * A round removes some neighbouring reruns, repairs with randomized scores, and removes reruns
 * that are now needless. It keeps the result if that takes no more time, or slightly more in early
 * rounds (record-to-record travel, Dueck 1993). Some rounds start from the order again. A random
 * limit holds how often a node may run: otherwise values that are dropped again and again add runs
 * that exceed the budget.
 *
 * Cost: a pass over the whole sequence for each rerun; VISITS_PER_STEP bounds the total.
 */
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "base/search.h"
#include "plan/graph/graph_state.h"

#define NOBODY UINT32_MAX
#define VISITS_PER_STEP UINT64_C(100000) /* average over all rounds */
#define VISITS_PER_ROUND UINT64_C(20000000)
#define VISITS_PER_START UINT64_C(100000000)
#define CLOSURE_MAX 64u /* nodes rerun for one value */

struct improver {
    struct dryi_graph_search *s;
    const struct dry_graph *g;
    struct dry_memory memory;
    uint64_t budget, visits, visits_max, restart_visits;
    uint64_t random;
    struct dryi_graph_runs current, work;
    uint64_t current_ns;
    struct dryi_sequence_needs needs; /* needs of `work`; its arrays are by run */
    size_t needed_capacity, last_use_capacity, over_capacity, at_capacity;
    uint32_t *over; /* number of earlier runs that exceed the budget; one more element */
    /* at[first[rank]] to at[first[rank + 1] - 1]: the rank's runs */
    uint32_t *first, *at;
    /* Uses around the peak, indexed by rank. */
    uint32_t *before, *next; /* before: the previous use or run; next: the next use */
    uint8_t *is_member;      /* scratch flags, all 0 between uses */
    uint32_t members[CLOSURE_MAX], best_members[CLOSURE_MAX];
    size_t member_count, best_count;
    /* Run before which the members are inserted; NOBODY: no candidate. */
    uint32_t best_at;
    double best_score;
    double noise; /* scores rise by up to this fraction, at random */
    /*
     * Inputs up to held_max bytes are held over the peak instead of rerun. In each round,
     * held_max is `quarters` quarters of the bytes of the rerun value.
     */
    uint64_t held_max;
    unsigned quarters;
    unsigned exponent; /* weight of the number of runs relieved */
    /* Limit of one node's runs: more would only add runs that exceed the budget. */
    uint32_t runs_max;
};

static uint64_t
random_below(struct improver *im, uint64_t limit)
{
    im->random += UINT64_C(0x9e3779b97f4a7c15);
    return dryi_mix64(im->random) % limit;
}

/* --- needs and indices ----------------------------------------------------------------------- */

static bool
grow_arrays(struct improver *im, size_t runs)
{
    const struct dry_memory *m = &im->memory;
    return dryi_memory_grow(m, &im->needs.needed, &im->needed_capacity, runs,
                            sizeof *im->needs.needed) &&
           dryi_memory_grow(m, &im->needs.last_use, &im->last_use_capacity, runs,
                            sizeof *im->needs.last_use) &&
           dryi_memory_grow(m, &im->over, &im->over_capacity, runs + 1,
                            sizeof *im->over) &&
           dryi_memory_grow(m, &im->at, &im->at_capacity, runs, sizeof *im->at);
}

static enum dry_status
refresh_needs(struct improver *im)
{
    if (!grow_arrays(im, im->work.count))
        return DRY_ERR_MEMORY;
    dryi_graph_compute_needs(im->g, im->work.runs, im->work.count, &im->needs);
    im->visits += im->work.count * 3;
    return DRY_OK;
}

/* Index the runs of each rank, and count the runs that exceed the budget. */
static void
index_runs(struct improver *im)
{
    const struct dryi_graph_runs *w = &im->work;
    memset(im->first, 0, (im->g->count + 1) * sizeof *im->first);
    im->over[0] = 0;
    for (size_t p = 0; p < w->count; p++) {
        im->first[w->runs[p] + 1]++;
        im->over[p + 1] = im->over[p] + (im->needs.needed[p] > im->budget);
    }
    for (size_t rank = 0; rank < im->g->count; rank++)
        im->first[rank + 1] += im->first[rank];
    for (size_t p = 0; p < w->count; p++)
        im->at[im->first[w->runs[p]]++] = (uint32_t)p;
    for (size_t rank = im->g->count; rank > 0; rank--)
        im->first[rank] = im->first[rank - 1];
    im->first[0] = 0;
    im->visits += 3 * w->count + 2 * im->g->count;
}

/* Return the last run of a rank before `place`; NOBODY: none. */
static uint32_t
run_before(const struct improver *im, uint32_t rank, uint32_t place)
{
    const uint32_t *runs = im->at + im->first[rank];
    size_t before = dryi_count_below(runs, im->first[rank + 1] - im->first[rank],
                                     sizeof *runs, 0, place);
    return before > 0 ? runs[before - 1] : NOBODY;
}

static void
note_use(uint32_t *uses, uint32_t rank, uint32_t place)
{
    if (uses[rank] == NOBODY)
        uses[rank] = place;
}

/* Find the uses before and after the peak, except of values that the peak run reads or makes. */
static void
find_uses(struct improver *im)
{
    const struct dry_graph *g = im->g;
    uint32_t worst = im->needs.peak_run, count = (uint32_t)im->work.count;
    memset(im->before, 0xff, g->count * sizeof *im->before);
    memset(im->next, 0xff, g->count * sizeof *im->next);
    for (uint32_t p = worst + 1; p < count; p++) {
        uint32_t rank = im->work.runs[p];
        for (uint32_t e = g->input_first[rank]; e < g->input_first[rank + 1]; e++)
            note_use(im->next, g->inputs[e], p);
    }
    for (uint32_t p = worst; p-- > 0;) {
        uint32_t rank = im->work.runs[p];
        note_use(im->before, rank, p);
        for (uint32_t e = g->input_first[rank]; e < g->input_first[rank + 1]; e++)
            note_use(im->before, g->inputs[e], p);
    }
    uint32_t user = im->work.runs[worst];
    im->before[user] = NOBODY;
    for (uint32_t e = g->input_first[user]; e < g->input_first[user + 1]; e++)
        im->before[g->inputs[e]] = NOBODY;
    im->visits += 3 * (uint64_t)count;
}

/* --- cost of a rerun ---------------------------------------------------------------------------- */

/* Return whether a value could be held over all runs from `from` to `to`. */
static bool
has_room(struct improver *im, uint32_t from, uint32_t to, uint64_t bytes)
{
    if (im->over[to] > im->over[from] || bytes > im->budget)
        return false;
    im->visits += to - from;
    for (uint32_t p = from; p < to; p++) {
        if (im->needs.needed[p] > im->budget - bytes)
            return false;
    }
    return true;
}

enum fate { FATE_THERE, FATE_HELD, FATE_HELD_OVER, FATE_RERUN };

/* Decide what happens to an input of a node that is rerun before `place`. */
static enum fate
get_fate(struct improver *im, uint32_t input, uint32_t place)
{
    const struct dry_graph_node *node = dryi_graph_at(im->g, input);
    uint32_t made = run_before(im, input, place);
    uint32_t end = im->needs.last_use[made];
    im->visits += 8;
    if (end >= place)
        return FATE_THERE;
    if (end >= im->needs.peak_run &&
        (node->is_fixed || has_room(im, end, place, node->bytes)))
        return FATE_HELD;
    if (made > im->needs.peak_run)
        return node->is_fixed ? FATE_HELD : FATE_RERUN;
    return node->is_fixed || node->bytes <= im->held_max ? FATE_HELD_OVER : FATE_RERUN;
}

/*
 * Collect in `members` all nodes to rerun with `rank` before `place`. *held: bytes held
 * over the peak for them. Returns false if there are more than CLOSURE_MAX.
 */
static bool
close_over(struct improver *im, uint32_t rank, uint32_t place, uint64_t *held)
{
    const struct dry_graph *g = im->g;
    bool is_fine = true;
    im->member_count = 1;
    im->members[0] = rank;
    im->is_member[rank] = 1;
    *held = 0;
    for (size_t k = 0; k < im->member_count && is_fine; k++) {
        uint32_t m = im->members[k];
        for (uint32_t e = g->input_first[m]; e < g->input_first[m + 1] && is_fine; e++) {
            uint32_t input = g->inputs[e];
            if (im->is_member[input])
                continue;
            enum fate fate = get_fate(im, input, place);
            if (fate == FATE_HELD_OVER)
                *held = dryi_add_saturating(*held, dryi_graph_at(g, input)->bytes);
            if (fate != FATE_RERUN)
                continue;
            is_fine = im->member_count < CLOSURE_MAX;
            if (is_fine)
                im->members[im->member_count++] = input;
            im->is_member[input] = is_fine;
        }
    }
    for (size_t k = 0; k < im->member_count; k++)
        im->is_member[im->members[k]] = 0;
    return is_fine;
}

static double
power(double x, unsigned exponent)
{
    double y = 1.0;
    for (; exponent > 0; exponent--)
        y *= x;
    return y;
}

/* Return the score: time for bytes and runs relieved, randomized. The least score wins. */
static double
compute_score(struct improver *im, uint32_t rank, uint32_t place, uint64_t relief)
{
    uint64_t time = 0, excess = im->needs.peak - im->budget;
    for (size_t k = 0; k < im->member_count; k++)
        time = dryi_add_saturating(time, dryi_graph_at(im->g, im->members[k])->time_ns);
    uint32_t places = im->over[place] - im->over[im->before[rank] + 1];
    double score = (1.0 + (double)time) / (double)(relief < excess ? relief : excess) /
                   power((double)places, im->exponent);
    double chance = (double)random_below(im, 1 << 20) / (1 << 20);
    return score * (1.0 + im->noise * chance);
}

/* Keep `members` if their score is the best so far. */
static void
weigh(struct improver *im, uint32_t rank, uint32_t place)
{
    uint64_t held, bytes = dryi_graph_at(im->g, rank)->bytes;
    if (!close_over(im, rank, place, &held) || held >= bytes)
        return;
    double score = compute_score(im, rank, place, bytes - held);
    if (im->best_at != NOBODY && score >= im->best_score)
        return;
    im->best_at = place;
    im->best_score = score;
    im->best_count = im->member_count;
    memcpy(im->best_members, im->members, im->member_count * sizeof *im->members);
}

/* Consider a rerun whose inputs are rerun too, and one that holds the small inputs instead. */
static void
consider(struct improver *im, uint32_t rank)
{
    const struct dry_graph_node *node = dryi_graph_at(im->g, rank);
    uint32_t worst = im->needs.peak_run, made = run_before(im, rank, worst);
    if (node->is_fixed || node->bytes == 0 || made == NOBODY ||
        im->first[rank + 1] - im->first[rank] >= im->runs_max ||
        im->needs.last_use[made] <= worst)
        return;
    uint32_t place = im->next[rank];
    if (place == NOBODY || place > im->needs.last_use[made])
        place = im->needs.last_use[made]; /* an output without further readers */
    im->held_max = 0;
    weigh(im, rank, place);
    im->held_max = node->bytes / 4 * im->quarters;
    if (im->quarters)
        weigh(im, rank, place);
}

static void
sort_members(uint32_t *members, size_t count)
{
    for (size_t k = 1; k < count; k++) {
        uint32_t rank = members[k];
        size_t at = k;
        for (; at > 0 && members[at - 1] > rank; at--)
            members[at] = members[at - 1];
        members[at] = rank;
    }
}

/* --- repair -------------------------------------------------------------------------------------- */

/* Hold one value less at the peak. *is_found: there was a candidate. */
static enum dry_status
relieve(struct improver *im, bool *is_found)
{
    index_runs(im);
    find_uses(im);
    im->best_at = NOBODY;
    for (uint32_t rank = 0; rank < im->g->count; rank++) {
        if (im->before[rank] != NOBODY)
            consider(im, rank);
    }
    im->visits += im->g->count;
    *is_found = im->best_at != NOBODY;
    if (!*is_found)
        return DRY_OK;
    sort_members(im->best_members, im->best_count);
    for (size_t k = im->best_count; k-- > 0;) {
        if (!dryi_graph_runs_insert(&im->memory, &im->work, im->best_at,
                                    im->best_members[k]))
            return DRY_ERR_MEMORY;
    }
    return DRY_OK;
}

/* Relieve peaks until `work` is within the budget; *is_found: it is. */
static enum dry_status
repair(struct improver *im, bool *is_found)
{
    size_t count_max = (size_t)DRYI_RUNS_PER_NODE * im->g->count;
    enum dry_status status = refresh_needs(im);
    *is_found = true;
    while (status == DRY_OK && *is_found && im->needs.peak > im->budget) {
        *is_found = im->work.count < count_max && im->visits < im->visits_max &&
                    dryi_graph_go_on(im->s);
        if (*is_found)
            status = relieve(im, is_found);
        if (status == DRY_OK)
            status = refresh_needs(im);
    }
    return status;
}

/* Remove needless reruns, from the last to the first. Requires that `work` is within the budget. */
static enum dry_status
clean(struct improver *im)
{
    enum dry_status status = DRY_OK;
    index_runs(im);
    for (size_t p = im->work.count; p-- > 0 && status == DRY_OK;) {
        uint32_t rank = im->work.runs[p];
        if (im->at[im->first[rank]] == p || im->visits >= im->visits_max ||
            !dryi_graph_go_on(im->s))
            continue;
        dryi_graph_runs_remove(&im->work, p);
        dryi_graph_compute_needs(im->g, im->work.runs, im->work.count, &im->needs);
        im->visits += 3 * im->work.count;
        if (im->needs.peak > im->budget &&
            !dryi_graph_runs_insert(&im->memory, &im->work, p, rank))
            status = DRY_ERR_MEMORY;
    }
    return status == DRY_OK ? refresh_needs(im) : status;
}

/* --- starts ---------------------------------------------------------------------------------------- */

/*
 * Offer `work`. Continue from it if it takes no more time than `current`, or at most
 * `slack` more than the best. Requires that `work` is within the budget.
 */
static enum dry_status
accept(struct improver *im, uint64_t slack)
{
    uint64_t time = im->needs.time;
    enum dry_status status = dryi_graph_offer(im->s, &im->work, time, DRY_GRAPH_SEARCH);
    if (status != DRY_OK || (im->current_ns != UINT64_MAX && time > im->current_ns &&
                             time - im->s->best_ns > slack))
        return status;
    im->current_ns = time;
    return dryi_graph_runs_copy(&im->memory, &im->current, &im->work) ? DRY_OK
                                                                      : DRY_ERR_MEMORY;
}

static enum dry_status
clean_and_accept(struct improver *im, uint64_t slack)
{
    enum dry_status status = clean(im);
    return status == DRY_OK ? accept(im, slack) : status;
}

static enum dry_status
start_from_order(struct improver *im, bool *is_found)
{
    im->work.count = 0;
    for (uint32_t rank = 0; rank < im->g->count; rank++) {
        if (!dryi_graph_runs_insert(&im->memory, &im->work, im->work.count, rank))
            return DRY_ERR_MEMORY;
    }
    return repair(im, is_found);
}

static enum dry_status
start(struct improver *im)
{
    enum dry_status status = DRY_OK;
    bool is_found;
    for (unsigned n = 0; n < 6 && status == DRY_OK && dryi_graph_go_on(im->s); n++) {
        im->exponent = n % 3;
        im->runs_max = n < 3 ? 2 : 2 * DRYI_RUNS_PER_NODE;
        im->visits_max = im->visits + VISITS_PER_START;
        status = start_from_order(im, &is_found);
        if (status == DRY_OK && is_found)
            status = clean_and_accept(im, 0);
    }
    for (unsigned v = 0;
         v < DRYI_EVICT_VARIANTS && status == DRY_OK && dryi_graph_go_on(im->s); v++) {
        im->visits_max = im->visits + VISITS_PER_START;
        status = dryi_graph_evict(im->s, v, &im->work, &is_found);
        if (status == DRY_OK && is_found)
            status = refresh_needs(im);
        if (status == DRY_OK && is_found)
            status = clean_and_accept(im, 0);
    }
    return status;
}

/* --- rounds ------------------------------------------------------------------------------------------ */

/* Remove up to `count` consecutive reruns, starting from a random one. */
static void
destroy(struct improver *im, uint64_t count)
{
    uint64_t reruns = im->work.count - im->g->count;
    uint64_t first = random_below(im, reruns), seen = 0;
    size_t kept = 0;
    memset(im->is_member, 0, im->g->count);
    for (size_t p = 0; p < im->work.count; p++) {
        uint32_t rank = im->work.runs[p];
        bool is_rerun = im->is_member[rank];
        bool is_out = is_rerun && seen >= first && seen < first + count;
        im->is_member[rank] = 1;
        seen += is_rerun;
        if (!is_out)
            im->work.runs[kept++] = rank;
    }
    im->work.count = kept;
    memset(im->is_member, 0, im->g->count);
}

/*
 * Start from the order again, for up to 11 % less than the budget: the different sequence
 * leads to a different optimum.
 */
static enum dry_status
restart(struct improver *im, bool *is_found)
{
    uint64_t visits = im->visits, budget = im->budget;
    if (im->current_ns != UINT64_MAX)
        im->budget -= budget / 100 * random_below(im, 12);
    enum dry_status status = start_from_order(im, is_found);
    im->budget = budget;
    im->restart_visits += im->visits - visits;
    return status;
}

/* Make a variation of `current` in `work`; *is_found: it is within the budget. */
static enum dry_status
vary(struct improver *im, bool *is_found)
{
    bool is_new = random_below(im, 16) == 0 && im->restart_visits * 4 <= im->visits;
    if (im->current_ns == UINT64_MAX || is_new)
        return restart(im, is_found);
    uint64_t reruns = im->current.count - im->g->count;
    uint64_t most = 2 + reruns / (random_below(im, 4) ? 16 : 4);
    if (!dryi_graph_runs_copy(&im->memory, &im->work, &im->current))
        return DRY_ERR_MEMORY;
    destroy(im, 1 + random_below(im, most));
    return repair(im, is_found);
}

static enum dry_status
run_round(struct improver *im, uint64_t step)
{
    uint64_t steps = im->s->options.steps, best = im->s->best_ns;
    bool is_found = false;
    im->noise = (double)(1 + random_below(im, 4)) * 0.25;
    im->exponent = (unsigned)random_below(im, 3);
    im->runs_max = 2u << random_below(im, 5);
    im->quarters = (unsigned)random_below(im, 4);
    im->visits_max = im->visits + VISITS_PER_ROUND;
    enum dry_status status = vary(im, &is_found);
    if (status != DRY_OK || !is_found)
        return status;
    uint64_t slack = best == UINT64_MAX ? 0 : best / 100 / steps * (steps - step);
    if (im->needs.time > dryi_add_saturating(im->current_ns, im->current_ns / 32))
        return DRY_OK;
    return clean_and_accept(im, slack);
}

static enum dry_status
run_rounds(struct improver *im)
{
    struct dryi_graph_search *s = im->s;
    uint64_t visits = im->visits;
    enum dry_status status = DRY_OK;
    for (uint64_t step = 0; step < s->options.steps && status == DRY_OK; step++) {
        if ((im->visits - visits) / VISITS_PER_STEP >= s->options.steps)
            break;
        status = run_round(im, step);
        if (s->is_cancelled) /* cancelled within the first round */
            break;
        s->steps = step + 1;
        if (status == DRY_OK && s->options.progress &&
            s->options.progress(s->options.progress_self, s->steps, s->best_ns)) {
            s->is_cancelled = true;
            break;
        }
        if (s->best_ns == s->bound_ns)
            break;
    }
    return status;
}

/* --- the frame ------------------------------------------------------------------------------------------ */

static void
finish(struct improver *im)
{
    const struct dry_memory *m = &im->memory;
    size_t count = im->g->count;
    dryi_graph_runs_finish(m, &im->work);
    dryi_graph_runs_finish(m, &im->current);
    dryi_memory_free(m, im->at, im->at_capacity, sizeof *im->at);
    dryi_memory_free(m, im->over, im->over_capacity, sizeof *im->over);
    dryi_memory_free(m, im->needs.last_use, im->last_use_capacity,
                     sizeof *im->needs.last_use);
    dryi_memory_free(m, im->needs.needed, im->needed_capacity, sizeof *im->needs.needed);
    dryi_memory_free(m, im->is_member, count, sizeof *im->is_member);
    dryi_memory_free(m, im->next, count, sizeof *im->next);
    dryi_memory_free(m, im->before, count, sizeof *im->before);
    dryi_memory_free(m, im->first, count + 1, sizeof *im->first);
    dryi_memory_free(m, im->needs.until, count, sizeof *im->needs.until);
    dryi_memory_free(m, im->needs.is_wanted, count, 1);
}

enum dry_status
dryi_graph_improve(struct dryi_graph_search *s)
{
    struct improver im = {.s = s,
                          .g = s->graph,
                          .memory = s->memory,
                          .budget = s->options.budget_bytes,
                          .random = s->options.seed,
                          .current_ns = UINT64_MAX};
    const struct dry_memory *m = &im.memory;
    size_t count = im.g->count;
    im.needs.is_wanted = dryi_memory_zalloc(m, count, 1);
    im.needs.until = dryi_memory_zalloc(m, count, sizeof *im.needs.until);
    im.first = dryi_memory_zalloc(m, count + 1, sizeof *im.first);
    im.before = dryi_memory_zalloc(m, count, sizeof *im.before);
    im.next = dryi_memory_zalloc(m, count, sizeof *im.next);
    im.is_member = dryi_memory_zalloc(m, count, sizeof *im.is_member);
    enum dry_status status = DRY_ERR_MEMORY;
    if (im.needs.is_wanted && im.needs.until && im.first && im.before && im.next &&
        im.is_member)
        status = start(&im);
    if (status == DRY_OK && !s->is_cancelled)
        status = run_rounds(&im);
    finish(&im);
    return status;
}
