/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of <drystone/steps.h>. */

#include <drystone/steps.h>

/* clang-format off */
#define STEP(key, kind, unit, member, ...) \
    DRY_FIELD_OF(struct dry_step, key, kind, unit, member, DRY_KNOWN_ALWAYS, 0, __VA_ARGS__)

/* The heights come first, then the sums. */
#define FIRST_SUM "kept_bytes"
static const struct dry_field steps[] = {
    STEP("partial", BOOL, NONE, is_partial, false, "began before the window, or ends behind it"),
    STEP("first_event", SIZE, NONE, first_event, false, "its first event, over all devices of the file"),
    STEP("events", U32, COUNT, event_count, false, "how many events it has", "events"),
    STEP("begin_us", I64, NONE, begin_us, false, "when it begins"),
    STEP("end_us", I64, NONE, end_us, false, "when it ends"),
    DRY_FIELD_OF(struct dry_step, "duration_us", U64, MICROSECONDS, duration_us, DRY_KNOWN_IF_ABOVE_0,
                 offsetof(struct dry_step, duration_us), false, "until the next begins", "time"),
    STEP("peak_bytes", U64, BYTES, peak.bytes, true, "most active bytes", "peak"),
    STEP("peak_event", SIZE, EVENT, peak_event, false, "the event of the peak; null: before its first"),
    STEP("active_end_bytes", U64, BYTES, active_end, true, "active bytes at its end", "at_end"),
    STEP("reserved_peak_bytes", U64, BYTES, reserved_peak, true, "most reserved bytes"),
    STEP("reserved_end_bytes", U64, BYTES, reserved_end, true, "reserved bytes at its end"),
    STEP(FIRST_SUM, U64, BYTES, kept_bytes, true, "allocated in it and in use when the next step ends", "kept"),
    STEP("alloc_bytes", U64, BYTES, alloc_bytes, true, "bytes of all its allocations", "alloc"),
    STEP("allocs", U32, COUNT, alloc_count, false, "how many allocations"),
    STEP("temporary_bytes", U64, BYTES, temporary_bytes, false, "bytes that were freed before 8 others were allocated", "temp."),
    STEP("temporaries", U32, COUNT, temporary_count, false, "how many of these"),
};

#define GROWTH(key, kind, unit, member, ...) \
    DRY_FIELD_OF(struct dry_growth, key, kind, unit, member, DRY_KNOWN_ALWAYS, 0, __VA_ARGS__)

static const struct dry_field growth[] = {
    GROWTH("requested_bytes", U64, BYTES, requested_bytes, false, "what its latest block asked for"),
    GROWTH("bytes_per_step", U64, BYTES, bytes_per_step, true, "what it leaves behind in a step", "a_step"),
    GROWTH("blocks_per_step", U64, COUNT, count_per_step, true, "how many blocks; 0: not every step", "blocks"),
    GROWTH("bytes", U64, BYTES, bytes, true, "what is still in use, of all whole steps", "alive"),
    GROWTH("steps", U32, COUNT, step_count, true, "steps that left something that is still in use", "steps"),
    GROWTH("last_event", SIZE, NONE, last_event, false, "the event of its latest block"),
    GROWTH("confidence", REAL, SHARE, confidence, true, "the share of the steps that left the same behind", "regular"),
};
/* clang-format on */

struct dry_fields
dry_step_get_fields(enum dry_step_part part)
{
    const struct dry_fields all = DRY_FIELDS_OF(steps);
    size_t heights = (size_t)(dry_fields_find(&all, FIRST_SUM) - steps);
    const struct dry_fields parts[] = {
        [DRY_STEP_WHOLE] = all,
        [DRY_STEP_HEIGHTS] = {steps, heights},
        [DRY_STEP_SUMS] = {steps + heights, all.count - heights}};
    return parts[part];
}

struct dry_fields
dry_growth_get_fields(void)
{
    return DRY_FIELDS_OF(growth);
}
