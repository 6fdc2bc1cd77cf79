/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of <drystone/live.h>. */

#include <drystone/live.h>

/* clang-format off */
#define KNOWN(type, member) DRY_KNOWN_UNLESS_MAX, offsetof(type, member), false

#define FIGURE(key, unit, member, meaning)                                               \
    DRY_FIELD_OF(struct dry_live_figures, key, U64, unit, member,                        \
                 KNOWN(struct dry_live_figures, member), meaning)

static const struct dry_field figures[] = {
    FIGURE("reserved_bytes", BYTES, reserved, "bytes that the allocator has from the driver"),
    FIGURE("allocated_bytes", BYTES, allocated, "bytes in blocks that the program has allocated"),
    FIGURE("active_bytes", BYTES, active, "allocated bytes, and freed ones that wait for a stream"),
    FIGURE("requested_bytes", BYTES, requested, "bytes that the program asked for, of the active ones"),
    FIGURE("reserved_peak_bytes", BYTES, reserved_peak, "the most bytes reserved so far"),
    FIGURE("allocated_peak_bytes", BYTES, allocated_peak, "the most bytes allocated so far"),
    FIGURE("retries", TOTAL, retries, "requests that were served only after cached memory went back"),
    FIGURE("ooms", TOTAL, ooms, "requests that were refused for want of memory"),
    FIGURE("driver_allocs", TOTAL, driver_allocs, "calls that took memory from the driver"),
    FIGURE("driver_frees", TOTAL, driver_frees, "calls that gave memory back to the driver"),
    FIGURE("driver_calls", TOTAL, driver_calls, "calls of the driver except queries"),
    FIGURE("pages_moved", TOTAL, pages_moved, "pages taken from free memory and mapped elsewhere"),
    FIGURE("driver_time_us", NANOSECONDS, driver_time_ns, "time in the driver's calls for memory, and in waits"),
};

#define SUM(type, key, member, meaning)                                                  \
    DRY_FIELD_OF(type, key "_bytes", U64, BYTES, member, KNOWN(type, member), meaning)
#define DETAIL(...) SUM(struct dry_live_detail, __VA_ARGS__)
#define LANE(...) SUM(struct dry_live_lane, __VA_ARGS__)

static const struct dry_field details[] = {
    DETAIL("reserved", reserved, "bytes reserved at the walk"),
    DETAIL("pending", pending, "freed bytes that wait for a stream"),
    DETAIL("releasable", releasable, "free bytes that the driver could have back"),
    DETAIL("stranded", stranded, "free bytes beside active or private blocks"),
    DETAIL("largest_hole", largest_hole, "the largest free block"),
    DETAIL("stock", stock, "releasable bytes in pages of no stream"),
};

static const struct dry_field lanes[] = {
    LANE("reserved", reserved, "bytes reserved for a stream in a pool"),
    LANE("allocated", allocated, "bytes in blocks that the program has allocated"),
    LANE("pending", pending, "freed bytes that wait for a stream"),
    LANE("releasable", releasable, "free bytes that the driver could have back"),
    LANE("stranded", stranded, "free bytes beside active or private blocks"),
    LANE("largest_hole", largest_hole, "the largest free block"),
};
/* clang-format on */

struct dry_fields
dry_live_get_fields(enum dry_live_part part)
{
    switch (part) {
    case DRY_LIVE_DETAIL:
        return DRY_FIELDS_OF(details);
    case DRY_LIVE_LANE:
        return DRY_FIELDS_OF(lanes);
    case DRY_LIVE_FIGURES:
        break;
    }
    return DRY_FIELDS_OF(figures);
}
