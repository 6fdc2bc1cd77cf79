/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Exact search: is there a packing of height `limit` or less?
 *
 * Packings are built from the bottom, each block on top of those it overlaps, as schedules are in a
 * job shop (Giffler and Thompson, 1960). Take the unplaced life whose end could be lowest. It, or a
 * life that overlaps it and could begin below that end, must be placed at its lowest offset.
 * Otherwise the space below would be wasted. So each decision has few candidates. For one of them
 * it decides: place it at its lowest offset, or postpone it, so that it goes on top of another.
 *
 * The unplaced lives must fit. In a section they are stacked: for each offset, the lives that
 * cannot begin lower must fit between it and the limit. A life cannot be the lowest of a section if
 * the others would not fit above it. Its lowest offset is then lifted to the lowest end of the
 * others. This is repeated until no offset changes.
 *
 * Sections that no unplaced life connects fail independently. A failure returns to the last
 * decision about a life in the failed range, past all decisions between (backjumping).
 *
 * Invariant: at each decision, lowest[i] of an unplaced life is at least the end of every placed
 * life that it overlaps. No packing that extends the placed lives puts life i lower.
 *
 * Cost: `effort` counts visits to lives. Memory: O(pairs of life and section + decisions).
 */
#include "place/offline/offline_inside.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"

#define INCIDENCES_MAX                                                                   \
    (UINT64_C(1) << 22) /* pairs of life and section; above that, no search */
/* Length of the shortest run, in visits per pair of life and section. */
#define RUN_VISITS 128u
#define FIRST_RUNS 16u  /* runs at the wanted height before other limits are tried */
#define FIRST_LENGTH 4u /* length of each of these, in shortest runs */
#define FIRST_SHARE 8u  /* these runs get at most 1/8 of the effort */
#define SLICES 64u      /* each limit of the first round gets 1/64 of the effort */
#define LIMITS 16u      /* a round ends when the gap is below 1/16 of the whole */
#define PASSES 4u       /* propagations per section; times 5 in 4 of every 8 runs */
#define NOBODY UINT32_MAX

struct range {
    uint32_t lo, hi;
};

struct decision {
    uint32_t life;
    bool is_postponed;
    size_t trail;
    struct range failed; /* sections where placing the life failed, if postponed */
};

struct lift {
    uint64_t lowest; /* units; lowest[life] before the lift */
    uint32_t life;
};

#define UNKNOWN UINT64_MAX

enum outcome { OUTCOME_FOUND, OUTCOME_NONE, OUTCOME_STOPPED, OUTCOME_MEMORY };

struct exact {
    struct dryi_problem *p;
    /* Greatest common divisor of all sizes, and so of all relevant heights. */
    uint64_t unit;
    uint64_t limit;
    uint64_t effort; /* remaining visits of this run */
    uint64_t runs;   /* runs so far; seeds the ranks */
    uint64_t passes; /* limit on propagations, per section */
    struct dryi_ranks ranks;

    uint32_t *first; /* begin of each section's lives in `alive`; one more entry */
    uint32_t *alive; /* lives by section, unplaced ones first */
    uint32_t *open;  /* unplaced lives in each section */
    size_t alive_count;
    uint32_t *row; /* begin of each life's entries in `at` */
    uint32_t *at;  /* position in `alive`, per life and section */
    /* All lives, unplaced ones first; and the position of each. */
    uint32_t *lives, *lives_at;
    uint32_t open_count;
    /* Units, by life; unplaced: lower bound of its offset; placed: its offset. */
    uint64_t *lowest;
    uint64_t *remaining; /* units, by section: sum of unplaced sizes */
    /* Units, by section: lower bound of `lowest` of its unplaced lives, or UNKNOWN. */
    uint64_t *head;
    uint32_t *queue; /* sections to propagate, each at most once */
    uint8_t *is_queued;
    size_t queue_count;
    uint32_t *crossing;      /* unplaced lives alive across each section's begin */
    uint64_t *heads, *sizes; /* one section's lives, sorted by head */

    struct lift *trail;
    size_t trail_count, trail_capacity;
    struct decision *decisions;
    size_t decision_count, decision_capacity;
    bool has_memory;
};

/* --- state ------------------------------------------------------------------------------ */

static void
spend(struct exact *x, uint64_t visits)
{
    x->effort -= x->effort < visits ? x->effort : visits;
}

static void
enqueue(struct exact *x, uint32_t lo, uint32_t hi)
{
    DRYI_ASSERT_SLOW(lo < hi && hi <= x->p->section_count);
    for (uint32_t s = lo; s < hi; s++) {
        if (!x->is_queued[s]) {
            x->is_queued[s] = 1;
            x->queue[x->queue_count++] = s;
        }
    }
}

static void
lift(struct exact *x, uint32_t life, uint64_t lowest)
{
    DRYI_ASSERT_SLOW(x->lives_at[life] < x->open_count);
    if (x->lowest[life] >= lowest)
        return;
    if (!dryi_memory_grow(&x->p->memory, &x->trail, &x->trail_capacity,
                          x->trail_count + 1, sizeof *x->trail)) {
        x->has_memory = false;
        return;
    }
    x->trail[x->trail_count++] = (struct lift){x->lowest[life], life};
    x->lowest[life] = lowest;
    enqueue(x, x->p->lo[life], x->p->hi[life]);
}

/*
 * Mark a life as placed: swap it past the unplaced ones in each of its sections' lists and in the
 * list of all lives.
 */
static void
close(struct exact *x, uint32_t life)
{
    DRYI_ASSERT_SLOW(x->lives_at[life] < x->open_count &&
                     x->lives[x->lives_at[life]] == life);
    const struct dryi_problem *p = x->p;
    for (uint32_t s = p->lo[life]; s < p->hi[life]; s++) {
        DRYI_ASSERT_SLOW(x->open[s] > 0 && x->remaining[s] >= p->sizes[life]);
        uint32_t to = x->first[s] + --x->open[s], other = x->alive[to];
        uint32_t *at = &x->at[x->row[life] + s - p->lo[life]];
        x->alive[*at] = other;
        x->at[x->row[other] + s - p->lo[other]] = *at;
        x->alive[to] = life;
        *at = to;
        x->remaining[s] -= p->sizes[life];
    }
    uint32_t other = x->lives[--x->open_count];
    x->lives[x->lives_at[life]] = other;
    x->lives_at[other] = x->lives_at[life];
    x->lives[x->open_count] = life;
    x->lives_at[life] = x->open_count;
}

/* Undo close() of the life closed last. The lists keep their order, so only counts change. */
static void
reopen(struct exact *x, uint32_t life)
{
    const struct dryi_problem *p = x->p;
    DRYI_ASSERT(x->lives[x->open_count] == life);
    x->open_count++;
    for (uint32_t s = p->lo[life]; s < p->hi[life]; s++) {
        x->open[s]++;
        x->remaining[s] += p->sizes[life];
        x->head[s] = UNKNOWN;
    }
}

static void
place(struct exact *x, uint32_t life)
{
    const struct dryi_problem *p = x->p;
    uint64_t end = x->lowest[life] + p->sizes[life];
    close(x, life);
    enqueue(x, p->lo[life], p->hi[life]);
    for (uint32_t s = p->lo[life]; s < p->hi[life]; s++) {
        for (uint32_t k = x->first[s]; k < x->first[s] + x->open[s]; k++)
            lift(x, x->alive[k], end);
        spend(x, x->open[s] + 1);
    }
}

static void
undo(struct exact *x, const struct decision *d)
{
    DRYI_ASSERT_SLOW(d->trail <= x->trail_count);
    const struct dryi_problem *p = x->p;
    while (x->trail_count > d->trail) {
        const struct lift *l = &x->trail[--x->trail_count];
        x->lowest[l->life] = l->lowest;
        for (uint32_t s = p->lo[l->life]; s < p->hi[l->life]; s++)
            x->head[s] = UNKNOWN;
    }
    if (!d->is_postponed)
        reopen(x, d->life);
}

/* --- bounds ----------------------------------------------------------------------------- */

/* The lowest end among a section's unplaced lives, with its owner, and the second lowest. */
struct ends {
    uint64_t lowest, second;
    uint32_t owner;
};

static struct ends
find_ends(struct exact *x, uint32_t s, uint32_t *count)
{
    DRYI_ASSERT_SLOW(x->open[s] <= x->first[s + 1] - x->first[s]);
    struct ends e = {UINT64_MAX, UINT64_MAX, NOBODY};
    uint64_t moves = 0;
    *count = 0;
    for (uint32_t k = x->first[s]; k < x->first[s] + x->open[s]; k++) {
        uint32_t i = x->alive[k];
        uint64_t head = x->lowest[i], size = x->p->sizes[i], end = head + size;
        if (end < e.lowest) {
            e.second = e.lowest;
            e.lowest = end;
            e.owner = i;
        } else if (end < e.second) {
            e.second = end;
        }
        uint32_t at = (*count)++;
        for (; at > 0 && x->heads[at - 1] > head; at--) {
            x->heads[at] = x->heads[at - 1];
            x->sizes[at] = x->sizes[at - 1];
            moves++;
        }
        x->heads[at] = head;
        x->sizes[at] = size;
    }
    x->head[s] = *count ? x->heads[0] : UNKNOWN;
    spend(x, *count + UINT64_C(1));
    if (moves > UINT64_C(16) * *count) /* sorting dominates in a crowded section */
        spend(x, moves / 32);
    return e;
}

/* Lift the lives of a section as far as the limit requires. False: they cannot fit. */
static bool
narrow(struct exact *x, uint32_t s)
{
    uint32_t count;
    struct ends ends = find_ends(x, s, &count);
    uint64_t sum = 0;
    for (uint32_t k = count; k-- > 0;) {
        sum += x->sizes[k];
        if (x->heads[k] + sum > x->limit)
            return false;
    }
    DRYI_ASSERT_SLOW(sum == x->remaining[s]);
    for (uint32_t k = x->first[s]; k < x->first[s] + count && count > 1; k++) {
        uint32_t i = x->alive[k];
        if (x->lowest[i] + x->remaining[s] > x->limit)
            lift(x, i, i == ends.owner ? ends.second : ends.lowest);
    }
    return true;
}

/*
 * Narrow queued sections until none changes, or for x->passes visits per section: lives can lift
 * each other by small steps for long. Returns a section that fails, or NOBODY.
 */
static uint32_t
propagate(struct exact *x)
{
    uint32_t failed = NOBODY;
    uint64_t visits = 0, most = x->passes * x->p->section_count;
    while (x->queue_count) {
        uint32_t s = x->queue[--x->queue_count];
        DRYI_ASSERT_SLOW(x->is_queued[s]);
        x->is_queued[s] = 0;
        if (failed == NOBODY && visits++ < most && x->remaining[s] > 0 && !narrow(x, s))
            failed = s;
    }
    if (failed != NOBODY)
        dryi_ranks_fail(&x->ranks, failed);
    return failed;
}

/* --- ranges ----------------------------------------------------------------------------- */

static void
count_crossing(struct exact *x)
{
    const struct dryi_problem *p = x->p;
    memset(x->crossing, 0, (p->section_count + 1) * sizeof *x->crossing);
    for (uint32_t k = 0; k < x->open_count; k++) {
        x->crossing[p->lo[x->lives[k]] + 1]++;
        x->crossing[p->hi[x->lives[k]]]--; /* intermediate sums may wrap around */
    }
    spend(x, x->open_count + p->section_count / 8);
    for (uint32_t s = 1; s <= p->section_count; s++)
        x->crossing[s] += x->crossing[s - 1];
    DRYI_ASSERT_SLOW(x->crossing[0] == 0 && x->crossing[p->section_count] == 0);
}

static struct range
find_range(struct exact *x, uint32_t section)
{
    DRYI_ASSERT_SLOW(section < x->p->section_count);
    struct range r = {section, section + 1};
    while (r.lo > 0 && x->crossing[r.lo])
        r.lo--;
    while (r.hi < x->p->section_count && x->crossing[r.hi])
        r.hi++;
    return r;
}

static uint64_t
find_head(struct exact *x, uint32_t s)
{
    DRYI_ASSERT_SLOW(x->open[s] > 0);
    if (x->head[s] == UNKNOWN) {
        for (uint32_t k = x->first[s]; k < x->first[s] + x->open[s]; k++) {
            if (x->lowest[x->alive[k]] < x->head[s])
                x->head[s] = x->lowest[x->alive[k]];
        }
        spend(x, x->open[s]);
    }
    return x->head[s];
}

/* Return the connected range of sections with the least spare space. Requires an unplaced life. */
static struct range
tightest_range(struct exact *x)
{
    uint64_t least = UINT64_MAX;
    uint32_t tight = NOBODY;
    for (uint32_t s = 0; s < x->p->section_count; s++) {
        if (x->open[s] == 0)
            continue;
        uint64_t used = find_head(x, s) + x->remaining[s];
        uint64_t spare = used < x->limit ? x->limit - used : 0;
        if (tight == NOBODY || spare < least) {
            least = spare;
            tight = s;
        }
    }
    DRYI_ASSERT(tight != NOBODY);
    count_crossing(x);
    return find_range(x, tight);
}

/* --- choosing --------------------------------------------------------------------------- */

static bool
is_inside(const struct exact *x, uint32_t life, struct range r)
{
    return x->p->lo[life] < r.hi && r.lo < x->p->hi[life];
}

static uint64_t
lowest_end(const struct exact *x, uint32_t life)
{
    return x->lowest[life] + x->p->sizes[life];
}

/* Return the life in the range whose end could be lowest. */
static uint32_t
lowest_in(const struct exact *x, struct range r)
{
    uint32_t lowest = NOBODY;
    for (uint32_t k = 0; k < x->open_count; k++) {
        uint32_t i = x->lives[k];
        if (is_inside(x, i, r) &&
            (lowest == NOBODY || lowest_end(x, i) < lowest_end(x, lowest) ||
             (lowest_end(x, i) == lowest_end(x, lowest) && i < lowest)))
            lowest = i;
    }
    return lowest;
}

/* Should `a` be placed before `b`? Affects speed only, not correctness. */
static bool
is_better(const struct exact *x, uint32_t a, uint32_t b)
{
    if (x->ranks.is_lowest_first && x->lowest[a] != x->lowest[b])
        return x->lowest[a] < x->lowest[b];
    return x->ranks.ranks[a] < x->ranks.ranks[b];
}

static uint32_t
choose(struct exact *x)
{
    uint32_t lowest = lowest_in(x, tightest_range(x)), best = NOBODY;
    DRYI_ASSERT_SLOW(lowest != NOBODY);
    struct range around = {x->p->lo[lowest], x->p->hi[lowest]};
    uint64_t end = lowest_end(x, lowest);
    for (uint32_t k = 0; k < x->open_count; k++) {
        uint32_t i = x->lives[k];
        if (is_inside(x, i, around) && x->lowest[i] < end &&
            (best == NOBODY || is_better(x, i, best)))
            best = i;
    }
    spend(x, x->open_count);
    DRYI_ASSERT_SLOW(best != NOBODY && x->lowest[best] < end);
    return best;
}

/* --- the search ------------------------------------------------------------------------- */

/* Lift a life onto the lowest end of the unplaced lives that it overlaps. False: there are none. */
static bool
postpone(struct exact *x, uint32_t life)
{
    DRYI_ASSERT_SLOW(x->lives_at[life] < x->open_count);
    const struct dryi_problem *p = x->p;
    uint64_t end = UINT64_MAX;
    for (uint32_t s = p->lo[life]; s < p->hi[life]; s++) {
        for (uint32_t k = x->first[s]; k < x->first[s] + x->open[s]; k++) {
            uint32_t i = x->alive[k];
            if (i != life && lowest_end(x, i) < end)
                end = lowest_end(x, i);
        }
    }
    if (end == UINT64_MAX)
        return false;
    lift(x, life, end > x->lowest[life] ? end : x->lowest[life] + 1);
    return true;
}

/* Undo decisions back to one in the failed range that can be postponed. False: none is left. */
static bool
go_back(struct exact *x, struct range failed)
{
    DRYI_ASSERT_SLOW(failed.lo < failed.hi && failed.hi <= x->p->section_count);
    while (x->decision_count) {
        struct decision *d = &x->decisions[x->decision_count - 1];
        undo(x, d);
        bool matters = x->p->lo[d->life] < failed.hi && failed.lo < x->p->hi[d->life];
        if (matters && !d->is_postponed) {
            d->is_postponed = true;
            d->failed = failed;
            if (postpone(x, d->life))
                return true;
        }
        if (matters) {
            failed.lo = d->failed.lo < failed.lo ? d->failed.lo : failed.lo;
            failed.hi = d->failed.hi > failed.hi ? d->failed.hi : failed.hi;
        }
        x->decision_count--;
    }
    return false;
}

static enum outcome
run(struct exact *x)
{
    while (x->effort && x->has_memory) {
        uint32_t failed = propagate(x);
        if (failed != NOBODY) {
            count_crossing(x);
            if (!go_back(x, find_range(x, failed)))
                return OUTCOME_NONE;
            continue;
        }
        if (x->open_count == 0)
            return OUTCOME_FOUND;
        uint32_t life = choose(x);
        if (!dryi_memory_grow(&x->p->memory, &x->decisions, &x->decision_capacity,
                              x->decision_count + 1, sizeof *x->decisions))
            return OUTCOME_MEMORY;
        x->decisions[x->decision_count++] =
            (struct decision){.life = life, .trail = x->trail_count};
        place(x, life);
    }
    return x->has_memory ? OUTCOME_STOPPED : OUTCOME_MEMORY;
}

static void
begin(struct exact *x, uint64_t limit)
{
    const struct dryi_problem *p = x->p;
    DRYI_ASSERT_SLOW(limit >= p->bound && limit < p->height);
    x->limit = limit;
    x->trail_count = x->decision_count = x->queue_count = 0;
    memset(x->is_queued, 0, p->section_count);
    memset(x->head, 0, p->section_count * sizeof *x->head);
    while (x->open_count < p->count)
        reopen(x, x->lives[x->open_count]);
    memset(x->lowest, 0, p->count * sizeof *x->lowest);
    enqueue(x, 0, p->section_count);
}

/*
 * Return the i-th term, from 1, of 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ... (Luby, Sinclair, Zuckerman,
 * 1993).
 */
static uint64_t
luby(uint64_t i)
{
    DRYI_ASSERT_SLOW(i > 0);
    while (!dryi_is_power_of_two(i + 1))
        i -= (UINT64_C(1) << dryi_log2_floor(i)) - 1;
    return (i + 1) / 2;
}

/*
 * Run under the limit with changing ranks, mostly in short runs: a run with an early wrong decision
 * wastes long, while another may succeed without a failure. Restarts follow luby().
 */
static enum outcome
search(struct exact *x, uint64_t limit, bool is_first, uint64_t *effort)
{
    uint64_t most = is_first ? FIRST_RUNS : UINT64_MAX;
    for (uint64_t i = 0; *effort && i < most; i++) {
        uint64_t length = is_first ? FIRST_LENGTH : luby(i + 1);
        length *= RUN_VISITS * (uint64_t)x->alive_count;
        uint64_t given = length < *effort ? length : *effort;
        begin(x, limit);
        dryi_ranks_make(&x->ranks, x->p, i, x->runs++);
        x->passes = i / 4 % 2 ? PASSES : 5 * PASSES;
        x->effort = given;
        enum outcome outcome = run(x);
        *effort -= given - x->effort;
        if (outcome != OUTCOME_STOPPED)
            return outcome;
        if (x->p->progress && x->p->progress(x->p->progress_self, 0)) {
            x->p->is_ended = true;
            break;
        }
    }
    return OUTCOME_STOPPED;
}

static uint64_t
find_height(const struct exact *x)
{
    uint64_t height = 0;
    for (uint32_t i = 0; i < x->p->count; i++) {
        uint64_t end = x->lowest[i] + x->p->sizes[i];
        height = end > height ? end : height;
    }
    return height;
}

/*
 * Keep a packing if it is lower than the best. The check is needed because lifts of a propagation
 * that was cut short are not compared with the limit.
 */
static void
keep(struct exact *x)
{
    struct dryi_problem *p = x->p;
    uint64_t height = find_height(x);
    DRYI_ASSERT_SLOW(x->open_count == 0 && height >= p->bound);
    if (height >= p->height)
        return;
    p->height = height;
    memcpy(p->offsets, x->lowest, p->count * sizeof *p->offsets);
    p->method = "exact search";
}

struct aim {
    uint64_t wanted; /* units; lowest height to search for, a multiple of x->unit */
    uint64_t low;    /* units; no packing is this low */
    uint64_t gap;    /* units; how far below the best height to search next */
    uint64_t slice;  /* effort for one search */
};

/* Search for a packing lower than the best by the gap. */
static enum outcome
aim_lower(struct exact *x, const struct aim *a, bool is_first, uint64_t *limit)
{
    DRYI_ASSERT_SLOW(a->gap > 0 && a->gap <= x->p->height && a->low < a->wanted);
    struct dryi_problem *p = x->p;
    uint64_t given = is_first ? p->effort / FIRST_SHARE + 1 : a->slice;
    *limit = p->height - (a->gap + x->unit - 1) / x->unit * x->unit;
    if (*limit < a->low + x->unit)
        *limit = a->low + x->unit;
    given = given < p->effort ? given : p->effort;
    p->effort -= given;
    enum outcome outcome = search(x, *limit, is_first, &given);
    p->effort += given;
    if (outcome == OUTCOME_FOUND)
        keep(x);
    return outcome;
}

/*
 * First search at the wanted height. Then in rounds, each with twice the effort per search: at the
 * full gap to the best, at half of it, at a quarter. The gap doubles again when a packing is found.
 */
static enum dry_status
improve(struct exact *x)
{
    struct dryi_problem *p = x->p;
    struct aim a = {.wanted = p->wanted / x->unit * x->unit,
                    .low = p->bound - x->unit,
                    .slice = p->effort / SLICES + 1};
    a.gap = p->height - a.wanted;
    for (bool is_first = true;
         p->height > a.wanted && p->height > a.low + x->unit && p->effort && !p->is_ended;
         is_first = false) {
        uint64_t limit;
        enum outcome outcome = aim_lower(x, &a, is_first, &limit);
        if (outcome == OUTCOME_MEMORY)
            return DRY_ERR_MEMORY;
        if (outcome == OUTCOME_NONE)
            a.low = limit;
        if (a.wanted < a.low + x->unit)
            a.wanted = a.low + x->unit;
        uint64_t whole = p->height > a.wanted ? p->height - a.wanted : 0;
        a.gap = outcome == OUTCOME_FOUND ? a.gap * 2 : a.gap / 2;
        a.gap = a.gap < whole ? a.gap : whole;
        if (a.gap < x->unit || a.gap < whole / LIMITS) {
            a.gap = whole;
            a.slice *= a.slice < p->effort ? 2 : 1;
        }
    }
    p->is_proved = p->height <= a.low + x->unit;
    return DRY_OK;
}

/* --- memory ----------------------------------------------------------------------------- */

static void
fill(struct exact *x)
{
    const struct dryi_problem *p = x->p;
    uint32_t row = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        for (uint32_t s = p->lo[i]; s < p->hi[i]; s++)
            x->first[s + 1]++;
    }
    for (uint32_t s = 0; s < p->section_count; s++)
        x->first[s + 1] += x->first[s];
    for (uint32_t i = p->count; i-- > 0;) {
        for (uint32_t s = p->lo[i]; s < p->hi[i]; s++)
            x->alive[x->first[s] + x->open[s]++] = i;
    }
    for (uint32_t i = 0; i < p->count; i++) {
        x->lives[i] = x->lives_at[i] = i;
        x->row[i] = row;
        row += p->hi[i] - p->lo[i];
    }
    for (uint32_t s = 0; s < p->section_count; s++) {
        for (uint32_t k = x->first[s]; k < x->first[s + 1]; k++) {
            uint32_t i = x->alive[k];
            x->at[x->row[i] + s - p->lo[i]] = k;
            x->remaining[s] += p->sizes[i];
        }
    }
    DRYI_ASSERT_SLOW(row == x->alive_count &&
                     x->first[p->section_count] == x->alive_count);
    x->open_count = p->count;
    for (uint32_t i = 0; i < p->count; i++)
        x->unit = dryi_common_divisor(x->unit, p->sizes[i]);
}

static bool
take_memory(struct exact *x)
{
    const struct dryi_problem *p = x->p;
    const struct dry_memory *m = &p->memory;
    size_t sections = (size_t)p->section_count + 1;
    x->first = dryi_memory_zalloc(m, sections, sizeof *x->first);
    x->alive = dryi_memory_zalloc(m, x->alive_count, sizeof *x->alive);
    x->lowest = dryi_memory_zalloc(m, p->count, sizeof *x->lowest);
    x->open = dryi_memory_zalloc(m, sections, sizeof *x->open);
    x->row = dryi_memory_zalloc(m, p->count, sizeof *x->row);
    x->at = dryi_memory_zalloc(m, x->alive_count, sizeof *x->at);
    x->lives = dryi_memory_zalloc(m, p->count, sizeof *x->lives);
    x->lives_at = dryi_memory_zalloc(m, p->count, sizeof *x->lives_at);
    x->head = dryi_memory_zalloc(m, sections, sizeof *x->head);
    x->remaining = dryi_memory_zalloc(m, sections, sizeof *x->remaining);
    x->queue = dryi_memory_zalloc(m, sections, sizeof *x->queue);
    x->is_queued = dryi_memory_zalloc(m, sections, 1);
    x->crossing = dryi_memory_zalloc(m, sections + 1, sizeof *x->crossing);
    x->heads = dryi_memory_zalloc(m, p->count, sizeof *x->heads);
    x->sizes = dryi_memory_zalloc(m, p->count, sizeof *x->sizes);
    bool has_ranks = dryi_ranks_init(&x->ranks, p);
    return has_ranks && x->first && x->alive && x->open && x->row && x->at && x->lives &&
           x->lives_at && x->head && x->lowest && x->remaining && x->queue &&
           x->is_queued && x->crossing && x->heads && x->sizes;
}

static void
give_memory_back(struct exact *x)
{
    const struct dryi_problem *p = x->p;
    const struct dry_memory *m = &p->memory;
    size_t sections = (size_t)p->section_count + 1;
    dryi_memory_free(m, x->first, sections, sizeof *x->first);
    dryi_memory_free(m, x->alive, x->alive_count, sizeof *x->alive);
    dryi_memory_free(m, x->lowest, p->count, sizeof *x->lowest);
    dryi_memory_free(m, x->open, sections, sizeof *x->open);
    dryi_memory_free(m, x->row, p->count, sizeof *x->row);
    dryi_memory_free(m, x->at, x->alive_count, sizeof *x->at);
    dryi_memory_free(m, x->lives, p->count, sizeof *x->lives);
    dryi_memory_free(m, x->lives_at, p->count, sizeof *x->lives_at);
    dryi_memory_free(m, x->head, sections, sizeof *x->head);
    dryi_ranks_finish(&x->ranks, p);
    dryi_memory_free(m, x->remaining, sections, sizeof *x->remaining);
    dryi_memory_free(m, x->queue, sections, sizeof *x->queue);
    dryi_memory_free(m, x->is_queued, sections, 1);
    dryi_memory_free(m, x->crossing, sections + 1, sizeof *x->crossing);
    dryi_memory_free(m, x->heads, p->count, sizeof *x->heads);
    dryi_memory_free(m, x->sizes, p->count, sizeof *x->sizes);
    dryi_memory_free(m, x->trail, x->trail_capacity, sizeof *x->trail);
    dryi_memory_free(m, x->decisions, x->decision_capacity, sizeof *x->decisions);
}

enum dry_status
dryi_offline_exact(struct dryi_problem *p)
{
    DRYI_ASSERT_SLOW(p->bound <= p->wanted && (p->fixed || p->bound <= p->height));
    DRYI_ASSERT_SLOW(p->section_count > 0 && p->section_count <= p->count);
    uint64_t incidences = 0;
    for (uint32_t i = 0; i < p->count; i++)
        incidences += p->hi[i] - p->lo[i];
    if (incidences > INCIDENCES_MAX || p->fixed || p->effort == 0 ||
        p->height <= p->wanted)
        return DRY_OK;
    struct exact x = {.p = p, .alive_count = (size_t)incidences, .has_memory = true};
    enum dry_status status = DRY_ERR_MEMORY;
    if (take_memory(&x)) {
        fill(&x);
        status = improve(&x);
    }
    give_memory_back(&x);
    return status;
}
