/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Any trace as a timeline: whatever the record claims, there is a timeline or one status, and
 * its lives, states, curves and drawings are what prop/timeline_model.h says they must be. The
 * input is that of support/spoilt_record.h.
 */
#include "support/fuzz.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include <drystone/drystone.h>

#include "prop/timeline_model.h"
#include "support/random.h"
#include "support/spoilt_record.h"

#define INPUT_BYTES_MAX (64u << 10)
#define STATE_COUNT 6
#define PICTURE_COUNT 3

static void
require(const char *problem)
{
    if (!problem)
        return;
    fprintf(stderr, "%s\n", problem);
    abort();
}

static struct dry_axis
random_axis(struct random *r, uint32_t dump_moment, uint32_t columns_max)
{
    struct dry_axis axis = {.from = (uint32_t)random_below(r, dump_moment + UINT64_C(1))};
    axis.to = axis.from + 1 + (uint32_t)random_below(r, dump_moment + 1 - axis.from);
    axis.column_count = 1 + (uint32_t)random_below(r, columns_max);
    axis.is_time = random_below(r, 2) != 0;
    return axis;
}

static void
check_pictures(const struct timeline_model *model, struct random *r)
{
    for (int i = 0; i < PICTURE_COUNT; i++) {
        struct dry_axis axis = random_axis(r, model->view->dump_moment, 300);
        enum dry_curve curve = (enum dry_curve)random_below(r, DRY_CURVE_COUNT);
        require(timeline_model_check_curve(model, curve, &axis));
        axis = random_axis(r, model->view->dump_moment, 20);
        enum dry_stacking stacking =
            random_below(r, 2) ? DRY_STACKING_BIRTH : DRY_STACKING_LONG_LIVED;
        uint64_t min_bytes = random_below(r, 2) ? random_below(r, 1 << 22) : 0;
        require(timeline_model_check_drawing(model, &axis, stacking, min_bytes));
    }
}

static void
check_timeline(const struct dry_timeline *timeline, struct random *r)
{
    struct timeline_model model;
    timeline_model_init(&model, timeline);
    require(timeline_model_check(&model));
    uint32_t dump = model.view->dump_moment;
    require(timeline_model_check_state(&model, dump, NULL));
    for (int i = 0; i < STATE_COUNT; i++) {
        uint32_t moment = (uint32_t)random_below(r, dump);
        require(timeline_model_check_state(&model, moment, NULL));
    }
    check_pictures(&model, r);
    timeline_model_finish(&model);
}

static void
look_at_device(const struct dry_trace *trace, int32_t device, struct random *r)
{
    struct dry_replay_options options;
    struct dry_replay *replay;
    struct dry_timeline *timeline;
    struct dry_error err = {0};
    dry_replay_options_init(&options);
    options.device = device;
    if (dry_replay_create(trace, &options, &replay, &err) != DRY_OK)
        return; /* fuzz_replay looks at that */
    enum dry_status status = dry_timeline_create(replay, NULL, &timeline, &err);
    if (status == DRY_OK) {
        check_timeline(timeline, r);
        dry_timeline_destroy(timeline);
    } else if (err.status != status || !err.text[0] ||
               (status != DRY_ERR_LIMIT && status != DRY_ERR_UNSUPPORTED)) {
        require("only limits and traces without addresses are refused");
    }
    dry_replay_destroy(replay);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > INPUT_BYTES_MAX)
        return 0;
    struct dry_trace *trace = spoilt_record_read(data, size);
    if (!trace)
        return 0;
    struct random r;
    random_init(&r, size); /* the last bytes choose, so that a fuzzer can */
    for (size_t i = size > 8 ? size - 8 : 0; i < size; i++)
        r.state = r.state * 257 + data[i];
    look_at_device(trace, DRY_DEVICE_BUSIEST, &r);
    look_at_device(trace, 0, &r);
    dry_trace_destroy(trace);
    return 0;
}
