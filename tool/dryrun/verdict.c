/* SPDX-License-Identifier: Apache-2.0 */
/* See verdict.h. Cost: one replay per card and per setting, each O(events). */
#include "dryrun/verdict.h"

#include <stdlib.h>

#include "base/command.h"
#include "base/report.h"
#include "record/load.h"

#define SETTING_RUNS 12 /* replays of other settings, the limit of `explain` */

/* --- other cards -------------------------------------------------------------------------- */

uint64_t
trial_spare_bytes(uint64_t bytes, uint64_t taken)
{
    return bytes > taken ? bytes - taken : 0;
}

uint64_t
trial_torch_bytes(const struct dry_card *card, uint64_t nccl_bytes)
{
    return trial_spare_bytes(card->usable_bytes, card->context_bytes + nccl_bytes);
}

static size_t
count_cards(void)
{
    size_t count = 0;
    while (dry_card_get(count))
        count++;
    return count;
}

static enum dry_status
replay_in(struct dry_replay *replay, uint64_t capacity, struct dry_run *run,
          struct dry_error *err)
{
    struct dry_run_options options;
    dry_run_options_init(&options);
    options.begin_anew = true;
    options.capacity_bytes = capacity;
    return dry_replay_run(replay, &options, run, err);
}

static enum dry_status
replay_on(struct dry_replay *replay, struct trial_verdict_card *row,
          struct dry_error *err)
{
    struct dry_run run;
    if (row->torch_bytes == 0) /* a capacity of 0 would be no limit */
        return DRY_OK;
    enum dry_status status = replay_in(replay, row->torch_bytes, &run, err);
    if (status != DRY_OK)
        return status;
    row->fits = !run.oom;
    row->reserved = run.reserved_peak_bytes;
    row->retries = (uint64_t)run.stats.num_alloc_retries;
    return DRY_OK;
}

static int
replay_cards(struct trial_verdict *v, uint64_t nccl_bytes)
{
    struct study *s = &v->study;
    struct dry_replay *replay = s->devices[s->main].replay;
    struct dry_error err;
    v->cards = calloc(count_cards() + 1, sizeof *v->cards);
    if (!v->cards)
        return report_memory(s->command, s->path);
    progress_begin(&s->progress, "replaying on other cards", 0);
    enum dry_status status = DRY_OK;
    for (; dry_card_get(v->card_count) && status == DRY_OK; v->card_count++) {
        struct trial_verdict_card *row = &v->cards[v->card_count];
        row->card = dry_card_get(v->card_count);
        row->torch_bytes = trial_torch_bytes(row->card, nccl_bytes);
        status = replay_on(replay, row, &err);
    }
    progress_end(&s->progress);
    return status == DRY_OK ? EXIT_FINE : report_error(s->command, s->path, &err);
}

/* --- the peak, or the failure ------------------------------------------------------------- */

static bool
on_progress(void *self, size_t run_count, size_t run_max)
{
    struct trial_verdict *v = self;
    (void)run_max;
    return progress_update(&v->study.progress, run_count);
}

static int
explain(struct trial_verdict *v)
{
    struct study *s = &v->study;
    struct dry_explain_options options;
    struct dry_error err;
    struct dry_explain_device *devices = calloc(s->device_count, sizeof *devices);
    if (!devices)
        return report_memory(s->command, s->path);
    for (size_t i = 0; i < s->device_count; i++) {
        devices[i].replay = s->devices[i].replay;
        devices[i].timeline = s->devices[i].timeline;
    }
    dry_explain_options_init(&options);
    options.devices = devices;
    options.device_count = s->device_count;
    options.subject = s->main;
    options.run_max = v->is_cut ? 0 : SETTING_RUNS;
    options.progress = on_progress;
    options.progress_self = v;
    progress_begin(&s->progress, "replaying other settings", 0);
    enum dry_status status = dry_explanation_create(&options, &v->explanation, &err);
    progress_end(&s->progress);
    free(devices);
    if (status != DRY_OK)
        return report_error(s->command, s->path, &err);
    v->view = dry_explanation_get_view(v->explanation);
    return EXIT_FINE;
}

/* Tell whether a block was freed later than requested, because another stream still used
   the block. Without such blocks, late events cannot change the peak. */
static bool
find_deferred(const struct dry_trace_view *v)
{
    for (size_t i = 0; i < v->event_count; i++) {
        if (v->action[i] != DRY_ACTION_FREE_REQUESTED)
            continue;
        bool is_next = i + 1 < v->event_count &&
                       v->action[i + 1] == DRY_ACTION_FREE_COMPLETED &&
                       v->addr[i + 1] == v->addr[i];
        if (!is_next)
            return true;
    }
    return false;
}

int
trial_verdict_make(struct trial_verdict *v, const struct trial_verdict_inputs *inputs)
{
    *v = (struct trial_verdict){0};
    int code = study_open(&v->study, inputs->command, inputs->path, STUDY_EVERY_DEVICE);
    if (code != EXIT_FINE || v->study.device_count == 0)
        return code;
    const struct study_device *d = &v->study.devices[v->study.main];
    v->check = *dry_replay_get_check(d->replay);
    v->has_deferred = find_deferred(dry_trace_get_view(v->study.trace));
    v->has_oom = dry_replay_get_recorded(d->replay)->oom;
    v->is_cut = dry_timeline_get_view(d->timeline)->event_count >= inputs->event_max;
    code = explain(v);
    bool has_requests = v->view && v->view->event != SIZE_MAX && !v->is_cut;
    return code == EXIT_FINE && has_requests && !v->has_oom
               ? replay_cards(v, inputs->nccl_bytes)
               : code;
}

int
trial_verdict_check(const char *command, const char *path, uint64_t capacity,
                    struct trial_check *check)
{
    struct dry_trace *trace = NULL;
    struct dry_replay *replay = NULL;
    struct progress progress;
    struct dry_run run = {.oom = false};
    struct dry_error err;
    *check = (struct trial_check){.fits = true};
    int code = load_trace(command, path, &trace, NULL);
    if (code != EXIT_FINE)
        return code;
    check->event_count = dry_trace_get_view(trace)->event_count;
    if (dry_trace_get_view(trace)->device_count == 0) { /* it was not recorded */
        dry_trace_destroy(trace);
        return EXIT_FINE;
    }
    progress_begin(&progress, "replaying", 0);
    const struct load_replay wanted = {.command = command,
                                       .path = path,
                                       .device = LOAD_BUSIEST_DEVICE,
                                       .progress = &progress};
    code = load_replay(&wanted, trace, &replay);
    check->is_exact = code == EXIT_FINE && dry_replay_get_check(replay)->exact;
    if (check->is_exact && capacity > 0) {
        enum dry_status status = replay_in(replay, capacity, &run, &err);
        check->fits = !run.oom;
        code = status == DRY_OK ? code : report_error(command, path, &err);
    }
    progress_end(&progress);
    dry_replay_destroy(replay);
    dry_trace_destroy(trace);
    return code;
}

void
trial_verdict_finish(struct trial_verdict *v)
{
    dry_explanation_destroy(v->explanation);
    study_close(&v->study);
    free(v->cards);
    *v = (struct trial_verdict){0};
}
