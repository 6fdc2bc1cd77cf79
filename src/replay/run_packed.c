/* SPDX-License-Identifier: Apache-2.0 */

/* Run the optimum that no allocator can reach: all lifetimes are known, and one range
   holds the packed blocks. */

#include "base/bits.h"
#include "base/fail.h"
#include "replay/decisions.h"
#include "replay/packing.h"
#include "replay/replay_state.h"

#define PAGE_BYTES (UINT64_C(2) << 20)
#define BLOCK_BYTES 512u
/* Effort limit of the search, in examined lives: about 5 s. The search ends at once if the packing
   reaches the lower bound. */
#define PACKING_EFFORT UINT64_C(1000000000)

struct watch {
    const struct dry_replay_options *options;
    uint64_t searches;
    bool is_cancelled;
};

/* The packing search has no notion of progress, so report the number of searches instead. */
static bool
tell_packing(void *self, double done)
{
    (void)done;
    struct watch *w = self;
    w->is_cancelled = w->options->progress(w->options->progress_self, ++w->searches);
    return w->is_cancelled;
}

/* Pack the program. A cancelled search leaves a packing that depends on when it was cancelled:
   return CANCELLED instead. */
static enum dry_status
pack_program(const struct dry_replay *r, struct dryi_packed_program *packed,
             struct dry_error *err)
{
    struct watch watch = {.options = &r->options};
    struct dryi_packing_options options = {
        .memory = &r->memory,
        .effort = PACKING_EFFORT,
        .progress = r->options.progress ? tell_packing : NULL,
        .progress_self = &watch,
    };
    enum dry_status status = dryi_packed_program_init(packed, &r->program, &options, err);
    if (status != DRY_OK || !watch.is_cancelled)
        return status;
    dryi_packed_program_finish(packed);
    return dryi_fail(err, DRY_ERR_CANCELLED, "cancelled");
}

/* End the run at the first request that is placed above the capacity. */
static void
hold_against(const struct dry_replay *r, const struct dryi_packed_program *packed,
             uint64_t capacity, struct dry_run *run)
{
    const struct dryi_program *p = &r->program;
    if (run->reserved_peak_bytes <= capacity)
        return;
    for (uint32_t i = 0; i < p->carried_count; i++) {
        if (packed->offsets[i] != DRYI_NOWHERE &&
            packed->offsets[i] + p->sizes[i] > capacity)
            dryi_run_note_oom(run, r->device->first_event, p->sizes[i]);
    }
    for (size_t op = 0; op < p->op_count && !run->oom; op++) {
        uint32_t request = p->args[op];
        if (p->kinds[op] == OP_ALLOC && packed->offsets[request] != DRYI_NOWHERE &&
            packed->offsets[request] + p->sizes[request] > capacity)
            dryi_run_note_oom(run, r->device->first_event + p->events[op],
                              p->sizes[request]);
    }
    if (!run->oom) /* all blocks fit, only the last page does not */
        dryi_run_note_oom(run, r->device->first_event, run->packed_bytes);
}

/* Account for the driver's cost: one range, allocated once and kept. */
static enum dry_status
take_range(const struct dry_replay *r, uint64_t bytes, struct dry_run *run,
           struct dry_error *err)
{
    struct dry_sim_options options;
    dry_sim_options_init(&options);
    options.memory = &r->memory;
    struct dry_sim *sim;
    enum dry_status status = dry_sim_create(&options, &sim, err);
    if (status != DRY_OK)
        return status;
    struct dry_device device = dry_sim_get_device(sim);
    uint64_t address;
    if (bytes > 0 && device.ops->alloc(device.self, bytes, &address) != DRY_OK)
        status = dryi_fail(err, DRY_ERR_LIMIT, "no device has that much");
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(sim, &account);
    run->driver_time_ns = account.time_ns;
    run->driver_calls = dryi_driver_calls(&account);
    dry_sim_destroy(sim);
    return status;
}

static void
change(struct dry_stat *stat, int64_t by)
{
    stat->current += by;
    stat->allocated += by > 0 ? by : 0;
    stat->freed -= by < 0 ? by : 0;
    stat->peak = stat->current > stat->peak ? stat->current : stat->peak;
}

/* Count a life's begin or end: number, rounded bytes and requested bytes. */
static void
count_life(struct dry_stats *stats, uint64_t size, bool is_over)
{
    int64_t block = (int64_t)dryi_round_up(size, BLOCK_BYTES), asked = (int64_t)size;
    change(&stats->allocation.all, is_over ? -1 : 1);
    change(&stats->allocated_bytes.all, is_over ? -block : block);
    change(&stats->requested_bytes.all, is_over ? -asked : asked);
}

static void
count_lives(const struct dryi_program *p, const struct dryi_packed_program *packed,
            struct dry_stats *stats)
{
    for (uint32_t i = 0; i < p->carried_count; i++) {
        if (packed->offsets[i] != DRYI_NOWHERE)
            count_life(stats, p->sizes[i], false);
    }
    for (size_t op = 0; op < p->op_count; op++) {
        uint32_t request = p->args[op];
        bool allocs = p->kinds[op] == OP_ALLOC;
        if ((allocs || p->kinds[op] == OP_FREE) &&
            packed->offsets[request] != DRYI_NOWHERE)
            count_life(stats, p->sizes[request], !allocs);
    }
}

/* Fill in the statistics. A packing has no pools, split blocks or pending frees; these stay 0. */
static void
fill_packed(const struct dry_replay *r, const struct dryi_packed_program *packed,
            struct dry_run *run)
{
    const struct dryi_packing *packing = &packed->packing;
    uint64_t range = dryi_round_up(packing->height, PAGE_BYTES);
    struct dry_stats stats = {.max_split_size = -1};
    if (range > 0) {
        change(&stats.segment.all, 1);
        change(&stats.reserved_bytes.all, (int64_t)range);
        stats.num_device_alloc = 1;
    }
    count_lives(&r->program, packed, &stats);
    dryi_run_fill(run, &stats);
    run->packed_bytes = packing->height;
    run->floor_bytes = packing->floor;
    run->is_optimal = packing->is_optimal;
    run->method = packing->method;
    run->op_count = r->program.op_count;
}

static void
tell_alloc(const struct dryi_packed_program *packed, const struct dryi_program *p,
           uint32_t request, struct dryi_decisions *d)
{
    dryi_decisions_tell(d, (struct dry_decision){.action = DRY_ACTION_ALLOC,
                                                 .request = dryi_decisions_id(p, request),
                                                 .offset_bytes = packed->offsets[request],
                                                 .size_bytes = dryi_round_up(
                                                     p->sizes[request], BLOCK_BYTES)});
}

static enum dry_status
write_packed(const struct dry_replay *r, const struct dryi_packed_program *packed,
             uint64_t range, struct dryi_decisions *d)
{
    const struct dryi_program *p = &r->program;
    if (range > 0)
        dryi_decisions_tell(d, (struct dry_decision){.action = DRY_ACTION_SEGMENT_ALLOC,
                                                     .size_bytes = range});
    for (uint32_t i = 0; i < p->carried_count; i++) {
        if (packed->offsets[i] != DRYI_NOWHERE)
            tell_alloc(packed, p, i, d);
    }
    for (size_t op = 0; op < p->op_count; op++) {
        uint32_t request = p->args[op];
        bool allocs = p->kinds[op] == OP_ALLOC;
        if ((!allocs && p->kinds[op] != OP_FREE) ||
            packed->offsets[request] == DRYI_NOWHERE)
            continue;
        if (allocs)
            tell_alloc(packed, p, request, d);
        else
            dryi_decisions_tell(
                d, (struct dry_decision){.action = DRY_ACTION_FREE_REQUESTED,
                                         .request = dryi_decisions_id(p, request)});
    }
    return d->status;
}

enum dry_status
dryi_run_packed(struct dry_replay *r, uint64_t capacity, struct dryi_decisions *decisions,
                struct dry_run *run, struct dry_error *err)
{
    struct dryi_packed_program packed;
    enum dry_status status = pack_program(r, &packed, err);
    if (status != DRY_OK)
        return status;
    fill_packed(r, &packed, run);
    status = take_range(r, run->reserved_peak_bytes, run, err);
    hold_against(r, &packed, capacity, run);
    if (status == DRY_OK && decisions)
        status = write_packed(r, &packed, run->reserved_peak_bytes, decisions);
    dryi_packed_program_finish(&packed);
    return status;
}
