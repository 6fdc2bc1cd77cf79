/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any trace, replayed: whatever the record claims, a replay ends in a check, in runs and in
 * a record of its own, or in one status. The input is that of support/spoilt_record.h.
 */
#include "support/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#include "support/bytes.h"
#include "support/spoilt_record.h"

#define INPUT_BYTES_MAX (256u << 10)
#define RUNS_MAX 12u
#define EVENTS_FOR_CAPACITY_MAX 200
#define MIB (UINT64_C(1) << 20)

static void
require(int condition)
{
    if (!condition)
        abort();
}

/* --- every call on a trace ---------------------------------------------------------------- */

static void
check_run(const struct dry_run *run, const struct dry_trace_view *v)
{
    require(run->reserved_end_bytes <= run->reserved_peak_bytes);
    require(run->allocated_peak_bytes <= run->reserved_peak_bytes);
    /* PyTorch's own order is not always sound, and not ours to change. */
    require(run->order_fault_count == 0 || strcmp(run->place, "torch") == 0);
    require(!run->oom || v->event_count == 0 || run->oom_event < v->event_count);
}

static void
run_with(struct dry_replay *replay, const struct dry_trace_view *v,
         const struct dry_run_options *options)
{
    struct dry_run run;
    struct dry_error err = {0};
    enum dry_status status = dry_replay_run(replay, options, &run, &err);
    if (status == DRY_OK)
        check_run(&run, v);
    else
        require(err.status == status && err.text[0]);
}

/* The device checks the order of what places do, on any program. */
static void
run_in_places(struct dry_replay *replay, const struct dry_trace_view *v)
{
    static const char *const places[] = {"torch", "paged", "offline"};
    for (size_t i = 0; i < 6; i++) {
        struct dry_run_options options;
        dry_run_options_init(&options);
        options.place = places[i % 3];
        options.check_order = true;
        options.steady_from = v->event_count / 2;
        options.capacity_bytes = i < 3 ? 4096 * MIB : 64 * MIB; /* pages are counted */
        run_with(replay, v, &options);
    }
}

static void
record_with(struct dry_replay *replay, const struct dry_run_options *options)
{
    struct dry_trace *recorded;
    struct dry_error err = {0};
    enum dry_status status = dry_replay_record(replay, options, &recorded, &err);
    if (status == DRY_OK)
        dry_trace_destroy(recorded);
    else
        require(err.status == status && err.text[0]);
}

static void
run_all(struct dry_replay *replay, const struct dry_trace_view *v)
{
    static const char *const confs[] = {
        "expandable_segments:True", "max_split_size_mb:32,roundup_power2_divisions:4",
        "garbage_collection_threshold:0.5,per_process_memory_fraction:0.9"};
    struct bytes_sink to;
    struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
    struct dry_run_options options;
    dry_run_options_init(&options);
    struct dry_decision_sink decisions = bytes_sink_decisions(&sink);
    options.decisions = &decisions;
    run_with(replay, v, &options);
    bytes_sink_finish(&to);
    run_in_places(replay, v);
    options.decisions = NULL;
    record_with(replay, &options);
    options.begin_anew = true;
    options.capacity_bytes = 64 * MIB;
    options.find_capacity = v->event_count < EVENTS_FOR_CAPACITY_MAX;
    for (size_t i = 0; i < sizeof confs / sizeof *confs; i++) {
        options.conf = confs[i];
        run_with(replay, v, &options);
    }
    options.conf = NULL;
    options.compat = "2.15";
    run_with(replay, v, &options);
    record_with(replay, &options);
}

static void
check_candidates(const struct dry_recommendation *rec)
{
    const struct dry_recommend_summary *s = dry_recommend_get_summary(rec);
    size_t count;
    const struct dry_candidate *c = dry_recommend_get_candidates(rec, &count);
    require(count > 0 && s->recorded < count && s->run_count <= s->run_max);
    require((s->best == SIZE_MAX) == (s->outcome >= DRY_OUTCOME_NONE));
    for (size_t i = 0; i < count; i++) {
        require(c[i].run.oom || c[i].run.reserved_peak_bytes >= s->floor_bytes);
        require((c[i].verdict == DRY_VERDICT_BEST) == (i == s->best));
    }
}

static void
recommend(struct dry_replay *replay, uint64_t capacity_bytes)
{
    struct dry_recommend_options options;
    dry_recommend_options_init(&options);
    options.capacity_bytes = capacity_bytes;
    options.min_gain_bytes = 1;
    options.run_max = RUNS_MAX;
    struct dry_recommendation *rec;
    struct dry_error err = {0};
    enum dry_status status = dry_recommend_create(replay, &options, &rec, &err);
    if (status != DRY_OK) {
        require(err.status == status && err.text[0]);
        return;
    }
    check_candidates(rec);
    dry_recommend_destroy(rec);
}

static void
check_result(const struct dry_replay *replay)
{
    const struct dry_replay_check *check = dry_replay_get_check(replay);
    require(check->possible || (check->reason[0] && !check->exact));
    require(!check->exact || !check->has_mismatch);
    require(check->alloc_matched <= check->alloc_count &&
            check->segment_event_matched <= check->segment_event_count &&
            check->segment_matched <= check->segment_count &&
            check->block_matched <= check->block_count);
    require(!check->has_mismatch || check->first_mismatch.what[0]);
}

static void
replay_device(const struct dry_trace *trace, int32_t device)
{
    struct dry_replay_options options;
    struct dry_replay *replay;
    struct dry_error err = {0};
    dry_replay_options_init(&options);
    options.device = device;
    enum dry_status status = dry_replay_create(trace, &options, &replay, &err);
    if (status != DRY_OK) {
        require(err.status == status && err.text[0]);
        return;
    }
    check_result(replay);
    run_all(replay, dry_trace_get_view(trace));
    recommend(replay, UINT64_MAX);
    recommend(replay, 64 * MIB);
    dry_replay_destroy(replay);
}

/* --- the target --------------------------------------------------------------------------- */

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > INPUT_BYTES_MAX)
        return 0;
    struct dry_trace *trace = spoilt_record_read(data, size);
    if (!trace)
        return 0;
    replay_device(trace, DRY_DEVICE_BUSIEST);
    replay_device(trace, 0);
    replay_device(trace, DRY_DEVICE_HOST);
    dry_trace_destroy(trace);
    return 0;
}
