/* SPDX-License-Identifier: Apache-2.0 */
/* Read, simulate if necessary, and replay each device, see study.h. */
#include "record/study.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"
#include "record/load.h"
#include "record/moment.h"

enum dry_status
study_simulate(const struct dry_trace *trace, const char *compat,
               struct dry_trace **recorded, uint32_t *before_count, struct dry_error *err)
{
    const struct dry_trace_view *v = dry_trace_get_view(trace);
    struct dry_replay *replay = NULL;
    struct dry_replay_options options;
    if (v->has_addresses || v->device_count == 0)
        return DRY_OK;
    dry_replay_options_init(&options);
    options.compat = compat;
    enum dry_status status = dry_replay_create(trace, &options, &replay, err);
    if (status == DRY_OK) {
        *before_count = (uint32_t)dry_replay_get_check(replay)->live_before;
        status = dry_replay_record(replay, NULL, recorded, err);
    }
    dry_replay_destroy(replay);
    return status;
}

static int
open_device(struct study *s, int32_t device)
{
    struct study_device *d = &s->devices[s->device_count];
    struct dry_replay_options options;
    dry_replay_options_init(&options);
    options.device = device;
    options.compat = s->compat;
    options.progress = progress_update;
    options.progress_self = &s->progress;
    struct dry_error err;
    enum dry_status status = dry_replay_create(s->subject, &options, &d->replay, &err);
    if (status == DRY_OK)
        status = dry_timeline_create(d->replay, NULL, &d->timeline, &err);
    s->device_count++;
    return status == DRY_OK ? EXIT_FINE : report_error(s->command, s->path, &err);
}

static bool
is_busier(const struct study_device *a, const struct study_device *b)
{
    const struct dry_timeline_view *x = dry_timeline_get_view(a->timeline);
    const struct dry_timeline_view *y = dry_timeline_get_view(b->timeline);
    if ((x->oom_count > 0) != (y->oom_count > 0))
        return x->oom_count > 0;
    if (x->event_count != y->event_count)
        return x->event_count > y->event_count;
    return x->segment_count > y->segment_count;
}

static int
open_devices(struct study *s, int64_t wanted)
{
    const struct dry_trace_view *v = dry_trace_get_view(s->subject);
    int code = EXIT_FINE;
    s->devices = calloc(v->device_count + 1, sizeof *s->devices);
    if (!s->devices)
        return report_memory(s->command, s->path);
    progress_begin(&s->progress, "replaying", 0);
    for (size_t i = 0; i < v->device_count && code == EXIT_FINE; i++) {
        int32_t device = v->devices[i].device;
        if (device == DRY_DEVICE_HOST ||
            (wanted != STUDY_EVERY_DEVICE && device != wanted))
            continue;
        code = open_device(s, device);
        if (code == EXIT_FINE &&
            is_busier(&s->devices[s->device_count - 1], &s->devices[s->main]))
            s->main = s->device_count - 1;
    }
    progress_end(&s->progress);
    return code;
}

int
study_open(struct study *s, const char *command, const char *path, int64_t device)
{
    return study_open_by(s, command, path, device, NULL);
}

int
study_open_by(struct study *s, const char *command, const char *path, int64_t device,
              const char *compat)
{
    *s = (struct study){.command = command, .path = path};
    if (compat && strcmp(compat, "auto") != 0)
        s->compat = compat;
    int code = load_trace(command, path, &s->trace, NULL);
    if (code != EXIT_FINE)
        return code;
    struct dry_error err;
    if (study_simulate(s->trace, s->compat, &s->recorded, &s->before_count, &err) !=
        DRY_OK)
        return report_error(command, path, &err);
    s->is_simulated = s->recorded;
    s->subject = s->recorded ? s->recorded : s->trace;
    code = open_devices(s, device);
    if (code == EXIT_FINE && s->device_count == 0)
        code = device == STUDY_EVERY_DEVICE
                   ? report_failure(command, path, EXIT_INPUT,
                                    "nothing to look at: no events and no segments")
                   : load_report_no_device(command, path, s->trace, device);
    return code;
}

void
study_close(struct study *s)
{
    for (size_t i = 0; i < s->device_count; i++) {
        dry_timeline_destroy(s->devices[i].timeline);
        dry_replay_destroy(s->devices[i].replay);
    }
    free(s->devices);
    dry_trace_destroy(s->recorded);
    dry_trace_destroy(s->trace);
    *s = (struct study){0};
}

/* Find the moment after an event, whose number counts from the start of the file. */
static int
find_event(const struct study *s, const struct dry_timeline_view *v, const char *at,
           uint32_t *moment)
{
    char *end;
    errno = 0;
    unsigned long long event = strtoull(at, &end, 10);
    if (at[0] < '0' || at[0] > '9' || *end || errno)
        return report_usage(
            s->command, "--at %s: expected oom, peak, end or the number of an event", at);
    if (v->event_count == 0)
        return report_usage(s->command, "--at %s: device %d has no events in this file",
                            at, (int)v->device);
    if (event < v->first_event || event - v->first_event >= v->event_count)
        return report_usage(s->command,
                            "--at %s: device %d has the %sevents %zu to %zu of this file",
                            at, (int)v->device, s->is_simulated ? "simulated " : "",
                            v->first_event, v->first_event + v->event_count - 1);
    *moment = (uint32_t)(event - v->first_event) + 1;
    return EXIT_FINE;
}

int
study_find_moment(const struct study *s, size_t device, const char *at, uint32_t *moment)
{
    const struct dry_timeline_view *v =
        dry_timeline_get_view(s->devices[device].timeline);
    switch (moment_find_reason(v, at)) {
    case MOMENT_OOM:
        if (v->oom_count == 0)
            return report_usage(
                s->command, "--at oom: device %d did not run out of memory in this file",
                (int)v->device);
        *moment = v->oom_event; /* the state before it, in which the request failed */
        return EXIT_FINE;
    case MOMENT_PEAK:
        *moment = v->peaks[DRY_CURVE_ACTIVE].moment;
        return EXIT_FINE;
    case MOMENT_END:
        *moment = v->dump_moment;
        return EXIT_FINE;
    case MOMENT_EVENT:
        break;
    }
    return find_event(s, v, at, moment);
}
