/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Bound the capacity that PyTorch had, as far as the record proves it. An OOM event states the
 * capacity. A burst of segment_free before a segment_alloc was a retry: the bytes reserved before
 * the burst plus the request exceeded the capacity. The peak of reserved bytes did not. Cost:
 * O(operations), and one more self-check if the bursts may be empty_cache().
 */
#include "replay/replay_state.h"

/* A gap between both bounds is narrow up to 1/NARROW_SHARE of the upper one. A wide gap counts as
   proof only after RETRIES_MIN retries. */
#define NARROW_SHARE 20
#define RETRIES_MIN 3

/* Return the least reserved bytes at which a first attempt was refused; UINT64_MAX if none was. */
static uint64_t
find_least_refused(const struct dry_replay *r)
{
    const struct dryi_program *p = &r->program;
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < p->op_count; i++) {
        if (p->kinds[i] != OP_DEVICE_FULL)
            continue;
        const struct limit *limit = &p->limits[p->args[i]];
        uint64_t refused =
            r->initial_layout.reserved + (uint64_t)limit->before + limit->need;
        least = refused < least ? refused : least;
    }
    return least;
}

static void
reject_all(struct dryi_program *p)
{
    for (size_t i = 0; i < p->op_count; i++) {
        if (p->kinds[i] != OP_DEVICE_FULL)
            continue;
        p->kinds[i] = OP_EMPTY_CACHE;
        p->limits[p->args[i]].rejected_op = (uint32_t)i + 1;
    }
    p->empty_cache_count += p->retry_count;
    p->retry_count = 0;
}

static void
take_back(struct dryi_program *p)
{
    for (uint32_t i = 0; i < p->limit_count; i++) {
        if (p->limits[i].rejected_op == 0)
            continue;
        p->kinds[p->limits[i].rejected_op - 1] = OP_DEVICE_FULL;
        p->retry_count++;
        p->empty_cache_count--;
    }
}

/* Treat all bursts as empty_cache(), unless the self-check then no longer reproduces the record. */
static enum dry_status
reject_retries(struct dry_replay *r, struct dry_error *err)
{
    struct dryi_self_check_subject subject = {
        .initial_layout = &r->initial_layout,
        .conf = &r->recorded_conf,
        .rules = r->rules,
        .progress = r->options.progress,
        .progress_self = r->options.progress_self,
        .is_trial = true,
    };
    struct dryi_self_check_outcome outcome;
    if (r->program.op_count >= UINT32_MAX)
        return DRY_OK;
    reject_all(&r->program);
    enum dry_status status = dryi_self_check_run(&r->program, &subject, &outcome, err);
    if (status == DRY_OK && !outcome.check.exact)
        take_back(&r->program);
    return status;
}

/*
 * Decide whether a burst proves a limit. A program that calls empty_cache() right before a request
 * larger than its cache looks like a retry. Usually that leaves a wide gap between reserved and
 * refused bytes. So a wide gap proves nothing, unless it recurs in a program that never calls
 * empty_cache(). If the program calls it elsewhere, assume that it did so here.
 *
 * With a recorded per_process_memory_fraction that fraction is the limit, and every run obeys it.
 */
enum dry_status
dryi_replay_bound_capacity(struct dry_replay *r, struct dry_error *err)
{
    struct dry_replay_recorded *recorded = &r->recorded;
    const struct dryi_program *p = &r->program;
    if (recorded->capacity_bytes > 0) {
        recorded->capacity_low_bytes = recorded->capacity_bytes;
        recorded->capacity_high_bytes = recorded->capacity_bytes + 1;
        return DRY_OK;
    }
    if (!r->check.possible || !r->check.exact || p->oom_count > 0)
        return DRY_OK;
    uint64_t low = recorded->reserved_peak_bytes, high = find_least_refused(r);
    if (high == UINT64_MAX || high <= low)
        return DRY_OK;
    bool is_narrow = high - low <= high / NARROW_SHARE;
    if (!is_narrow && p->empty_cache_count > 0)
        return reject_retries(r, err);
    if ((!is_narrow && p->retry_count < RETRIES_MIN) ||
        r->recorded_conf.per_process_memory_fraction < 1.0)
        return DRY_OK;
    recorded->capacity_low_bytes = low;
    recorded->capacity_high_bytes = high;
    return DRY_OK;
}
