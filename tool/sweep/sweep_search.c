/* SPDX-License-Identifier: Apache-2.0 */
/* See sweep_search.h. */
#include "sweep/sweep_search.h"

#include <stdio.h>
#include <string.h>

#include <drystone/recommend.h>
#include <drystone/replay.h>

#include "base/command.h"
#include "base/progress.h"
#include "base/report.h"
#include "record/load.h"
#include "sweep/recommend_report.h"

struct session {
    const struct sweep_search *wanted;
    struct dry_recommend_options options;
    struct dry_trace *trace;
    struct dry_replay *replay;
    struct dry_recommendation *recommendation;
    struct progress progress;
    char work[48]; /* text of the progress line */
};

/* --- what is wanted ----------------------------------------------------------------------- */

static int
read_goal(struct session *s)
{
    const char *goal = s->wanted->goal;
    if (!goal)
        return EXIT_FINE;
    for (unsigned i = 0; i < DRY_GOAL_COUNT; i++) {
        if (strcmp(dry_goal_name((enum dry_goal)i), goal) == 0) {
            s->options.goal = (enum dry_goal)i;
            return EXIT_FINE;
        }
    }
    return report_usage("sweep", "--goal %s: expected fit, peak or stable", goal);
}

static int
read_without(struct session *s)
{
    static const struct {
        const char *name;
        uint32_t bit;
    } names[] = {{"expandable", DRY_WITHOUT_EXPANDABLE},
                 {"gc", DRY_WITHOUT_GC},
                 {"split", DRY_WITHOUT_SPLIT}};
    const struct option_list *without = &s->wanted->without;
    for (size_t i = 0; i < without->count; i++) {
        uint32_t bit = 0;
        for (size_t j = 0; j < sizeof names / sizeof *names; j++)
            bit |= strcmp(without->values[i], names[j].name) == 0 ? names[j].bit : 0;
        if (!bit)
            return report_usage("sweep", "--without %s: expected expandable, gc or split",
                                without->values[i]);
        s->options.without |= bit;
    }
    return EXIT_FINE;
}

static int
read_options(struct session *s)
{
    const struct sweep_search *wanted = s->wanted;
    dry_recommend_options_init(&s->options);
    s->options.capacity_bytes = wanted->capacity;
    s->options.min_gain_bytes = wanted->min_gain;
    s->options.run_max = (size_t)wanted->runs;
    int code = read_goal(s);
    return code == EXIT_FINE ? read_without(s) : code;
}

/* Return the device that ran out of memory and has the most events; the busiest device if
   none did, as in `explain`. */
static int64_t
choose_device(const struct session *s)
{
    const struct dry_trace_view *v = dry_trace_get_view(s->trace);
    const struct dry_trace_device *best = NULL;
    for (size_t i = 0; i < v->device_count && s->wanted->device == LOAD_BUSIEST_DEVICE;
         i++) {
        const struct dry_trace_device *d = &v->devices[i];
        bool has_oom = d->event_count > 0 && d->device != DRY_DEVICE_HOST &&
                       memchr(v->action + d->first_event, DRY_ACTION_OOM, d->event_count);
        if (has_oom && (!best || d->event_count > best->event_count))
            best = d;
    }
    return best ? best->device : s->wanted->device;
}

/* --- the work ----------------------------------------------------------------------------- */

static int
open_replay(struct session *s)
{
    const struct load_replay wanted = {
        .command = "sweep",
        .path = s->wanted->path,
        .device = choose_device(s),
        .compat = s->wanted->compat,
        .progress = &s->progress,
    };
    return load_replay(&wanted, s->trace, &s->replay);
}

/* Update the progress line: it counts a run's events, and its text names the run. */
static bool
note_run(void *self, size_t run_count, size_t run_max)
{
    struct session *s = self;
    snprintf(s->work, sizeof s->work, "run %zu of %zu at most", run_count + 1, run_max);
    s->progress.what = s->work;
    return progress_update(&s->progress, 0);
}

static int
search(struct session *s)
{
    struct dry_error err;
    s->options.progress = note_run;
    s->options.progress_self = s;
    if (dry_recommend_create(s->replay, &s->options, &s->recommendation, &err) == DRY_OK)
        return EXIT_FINE;
    return report_error("sweep", s->wanted->path, &err);
}

static int
report(const struct session *s)
{
    struct recommend_report r = {.file = s->wanted->path,
                                 .row_max = s->wanted->row_max,
                                 .replay = s->replay,
                                 .recommendation = s->recommendation};
    int code = EXIT_FINE;
    if (s->wanted->json)
        code = recommend_report_print_json(&r);
    else if (!recommend_report_print(&r))
        code = report_failure("sweep", s->wanted->path, EXIT_MACHINE,
                              "no memory for the table");
    return code == EXIT_FINE ? recommend_report_exit_code(&r) : code;
}

static int
recommend_for_file(struct session *s)
{
    int code = load_trace("sweep", s->wanted->path, &s->trace, NULL);
    if (code != EXIT_FINE)
        return code;
    progress_begin(&s->progress, "replaying", 0);
    code = open_replay(s);
    if (code == EXIT_FINE)
        code = search(s);
    progress_end(&s->progress);
    return code == EXIT_FINE ? report(s) : code;
}

int
sweep_search_run(const struct sweep_search *wanted)
{
    struct session s = {.wanted = wanted};
    int code = read_options(&s);
    if (code == EXIT_FINE)
        code = recommend_for_file(&s);
    dry_recommend_destroy(s.recommendation);
    dry_replay_destroy(s.replay);
    dry_trace_destroy(s.trace);
    return code;
}
