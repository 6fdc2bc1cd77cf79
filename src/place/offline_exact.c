/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Exact search: is there a packing no higher than `limit`?
 *
 * Packings are built from the bottom, each block on top of what it overlaps, as schedules are
 * in a job shop (Giffler and Thompson, 1960): of the lives not placed yet, take the one whose
 * end could be lowest. Either it, or one that overlaps it and could begin below that end,
 * lies at its lowest offset; else the space below were wasted. So the choice is among few:
 * place this one at its lowest offset, or postpone it: then it lies on top of another.
 *
 * What is not placed must fit. In a section the lives not placed lie above each other: from
 * any offset up, those that cannot begin lower must fit under the limit. A life that cannot
 * be the lowest of a section, because the others would not fit above it, is lifted over the
 * lowest end of the others; that again lifts others, until nothing moves.
 *
 * Where no life reaches across, sections fail for themselves: a failure goes back to the last
 * decision about a life that touches the failed range, over all those between (backjumping).
 *
 * Invariant: whenever a decision is taken, lowest[i] of an unplaced life is at least the end
 * of every placed one that it overlaps, and no packing that extends the placed ones puts it
 * lower.
 *
 * Cost: `effort` counts lives looked at. Memory: O(sum of lives by section + decisions).
 */
#include "place/offline_inside.h"

#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/memory.h"

#define INCIDENCES_MAX                                                                   \
    (UINT64_C(1) << 22) /* pairs of life and section; more: no search */
#define RUN_LOOKS 256u  /* in the shortest run, times the pairs of life and section */
#define PASSES 4u       /* or five times as many, in every other run of a rule */
#define RULES 4u
#define NOBODY UINT32_MAX

struct range {
    uint32_t lo, hi;
};

struct decision {
    uint32_t life;
    bool is_postponed;
    size_t trail;
    struct range failed; /* where placing it failed, if postponed */
};

struct lift {
    uint64_t lowest; /* before */
    uint32_t life;
};

enum outcome { OUTCOME_FOUND, OUTCOME_NONE, OUTCOME_STOPPED, OUTCOME_MEMORY };

struct exact {
    struct dryi_problem *p;
    uint64_t limit;
    uint64_t effort; /* of this run */
    unsigned rule;
    uint64_t passes; /* of propagation, over all sections */
    uint64_t random;

    uint32_t *first; /* by section, into `alive`; one more */
    uint32_t *alive; /* lives by section */
    size_t alive_count;
    uint64_t *lowest; /* by life: no offset below is possible; placed: its offset */
    uint8_t *is_placed;
    uint64_t *remaining; /* by section: sizes not placed */
    uint32_t *queue;     /* sections to look at, each once */
    uint8_t *is_queued;
    size_t queue_count;
    uint32_t *crossing; /* by section: lives not placed that reach across its begin */
    uint64_t *heads, *sizes; /* of one section, sorted */

    struct lift *trail;
    size_t trail_count, trail_capacity;
    struct decision *decisions;
    size_t decision_count, decision_capacity;
    bool has_memory;
};

/* --- state ------------------------------------------------------------------------------ */

static void
enqueue(struct exact *x, uint32_t lo, uint32_t hi)
{
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

static void
place(struct exact *x, uint32_t life)
{
    const struct dryi_problem *p = x->p;
    uint64_t end = x->lowest[life] + p->sizes[life];
    x->is_placed[life] = 1;
    enqueue(x, p->lo[life], p->hi[life]);
    for (uint32_t s = p->lo[life]; s < p->hi[life]; s++) {
        x->remaining[s] -= p->sizes[life];
        x->effort -= x->effort ? 1 : 0;
        for (uint32_t k = x->first[s]; k < x->first[s + 1]; k++) {
            if (!x->is_placed[x->alive[k]])
                lift(x, x->alive[k], end);
        }
    }
}

static void
undo(struct exact *x, const struct decision *d)
{
    const struct dryi_problem *p = x->p;
    while (x->trail_count > d->trail) {
        const struct lift *l = &x->trail[--x->trail_count];
        x->lowest[l->life] = l->lowest;
    }
    if (d->is_postponed)
        return;
    x->is_placed[d->life] = 0;
    for (uint32_t s = p->lo[d->life]; s < p->hi[d->life]; s++)
        x->remaining[s] += p->sizes[d->life];
}

/* --- bounds ----------------------------------------------------------------------------- */

/* The lowest end of a life of the section, and of all others of it. */
struct ends {
    uint64_t lowest, second;
    uint32_t owner;
};

static struct ends
look_at(struct exact *x, uint32_t s, uint32_t *count)
{
    struct ends e = {UINT64_MAX, UINT64_MAX, NOBODY};
    *count = 0;
    for (uint32_t k = x->first[s]; k < x->first[s + 1]; k++) {
        uint32_t i = x->alive[k];
        if (x->is_placed[i])
            continue;
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
        }
        x->heads[at] = head;
        x->sizes[at] = size;
    }
    x->effort -= x->effort < *count + 1 ? x->effort : *count + 1;
    return e;
}

/* False when the lives of the section cannot fit. */
static bool
narrow(struct exact *x, uint32_t s)
{
    uint32_t count;
    struct ends ends = look_at(x, s, &count);
    uint64_t sum = 0;
    for (uint32_t k = count; k-- > 0;) {
        sum += x->sizes[k];
        if (x->heads[k] + sum > x->limit)
            return false;
    }
    for (uint32_t k = x->first[s]; k < x->first[s + 1] && count > 1; k++) {
        uint32_t i = x->alive[k];
        if (!x->is_placed[i] && x->lowest[i] + x->remaining[s] > x->limit)
            lift(x, i, i == ends.owner ? ends.second : ends.lowest);
    }
    return true;
}

/*
 * Until nothing moves, or (lives may lift each other by little for long) everybody could have
 * been looked at several times; the section that fails, or NOBODY.
 */
static uint32_t
propagate(struct exact *x)
{
    uint32_t failed = NOBODY;
    uint64_t looks = 0, most = x->passes * x->p->section_count;
    while (x->queue_count) {
        uint32_t s = x->queue[--x->queue_count];
        x->is_queued[s] = 0;
        if (failed == NOBODY && looks++ < most && x->remaining[s] > 0 && !narrow(x, s))
            failed = s;
    }
    return failed;
}

/* --- ranges ----------------------------------------------------------------------------- */

static void
count_crossing(struct exact *x)
{
    const struct dryi_problem *p = x->p;
    memset(x->crossing, 0, (p->section_count + 1) * sizeof *x->crossing);
    for (uint32_t i = 0; i < p->count; i++) {
        if (!x->is_placed[i]) {
            x->crossing[p->lo[i] + 1]++;
            x->crossing[p->hi[i]]--; /* wraps, and comes back */
        }
    }
    for (uint32_t s = 1; s <= p->section_count; s++)
        x->crossing[s] += x->crossing[s - 1];
}

static struct range
range_of(struct exact *x, uint32_t section)
{
    struct range r = {section, section + 1};
    while (r.lo > 0 && x->crossing[r.lo])
        r.lo--;
    while (r.hi < x->p->section_count && x->crossing[r.hi])
        r.hi++;
    return r;
}

/* The range that hangs together and has the least room to spare. */
static bool
tightest_range(struct exact *x, struct range *tightest)
{
    uint64_t least = UINT64_MAX;
    count_crossing(x);
    for (uint32_t s = 0; s < x->p->section_count; s++) {
        if (x->remaining[s] == 0)
            continue;
        uint64_t head = UINT64_MAX;
        for (uint32_t k = x->first[s]; k < x->first[s + 1]; k++) {
            uint32_t i = x->alive[k];
            if (!x->is_placed[i] && x->lowest[i] < head)
                head = x->lowest[i];
        }
        uint64_t spare = x->limit - head - x->remaining[s];
        if (spare < least) {
            least = spare;
            *tightest = range_of(x, s);
        }
    }
    return least != UINT64_MAX;
}

/* --- choosing --------------------------------------------------------------------------- */

static bool
is_inside(const struct exact *x, uint32_t life, struct range r)
{
    return !x->is_placed[life] && x->p->lo[life] < r.hi && r.lo < x->p->hi[life];
}

/* Which of two to place first; the rules differ, and all are right. */
static bool
is_better(struct exact *x, uint32_t a, uint32_t b)
{
    const struct dryi_problem *p = x->p;
    uint32_t span_a = p->hi[a] - p->lo[a], span_b = p->hi[b] - p->lo[b];
    if (x->random) {
        x->random =
            x->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        if (x->random >> 60 == 0)
            return true;
    }
    if (x->rule % 2 == 0 && x->lowest[a] != x->lowest[b])
        return x->lowest[a] < x->lowest[b];
    if (x->rule < 2 && span_a != span_b)
        return span_a > span_b;
    if (p->sizes[a] * span_a != p->sizes[b] * span_b)
        return p->sizes[a] * span_a > p->sizes[b] * span_b;
    return p->sizes[a] > p->sizes[b];
}

static uint32_t
choose(struct exact *x)
{
    const struct dryi_problem *p = x->p;
    struct range r;
    if (!tightest_range(x, &r))
        return NOBODY;
    uint32_t lowest = NOBODY, best = NOBODY;
    for (uint32_t i = 0; i < p->count; i++) {
        if (is_inside(x, i, r) &&
            (lowest == NOBODY ||
             x->lowest[i] + p->sizes[i] < x->lowest[lowest] + p->sizes[lowest]))
            lowest = i;
    }
    struct range around = {p->lo[lowest], p->hi[lowest]};
    uint64_t end = x->lowest[lowest] + p->sizes[lowest];
    for (uint32_t i = 0; i < p->count; i++) {
        if (is_inside(x, i, around) && x->lowest[i] < end &&
            (best == NOBODY || is_better(x, i, best)))
            best = i;
    }
    x->effort -= x->effort < p->count ? x->effort : p->count;
    return best;
}

/* --- the search ------------------------------------------------------------------------- */

/* Not at its lowest offset, so on top of one of those it overlaps; false: there is none. */
static bool
postpone(struct exact *x, uint32_t life)
{
    const struct dryi_problem *p = x->p;
    uint64_t end = UINT64_MAX;
    for (uint32_t s = p->lo[life]; s < p->hi[life]; s++) {
        for (uint32_t k = x->first[s]; k < x->first[s + 1]; k++) {
            uint32_t i = x->alive[k];
            if (i != life && !x->is_placed[i] && x->lowest[i] + p->sizes[i] < end)
                end = x->lowest[i] + p->sizes[i];
        }
    }
    if (end == UINT64_MAX)
        return false;
    lift(x, life, end > x->lowest[life] ? end : x->lowest[life] + 1);
    return true;
}

/* Back to the last decision that matters here; false: there is none. */
static bool
go_back(struct exact *x, struct range failed)
{
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
            if (!go_back(x, range_of(x, failed)))
                return OUTCOME_NONE;
            continue;
        }
        uint32_t life = choose(x);
        if (life == NOBODY)
            return OUTCOME_FOUND;
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
    x->limit = limit;
    x->trail_count = x->decision_count = x->queue_count = 0;
    memset(x->is_queued, 0, p->section_count);
    memset(x->is_placed, 0, p->count);
    memset(x->lowest, 0, p->count * sizeof *x->lowest);
    memset(x->remaining, 0, p->section_count * sizeof *x->remaining);
    for (uint32_t s = 0; s < p->section_count; s++) {
        for (uint32_t k = x->first[s]; k < x->first[s + 1]; k++)
            x->remaining[s] += p->sizes[x->alive[k]];
    }
    enqueue(x, 0, p->section_count);
}

/* 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ... (Luby, Sinclair, Zuckerman, 1993); i from 1. */
static uint64_t
luby(uint64_t i)
{
    while (!dryi_is_power_of_two(i + 1))
        i -= (UINT64_C(1) << dryi_log2_floor(i)) - 1;
    return (i + 1) / 2;
}

/*
 * Runs under the limit by changing rules, mostly short: one that goes wrong early stays wrong
 * for long, and another may meet no failure at all.
 */
static enum outcome
search(struct exact *x, uint64_t limit, uint64_t *effort)
{
    for (unsigned i = 0; *effort; i++) {
        uint64_t length = RUN_LOOKS * x->alive_count * luby(i + 1);
        uint64_t given = length < *effort ? length : *effort;
        begin(x, limit);
        x->rule = i % RULES;
        x->passes = i / RULES % 2 ? PASSES : 5 * PASSES;
        x->random = i < RULES ? 0 : dryi_mix64(i);
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

static void
keep(struct exact *x)
{
    struct dryi_problem *p = x->p;
    p->height = 0;
    for (uint32_t i = 0; i < p->count; i++) {
        p->offsets[i] = x->lowest[i];
        if (x->lowest[i] + p->sizes[i] > p->height)
            p->height = x->lowest[i] + p->sizes[i];
    }
    p->method = "exact search";
}

/* The wanted height with half of the effort, then what lies between it and the best. */
static enum dry_status
improve(struct exact *x)
{
    struct dryi_problem *p = x->p;
    uint64_t half = p->effort / 2, low = p->wanted;
    p->effort -= half;
    enum outcome outcome = search(x, p->wanted, &half);
    p->effort += half;
    if (outcome == OUTCOME_FOUND)
        keep(x);
    bool is_sure = outcome == OUTCOME_NONE; /* that nothing is as low as `low` */
    while (p->height > low + 1 && p->effort && !p->is_ended &&
           outcome != OUTCOME_MEMORY) {
        uint64_t limit = low + (p->height - low) / 2, slice = p->effort / 4 + 1;
        slice = slice < p->effort ? slice : p->effort;
        p->effort -= slice;
        outcome = search(x, limit, &slice);
        p->effort += slice;
        if (outcome == OUTCOME_FOUND)
            keep(x);
        else
            low = limit;
        is_sure = is_sure && outcome != OUTCOME_STOPPED;
    }
    p->is_proved = is_sure && p->height == low + 1;
    return outcome == OUTCOME_MEMORY ? DRY_ERR_MEMORY : DRY_OK;
}

/* --- memory ----------------------------------------------------------------------------- */

static void
fill(struct exact *x)
{
    const struct dryi_problem *p = x->p;
    for (uint32_t i = 0; i < p->count; i++) {
        for (uint32_t s = p->lo[i]; s < p->hi[i]; s++)
            x->first[s + 1]++;
    }
    for (uint32_t s = 0; s < p->section_count; s++)
        x->first[s + 1] += x->first[s];
    for (uint32_t i = p->count; i-- > 0;) {
        for (uint32_t s = p->lo[i]; s < p->hi[i]; s++)
            x->alive[x->first[s] + x->crossing[s]++] = i;
    }
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
    x->is_placed = dryi_memory_zalloc(m, p->count, 1);
    x->remaining = dryi_memory_zalloc(m, sections, sizeof *x->remaining);
    x->queue = dryi_memory_zalloc(m, sections, sizeof *x->queue);
    x->is_queued = dryi_memory_zalloc(m, sections, 1);
    x->crossing = dryi_memory_zalloc(m, sections + 1, sizeof *x->crossing);
    x->heads = dryi_memory_zalloc(m, p->count, sizeof *x->heads);
    x->sizes = dryi_memory_zalloc(m, p->count, sizeof *x->sizes);
    return x->first && x->alive && x->lowest && x->is_placed && x->remaining &&
           x->queue && x->is_queued && x->crossing && x->heads && x->sizes;
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
    dryi_memory_free(m, x->is_placed, p->count, 1);
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
