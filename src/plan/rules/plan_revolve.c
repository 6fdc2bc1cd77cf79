/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Griewank and Walther, "Algorithm 799: revolve" (ACM TOMS 26, 2000): turning back equal
 * steps with a given number of stored states (snapshots).
 *
 * Let beta(c, r) = binomial(c + r, c). With c snapshots, the first state included, every
 * step runs at most r times again exactly if there are at most beta(c, r) steps. A plan
 * for l steps runs k of them and stores the state there. It turns back the l - k steps
 * above with one snapshot less, then the k below with all. The k steps are a range whose
 * inner items are a plan of the same form.
 */
#include <drystone/plan.h>

#include "base/bits.h"
#include "base/fail.h"
#include "base/memory.h"
#include "plan/chain/plan_search.h"

/* In chains with up to this many stages every number of snapshots is tried. */
#define TRY_ALL_MAX 256u

/* Return binomial(a + b, a), at most UINT64_MAX. */
static uint64_t
binomial(uint64_t a, uint64_t b)
{
    uint64_t less = a < b ? a : b, more = a < b ? b : a, result = 1;
    for (uint64_t i = 1; i <= less; i++) {
        /* result * (more + i) / i is whole, but the product may overflow: then divide first. */
        uint64_t product;
        if (more > UINT64_MAX - i)
            return UINT64_MAX;
        if (!__builtin_mul_overflow(result, more + i, &product)) {
            result = product / i;
            continue;
        }
        uint64_t common = dryi_common_divisor(result, i);
        if (__builtin_mul_overflow(result / common, (more + i) / (i / common), &result))
            return UINT64_MAX;
    }
    return result;
}

/* Return the smallest r with steps <= beta(snapshots, r). Requires steps, snapshots >= 1. */
static uint64_t
find_repeats(uint64_t steps, uint64_t snapshots)
{
    uint64_t low = 0, high = steps - 1;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (binomial(snapshots, middle) >= steps)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint64_t
dry_revolve_count(uint64_t steps, uint64_t snapshots)
{
    if (snapshots == 0)
        return UINT64_MAX;
    if (steps <= 1)
        return 0;
    if (snapshots >= steps)
        snapshots = steps - 1; /* further snapshots are useless */
    uint64_t r = find_repeats(steps, snapshots), product, count;
    /*
     * The subtracted binomial is at most half the product for large products, so nothing
     * underflows.
     */
    if (__builtin_mul_overflow(r, steps, &product))
        return UINT64_MAX;
    count = product - binomial(snapshots + 1, r - 1);
    return count > UINT64_MAX >> 1 ? UINT64_MAX : count;
}

/* --- plans -------------------------------------------------------------------------------- */

/* Turn back stages first to first + count - 1; if `closes` is set, close that range first. */
struct task {
    uint32_t first, count, snapshots;
    uint32_t repeats; /* an upper bound of the repeats needed */
    uint32_t closes;  /* item to close; DRYI_NO_ITEM: none */
};

struct tasks {
    struct task *list;
    size_t count, capacity;
};

/*
 * Reduce the repeats to the fewest that suffice. They are seldom fewer by more than one
 * than the parent task's.
 */
static void
take_fewest_repeats(struct task *t)
{
    while (t->repeats > 1 && binomial(t->snapshots, t->repeats - 1) >= t->count)
        t->repeats--;
}

/*
 * Return the split k, where the state is stored. It has as many steps below it as r - 1
 * repeats can turn back, but leaves at least as many above it as need r repeats.
 */
static uint32_t
get_split(const struct task *t)
{
    if (t->snapshots == 1)
        return t->count - 1;
    uint64_t above = binomial(t->snapshots - 1, t->repeats - 1);
    return (uint32_t)dryi_min(binomial(t->snapshots, t->repeats - 1), t->count - above);
}

static bool
push_task(struct dryi_planning *p, struct tasks *tasks, struct task task)
{
    if (!dryi_memory_grow(&p->memory, &tasks->list, &tasks->capacity, tasks->count + 1,
                          sizeof *tasks->list))
        return false;
    tasks->list[tasks->count++] = task;
    return true;
}

static bool
do_task(struct dryi_planning *p, struct tasks *tasks, struct task t)
{
    if (t.closes != DRYI_NO_ITEM)
        dryi_plan_close_range(p, t.closes);
    if (t.count == 1)
        return dryi_plan_push_save(p, t.first, t.first, 0);
    take_fewest_repeats(&t);
    uint32_t k = get_split(&t), item;
    uint32_t left = t.snapshots > 1 ? t.snapshots - 1 : 1;
    struct task above = {t.first + k, t.count - k, left, t.repeats, DRYI_NO_ITEM};
    struct task below = {t.first, k, t.snapshots, t.repeats, DRYI_NO_ITEM};
    if (!dryi_plan_open_range(p, t.first, t.first + k - 1, &item))
        return false;
    above.closes = item;
    return push_task(p, tasks, above) && push_task(p, tasks, below);
}

static bool
make_revolve(struct dryi_planning *p, uint64_t snapshots)
{
    struct tasks tasks = {0};
    uint32_t repeats = (uint32_t)find_repeats(p->count, snapshots);
    struct task all = {0, p->count, (uint32_t)snapshots, repeats, DRYI_NO_ITEM};
    bool has_memory = push_task(p, &tasks, all);
    while (has_memory && tasks.count) {
        struct task task = tasks.list[--tasks.count];
        has_memory = do_task(p, &tasks, task);
    }
    dryi_memory_free(&p->memory, tasks.list, tasks.capacity, sizeof *tasks.list);
    return has_memory;
}

static enum dry_status
check_stages(const struct dryi_planning *p)
{
    for (uint32_t i = 0; i + 1 < p->count; i++) {
        if (p->kinds[i] != p->kinds[0])
            return dryi_fail(p->err, DRY_ERR_ARGUMENT,
                             "revolve wants equal stages (but the last): stage %u is "
                             "not as stage 0",
                             i);
        if (p->stages[i].is_fixed)
            return dryi_fail(p->err, DRY_ERR_ARGUMENT,
                             "revolve runs every stage (but the last) again: stage %u "
                             "must not",
                             i);
    }
    return DRY_OK;
}

/* Return the fewest snapshots whose reruns stay within DRYI_PLAN_RUNS_MAX. */
static uint32_t
fewest_snapshots(uint32_t count)
{
    uint32_t snapshots = 1;
    while (dry_revolve_count(count, snapshots) > DRYI_PLAN_RUNS_MAX - count)
        snapshots++;
    return snapshots;
}

static enum dry_status
try_all(struct dryi_plan_search *s, uint32_t low, uint32_t high)
{
    enum dry_status status = DRY_OK;
    for (uint32_t snapshots = low; snapshots <= high && status == DRY_OK; snapshots++) {
        struct dry_plan_cost cost;
        status = dryi_plan_try(s, snapshots, &cost);
    }
    return status;
}

/* Find the most snapshots that fit, assuming that more snapshots need more bytes. */
static enum dry_status
bisect(struct dryi_plan_search *s, uint32_t low, uint32_t high)
{
    struct dry_plan_cost cost;
    enum dry_status status = dryi_plan_try(s, low, &cost);
    while (status == DRY_OK && low < high) {
        uint32_t middle = high - (high - low) / 2;
        status = dryi_plan_try(s, middle, &cost);
        bool fits = status == DRY_OK && cost.peak_bytes <= s->p->options.budget_bytes;
        if (fits)
            low = middle;
        else
            high = middle - 1;
    }
    return status;
}

/*
 * Choose the number of snapshots. More snapshots take less time and usually more bytes.
 * The exception is chains whose gradients of weights grow during the backward.
 */
enum dry_status
dryi_plan_revolve(struct dryi_planning *p)
{
    enum dry_status status = check_stages(p);
    if (status != DRY_OK)
        return status;
    struct dryi_plan_search search = {.p = p, .make = make_revolve, .prefers_time = true};
    uint32_t low = fewest_snapshots(p->count), high = p->count > 2 ? p->count - 1 : 1;
    status = p->count <= TRY_ALL_MAX ? try_all(&search, low, high)
                                     : bisect(&search, low, high);
    return status == DRY_OK ? dryi_plan_settle(&search) : status;
}
