/* SPDX-License-Identifier: Apache-2.0 */
/* Sizes and offsets of <drystone/live.h>, as JSON for test/publish/layout.py. */
#include <stdio.h>

#include <drystone/live.h>

#define AT(name, member) printf(", \"%s\": %zu", #member, offsetof(struct name, member))
#define BEGIN(name)                                                                      \
    printf("%s\"%s\": {\"size\": %zu", separator, #name, sizeof(struct name)),           \
        separator = "},\n "

/* Those that a program fills. */
static const char *
print_written(const char *separator)
{
    BEGIN(dry_live_options);
    AT(dry_live_options, memory);
    AT(dry_live_options, folder);
    AT(dry_live_options, name);
    AT(dry_live_options, labels);
    AT(dry_live_options, rank);
    AT(dry_live_options, world);
    AT(dry_live_options, detail_rest);
    BEGIN(dry_live_figures);
    AT(dry_live_figures, reserved);
    AT(dry_live_figures, allocated);
    AT(dry_live_figures, active);
    AT(dry_live_figures, requested);
    AT(dry_live_figures, reserved_peak);
    AT(dry_live_figures, allocated_peak);
    AT(dry_live_figures, limit);
    AT(dry_live_figures, retries);
    AT(dry_live_figures, ooms);
    AT(dry_live_figures, driver_allocs);
    AT(dry_live_figures, driver_frees);
    AT(dry_live_figures, driver_calls);
    AT(dry_live_figures, pages_moved);
    AT(dry_live_figures, driver_time_ns);
    BEGIN(dry_live_lane);
    AT(dry_live_lane, stream);
    AT(dry_live_lane, reserved);
    AT(dry_live_lane, allocated);
    AT(dry_live_lane, pending);
    AT(dry_live_lane, releasable);
    AT(dry_live_lane, stranded);
    AT(dry_live_lane, largest_hole);
    BEGIN(dry_live_line);
    AT(dry_live_line, text);
    AT(dry_live_line, bytes);
    AT(dry_live_line, count);
    BEGIN(dry_live_detail);
    AT(dry_live_detail, at_ns);
    AT(dry_live_detail, reserved);
    AT(dry_live_detail, pending);
    AT(dry_live_detail, releasable);
    AT(dry_live_detail, stranded);
    AT(dry_live_detail, largest_hole);
    AT(dry_live_detail, lane_count);
    AT(dry_live_detail, line_count);
    AT(dry_live_detail, stock);
    AT(dry_live_detail, more_lanes);
    AT(dry_live_detail, lanes);
    AT(dry_live_detail, lines);
    return separator;
}

/* Those that a reader gets. */
static void
print_read(const char *separator)
{
    BEGIN(dry_live_source);
    AT(dry_live_source, kind);
    AT(dry_live_source, device);
    AT(dry_live_source, name);
    AT(dry_live_source, uuid);
    AT(dry_live_source, updated_ns);
    AT(dry_live_source, updates);
    AT(dry_live_source, figures);
    AT(dry_live_source, detail);
    BEGIN(dry_live_program);
    AT(dry_live_program, process);
    AT(dry_live_program, started_ns);
    AT(dry_live_program, rank);
    AT(dry_live_program, world);
    AT(dry_live_program, name);
    AT(dry_live_program, labels);
    BEGIN(dry_live_answer);
    AT(dry_live_answer, number);
    AT(dry_live_answer, result);
    AT(dry_live_answer, text);
}

int
main(void)
{
    print_read(print_written("{"));
    printf("},\n \"constants\": {\"kinds\": [%d, %d], \"lanes\": %u, \"lines\": %u, "
           "\"text\": %u, \"path\": %u}}\n",
           DRY_LIVE_PINNED, DRY_LIVE_OTHER, DRY_LIVE_LANES_MAX, DRY_LIVE_LINES_MAX,
           DRY_LIVE_TEXT_BYTES, DRY_LIVE_PATH_BYTES);
    return 0;
}
