/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any trace step by step: steps cover the window, whatever its stacks, marks and times claim;
 * figures are within their bounds; every allocation gets a category. The input is that of
 * support/spoilt_record.h; its last byte cuts the window.
 */
#include "support/fuzz.h"

#include <stdlib.h>

#include <drystone/drystone.h>

#include "support/spoilt_record.h"

#define INPUT_BYTES_MAX (64u << 10)

static void
require(int condition)
{
    if (!condition)
        abort();
}

static void
check_steps(const struct dry_steps *steps, uint32_t until)
{
    uint32_t count;
    const struct dry_step *rows = dry_steps_get(steps, &count);
    require(count > 0 && rows[0].begin == 0 && rows[count - 1].end == until);
    for (uint32_t i = 0; i < count; i++) {
        require(rows[i].begin < rows[i].end);
        require(i == 0 || rows[i].begin == rows[i - 1].end);
        require(dry_steps_find(steps, rows[i].begin) == i);
        require(dry_steps_find(steps, rows[i].end - 1) == i);
        require(rows[i].peak.moment >= rows[i].begin &&
                rows[i].peak.moment < rows[i].end);
        require(rows[i].temporary_count <= rows[i].alloc_count);
        require(rows[i].temporary_bytes <= rows[i].alloc_bytes);
        require(rows[i].reserved_end <= rows[i].reserved_peak);
        require(i == 0 ||
                rows[i].first_event == rows[i - 1].first_event + rows[i - 1].event_count);
    }
    double confidence = dry_steps_get_confidence(steps);
    require(confidence >= 0.0 && confidence <= 1.0);
    size_t growth_count;
    const struct dry_growth *growth = dry_steps_get_growth(steps, &growth_count);
    for (size_t i = 0; i < growth_count; i++) {
        require(growth[i].bytes_per_step > 0 && growth[i].step_count <= count);
        require(growth[i].confidence >= 0.0 && growth[i].confidence <= 1.0);
    }
}

static void
check_categories(const struct dry_timeline *timeline, const struct dry_steps *steps)
{
    struct dry_categories *categories;
    struct dry_error err;
    require(dry_categories_create(timeline, steps, NULL, &categories, &err) == DRY_OK);
    const struct dry_category_guess *g = dry_categories_get(categories);
    uint32_t count = dry_timeline_get_view(timeline)->allocation_count;
    for (uint32_t a = 0; a < count; a++) {
        require(g[a].category < DRY_CATEGORY_COUNT && g[a].confidence <= 95);
        require((g[a].category == DRY_CATEGORY_UNKNOWN) == (g[a].confidence == 0));
    }
    dry_categories_destroy(categories);
}

static void
check_timeline(const struct dry_timeline *timeline, uint8_t choice)
{
    uint32_t dump = dry_timeline_get_view(timeline)->dump_moment;
    struct dry_steps_options options;
    struct dry_steps *steps;
    struct dry_error err;
    dry_steps_options_init(&options);
    if (choice % 2)
        options.until = 1 + (uint32_t)((uint64_t)dump * choice / 256);
    require(dry_steps_create(timeline, &options, &steps, &err) == DRY_OK);
    check_steps(steps, options.until < dump ? options.until : dump);
    check_categories(timeline, steps);
    dry_steps_destroy(steps);
}

/* DRY_ERR_UNSUPPORTED: the trace has no addresses. */
static enum dry_status
look_at(const struct dry_trace *trace, uint8_t choice)
{
    struct dry_replay *replay;
    struct dry_timeline *timeline;
    struct dry_error err;
    if (dry_replay_create(trace, NULL, &replay, &err) != DRY_OK)
        return DRY_OK; /* fuzz_replay looks at that */
    enum dry_status status = dry_timeline_create(replay, NULL, &timeline, &err);
    if (status == DRY_OK) {
        check_timeline(timeline, choice);
        dry_timeline_destroy(timeline);
    }
    dry_replay_destroy(replay);
    return status;
}

static void
look_at_recorded(const struct dry_trace *requests, uint8_t choice)
{
    struct dry_replay *replay;
    struct dry_trace *trace;
    struct dry_error err;
    if (dry_replay_create(requests, NULL, &replay, &err) != DRY_OK)
        return;
    if (dry_replay_record(replay, NULL, &trace, &err) == DRY_OK) {
        look_at(trace, choice);
        dry_trace_destroy(trace);
    }
    dry_replay_destroy(replay);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dry_trace *trace =
        size > INPUT_BYTES_MAX ? NULL : spoilt_record_read(data, size);
    if (!trace)
        return 0;
    uint8_t choice = size > 0 ? data[size - 1] : 0;
    if (look_at(trace, choice) == DRY_ERR_UNSUPPORTED)
        look_at_recorded(trace, choice);
    dry_trace_destroy(trace);
    return 0;
}
