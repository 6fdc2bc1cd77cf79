/* SPDX-License-Identifier: Apache-2.0 */
/* A file is read, its device chosen and replayed, see fleet_study.h. */
#include "fleet/fleet_study.h"

#include "record/load.h"
#include "record/study.h"

/* A device of a trace, with the criteria for choosing it. */
struct candidate {
    int32_t device;
    bool has_oom;
    size_t event_count, segment_count;
};

static bool
is_better(const struct candidate *a, const struct candidate *b)
{
    if (a->has_oom != b->has_oom)
        return a->has_oom;
    if (a->event_count != b->event_count)
        return a->event_count > b->event_count;
    return a->segment_count > b->segment_count;
}

static struct candidate
judge_device(const struct dry_trace_view *v, const struct dry_trace_device *d)
{
    struct candidate c = {d->device, false, d->event_count, d->segment_count};
    for (size_t i = 0; i < d->event_count && !c.has_oom; i++)
        c.has_oom = v->action[d->first_event + i] == DRY_ACTION_OOM;
    return c;
}

/* Choose the device to study. Returns false if the trace has none. */
static bool
choose_device(const struct dry_trace *trace, int32_t *device)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    struct candidate best = {0};
    bool is_found = false;
    for (size_t i = 0; i < v->device_count; i++) {
        struct candidate c = judge_device(v, &v->devices[i]);
        if (c.device == DRY_DEVICE_HOST || c.event_count + c.segment_count == 0)
            continue;
        if (!is_found || is_better(&c, &best))
            best = c;
        is_found = true;
    }
    *device = best.device;
    return is_found;
}

static enum dry_status
open_device(struct fleet_study *s, struct dry_error *err)
{
    struct dry_replay_options options;
    dry_replay_options_init(&options);
    s->is_empty = !choose_device(s->subject, &options.device);
    if (s->is_empty)
        return DRY_OK;
    enum dry_status status = dry_replay_create(s->subject, &options, &s->replay, err);
    return status == DRY_OK ? dry_timeline_create(s->replay, NULL, &s->timeline, err)
                            : status;
}

enum dry_status
fleet_study_open(struct fleet_study *s, const char *path, uint64_t memory_bytes_max,
                 struct dry_error *err)
{
    *s = (struct fleet_study){0};
    enum dry_status status =
        load_trace_quietly(path, memory_bytes_max, &s->trace, &s->content, err);
    if (status != DRY_OK)
        return status;
    status = study_simulate(s->trace, NULL, &s->recorded, &s->before_count, err);
    s->is_simulated = s->recorded;
    s->subject = s->recorded ? s->recorded : s->trace;
    return status == DRY_OK ? open_device(s, err) : status;
}

enum dry_status
fleet_study_explain(struct fleet_study *s, struct dry_error *err)
{
    if (s->is_empty)
        return DRY_OK;
    struct dry_explain_device device = {s->replay, s->timeline};
    struct dry_explain_options options;
    dry_explain_options_init(&options);
    options.devices = &device;
    options.device_count = 1;
    options.run_max = 0;
    options.skip_releases = true; /* rows do not use releases */
    options.is_simulated = s->is_simulated;
    options.before_count = s->before_count;
    enum dry_status status = dry_explanation_create(&options, &s->explanation, err);
    if (status == DRY_OK)
        s->view = dry_explanation_get_view(s->explanation);
    return status;
}

void
fleet_study_close(struct fleet_study *s)
{
    dry_explanation_destroy(s->explanation);
    dry_timeline_destroy(s->timeline);
    dry_replay_destroy(s->replay);
    dry_trace_destroy(s->recorded);
    dry_trace_destroy(s->trace);
    *s = (struct fleet_study){0};
}
