/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Replay the program as it would be without a leak, with its other pools emptied, with frees that
 * wait for no stream, or beside nobody else, up to the OOM. A leak goes by freeing what it left
 * behind at the end of each step. A pool is emptied by moving its blocks to where the request is
 * made.
 *
 * A replay begins on an empty device. It proves something only if the recorded program fails there,
 * too. That is so if the search for settings saw it fail, or if no layout would have been enough.
 * Cost: O(allocations x growing lines), and a run or two for each change.
 */
#include "base/fail.h"
#include "base/memory.h"
#include "explain/steps/steps_inside.h"
#include "explain/verdict/explanation_inside.h"
#include "replay/altered/altered.h"
#include "replay/inside.h"
#include "trace/from_pool.h"

static bool
comes_back(const struct dry_explanation *e)
{
    if (!e->settings)
        return dryi_explain_missing(e) > 0;
    const struct dry_recommend_summary *s = dry_recommend_get_summary(e->settings);
    size_t count;
    return !s->evidence_gap && s->recorded < SIZE_MAX &&
           !dry_recommend_get_candidates(e->settings, &count)[s->recorded].run.gets_past;
}

static bool
may_replay(const struct dry_explanation *e)
{
    struct dry_replay *replay = e->subject.replay;
    return e->options.run_max > 0 && !dryi_trace_is_foreign(dryi_replay_trace(replay)) &&
           !dryi_replay_program(replay)->inconsistency &&
           dryi_replay_conf(replay)->per_process_memory_fraction >= 1.0 && comes_back(e);
}

static bool
is_leaked(const struct dry_explanation *e, const struct dry_allocation *a)
{
    size_t count;
    const struct dry_growth *lines = dry_steps_get_growth(e->steps, &count);
    for (size_t i = 0; i < count; i++) {
        if (lines[i].confidence >= DRYI_LEAK_CONFIDENCE_MIN &&
            dryi_growth_counts(e->steps, &lines[i], a))
            return true;
    }
    return false;
}

/* Collect the frees at the ends of steps. Returns false if memory ran out. */
static bool
collect_frees(const struct dry_explanation *e, struct dryi_early_free **frees,
              size_t *capacity, size_t *used)
{
    const struct dry_timeline_view *t = e->timeline;
    uint32_t step_count;
    const struct dry_step *steps = dry_steps_get(e->steps, &step_count);
    for (uint32_t i = 0; i < t->allocation_count - t->carried_over_count; i++) {
        const struct dry_allocation *a = &t->allocations[i];
        if (!is_leaked(e, a))
            continue;
        if (!dryi_memory_grow(&e->memory, frees, capacity, *used + 1, sizeof **frees))
            return false;
        (*frees)[(*used)++] = (struct dryi_early_free){
            .alloc_event = a->begin - 1,
            .free_event = steps[dry_steps_find(e->steps, a->begin - 1)].end};
    }
    return true;
}

enum dry_status
dryi_explain_need(struct dry_explanation *e, enum dry_change_kind kind, uint64_t *need,
                  struct dry_error *err)
{
    bool is_leak = kind == DRY_CHANGE_LEAK, is_pool = kind == DRY_CHANGE_POOL;
    bool is_streams = kind == DRY_CHANGE_STREAMS;
    struct dryi_early_free *frees = NULL;
    size_t capacity = 0, count = 0;
    *need = 0;
    if (!(is_leak || is_pool || is_streams || kind == DRY_CHANGE_OTHER) || !may_replay(e))
        return DRY_OK;
    enum dry_status status = DRY_OK;
    if (is_leak && !collect_frees(e, &frees, &capacity, &count))
        status = dryi_fail_memory(err, "what a leak left behind");
    struct dryi_alteration wanted = {.oom_event = e->view.moment,
                                     .device_bytes = dryi_explain_device(e, kind),
                                     .frees = frees,
                                     .free_count = count,
                                     .gathers = is_pool,
                                     .ignores_streams = is_streams};
    if (status == DRY_OK)
        status = dryi_replay_find_need(e->subject.replay, &wanted, need, err);
    dryi_memory_free(&e->memory, frees, capacity, sizeof *frees);
    return status;
}
