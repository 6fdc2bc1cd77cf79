/* SPDX-License-Identifier: Apache-2.0 */

/* Field tables for the structs of <drystone/replay.h>. */

#include <drystone/replay.h>

/* clang-format off */

/* --- a run -------------------------------------------------------------------------------- */

#define RUN(...) DRY_FIELD_OF(struct dry_run, __VA_ARGS__)
#define RUN_IF(member) DRY_KNOWN_IF, offsetof(struct dry_run, member)
#define RUN_ABOVE_0(member) DRY_KNOWN_IF_ABOVE_0, offsetof(struct dry_run, member)
#define ALWAYS DRY_KNOWN_ALWAYS, 0

static const struct dry_field run_list[] = {
    RUN("place", TEXT, NONE, place, ALWAYS, false, "who decided where a request goes"),
    RUN("as_recorded", BOOL, NONE, as_recorded, ALWAYS, false, "began from the rebuilt layout"),
    RUN("oom", BOOL, NONE, oom, ALWAYS, true, "ended with an OOM"),
    RUN("oom_at_event", SIZE, EVENT, oom_event, RUN_IF(oom), false, "the event that it ended at"),
    RUN("reserved_peak_bytes", U64, BYTES, reserved_peak_bytes, ALWAYS, true,
        "reserved at the peak"),
    RUN("reserved_end_bytes", U64, BYTES, reserved_end_bytes, ALWAYS, true,
        "reserved at the end"),
    RUN("allocated_peak_bytes", U64, BYTES, allocated_peak_bytes, ALWAYS, true,
        "allocated at the peak, as the allocator rounds"),
    RUN("requested_peak_bytes", U64, BYTES, requested_peak_bytes, ALWAYS, true,
        "requested at the peak"),
    RUN("capacity_bytes", U64, BYTES, capacity_bytes, RUN_ABOVE_0(capacity_bytes), true,
        "the smallest device that the run fits on"),
    RUN("num_device_alloc", I64, COUNT, stats.num_device_alloc, ALWAYS, false,
        "allocations of the driver's"),
    RUN("num_device_free", I64, COUNT, stats.num_device_free, ALWAYS, false,
        "frees of the driver's"),
    RUN("num_alloc_retries", I64, COUNT, stats.num_alloc_retries, ALWAYS, true,
        "requests tried again after the cache was emptied"),
    RUN("num_ooms", I64, COUNT, stats.num_ooms, ALWAYS, true, "OOMs"),
    RUN("driver_time_us", U64, NANOSECONDS, driver_time_ns, ALWAYS, false,
        "time in the driver, modelled"),
    RUN("driver_calls", U64, COUNT, driver_calls, ALWAYS, true,
        "calls that take, map, unmap or give back"),
    RUN("pages_created", U64, COUNT, pages_created, ALWAYS, false, "pages created"),
    RUN("pages_released", U64, COUNT, pages_released, ALWAYS, false, "pages released"),
    RUN("pages_remapped", U64, COUNT, pages_remapped, ALWAYS, false,
        "pages taken from free memory and mapped elsewhere"),
    RUN("reused_ordered", U64, COUNT, reused_ordered, ALWAYS, false,
        "blocks of another stream, behind a known order"),
    RUN("reused_passed", U64, COUNT, reused_passed, ALWAYS, false,
        "blocks of another stream, behind a complete event"),
    RUN("reused_waiting", U64, COUNT, reused_waiting, ALWAYS, false,
        "blocks of another stream, behind a wait"),
    RUN("plans_made", U64, COUNT, plans_made, ALWAYS, false, "layouts of a period"),
    RUN("hints_taken", U64, COUNT, hints_taken, ALWAYS, false,
        "requests served where the layout has them"),
    RUN("hints_refused", U64, COUNT, hints_refused, ALWAYS, false,
        "requests whose place was not free"),
};

static const struct dry_field packed_list[] = {
    RUN("bytes", U64, BYTES, packed_bytes, ALWAYS, true, "height of the packing"),
    RUN("floor_bytes", U64, BYTES, floor_bytes, ALWAYS, false, "no packing is lower"),
    RUN("optimal", BOOL, NONE, is_optimal, ALWAYS, false, "no lower one is possible"),
    RUN("method", TEXT, NONE, method, ALWAYS, false, "the method that found it"),
};

static const struct dry_field steady_list[] = {
    RUN("reserved_peak_bytes", U64, BYTES, steady_reserved_peak_bytes, ALWAYS, true,
        "reserved at the peak of the part"),
    RUN("driver_calls", U64, COUNT, steady_driver_calls, ALWAYS, true, "driver calls in the part"),
    RUN("pages_remapped", U64, COUNT, steady_pages_remapped, ALWAYS, false,
        "pages moved in the part"),
    RUN("driver_time_us", U64, NANOSECONDS, steady_driver_time_ns, ALWAYS, false,
        "time in the driver in the part, modelled"),
};

static const struct dry_field order_list[] = {
    RUN("faults", U64, COUNT, order_fault_count, ALWAYS, true,
        "blocks reused before their last use was over"),
    RUN("first", CHARS, NONE, first_order_fault, RUN_ABOVE_0(order_fault_count), false,
        "the first of them"),
};

/* --- the check and the record --------------------------------------------------------------- */

#define CHECK(...) DRY_FIELD_OF(struct dry_replay_check, __VA_ARGS__)
#define CHECKED(key, member, meaning) CHECK(key, SIZE, COUNT, member, ALWAYS, false, meaning)

static const struct dry_field check_list[] = {
    CHECK("possible", BOOL, NONE, possible, ALWAYS, false, "the recording can be checked"),
    CHECK("exact", BOOL, NONE, exact, ALWAYS, false, "every address and event came out"),
    CHECK("compat", TEXT, NONE, compat, ALWAYS, false, "the release whose rules were used"),
    CHECK("reason", CHARS, NONE, reason, DRY_KNOWN_UNLESS,
          offsetof(struct dry_replay_check, possible), false, "why no check is possible"),
    CHECKED("segment_events", segment_event_count, "events of segments"),
    CHECKED("matched", segment_event_matched, "of those, that came out"),
    CHECKED("allocs", alloc_count, "allocations"),
    CHECKED("allocs_matched", alloc_matched, "of those, at their address"),
    CHECKED("segments", segment_count, "segments at the end"),
    CHECKED("segments_matched", segment_matched, "of those, that came out"),
    CHECKED("blocks", block_count, "blocks at the end"),
    CHECKED("blocks_matched", block_matched, "of those, that came out"),
    CHECKED("live_before", live_before, "blocks older than the window"),
    CHECKED("sizes_inferred", sizes_inferred, "of those, with an inferred size"),
    CHECKED("frees_inferred", frees_inferred, "frees after the last event"),
    CHECKED("pending_frees", pending_count, "frees that waited for a stream"),
    CHECKED("empty_caches", empty_cache_count, "calls of empty_cache() by the program"),
    CHECKED("retries", retry_count, "requests tried again on a full device"),
    CHECKED("frees_assumed", assumed_count, "frees taken as complete when requested"),
    CHECKED("unknown_events", unknown_count, "events of unknown actions, skipped"),
};

#define REC(...) DRY_FIELD_OF(struct dry_replay_recorded, __VA_ARGS__)
#define REC_ABOVE_0(member) DRY_KNOWN_IF_ABOVE_0, offsetof(struct dry_replay_recorded, member)

static const struct dry_field recorded_list[] = {
    REC("reserved_peak_bytes", U64, BYTES, reserved_peak_bytes, REC_ABOVE_0(reserved_peak_bytes),
        true, "reserved at the peak, from the recording alone"),
    REC("reserved_end_bytes", U64, BYTES, reserved_end_bytes, REC_ABOVE_0(reserved_peak_bytes),
        true, "reserved at the end"),
    REC("allocated_peak_bytes", U64, BYTES, allocated_peak_bytes,
        REC_ABOVE_0(allocated_peak_bytes), true, "allocated at the peak"),
    REC("live_peak_bytes", U64, BYTES, live_peak_bytes, REC_ABOVE_0(live_peak_bytes), true,
        "live at the peak: any place needs these"),
    REC("conf_problem", TEXT, NONE, conf_problem, ALWAYS, false,
        "why the option string could not be read whole"),
    REC("oom", BOOL, NONE, oom, ALWAYS, true, "the recording holds an OOM"),
    REC("oom_at_event", SIZE, EVENT, oom_event, DRY_KNOWN_IF,
        offsetof(struct dry_replay_recorded, oom), false, "its event"),
    REC("capacity_bytes", U64, BYTES, capacity_bytes, REC_ABOVE_0(capacity_bytes), false,
        "room for PyTorch at the OOM"),
    REC("capacity_low_bytes", U64, BYTES, capacity_low_bytes, REC_ABOVE_0(capacity_high_bytes),
        false, "room for PyTorch, at least"),
    REC("capacity_high_bytes", U64, BYTES, capacity_high_bytes, REC_ABOVE_0(capacity_high_bytes),
        false, "room for PyTorch, less than"),
};
/* clang-format on */

struct dry_fields
dry_run_get_fields(enum dry_run_part part)
{
    const struct dry_fields parts[] = {[DRY_RUN_WHOLE] = DRY_FIELDS_OF(run_list),
                                       [DRY_RUN_PACKED] = DRY_FIELDS_OF(packed_list),
                                       [DRY_RUN_STEADY] = DRY_FIELDS_OF(steady_list),
                                       [DRY_RUN_ORDER] = DRY_FIELDS_OF(order_list)};
    return parts[part];
}

struct dry_fields
dry_replay_check_get_fields(void)
{
    return DRY_FIELDS_OF(check_list);
}

struct dry_fields
dry_replay_recorded_get_fields(void)
{
    return DRY_FIELDS_OF(recorded_list);
}
