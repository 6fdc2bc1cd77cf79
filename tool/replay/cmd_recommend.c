/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone recommend`: which settings would have helped, by replay. */
#include <stdio.h>
#include <string.h>

#include <drystone/recommend.h>
#include <drystone/replay.h>

#include "base/command.h"
#include "base/progress.h"
#include "base/report.h"
#include "record/load.h"
#include "replay/recommend_report.h"

/* 0 where nothing was given: the library knows its defaults. */
struct values {
    struct option_list without;
    const char *goal, *compat;
    uint64_t capacity, min_gain;
    int64_t device, runs;
    bool json;
};

static const struct option_spec specs[] = {
    {"goal", 'g', "GOAL", OPTION_STRING, offsetof(struct values, goal),
     .help = "fit: the smallest device on which it does not fail; peak: the lowest peak "
             "of reserved memory; stable: the fewest retries, then the least driver "
             "time; default: fit where a capacity is known or the record met its "
             "limit, else peak"},
    {"capacity", 0, "SIZE", OPTION_SIZE, offsetof(struct values, capacity),
     .help = "bytes the device has for PyTorch: 40GiB; default: what the record shows, "
             "by an out-of-memory or by retries, else no limit",
     .min = 1},
    {"without", 0, "WHAT", OPTION_LIST, offsetof(struct values, without),
     .help = "what cannot be used: expandable, gc or split; may be given several times"},
    {"min-gain", 0, "SIZE", OPTION_SIZE, offsetof(struct values, min_gain),
     .help = "less is no gain; default: 64MiB or 1 % of the peak, whichever is more"},
    {"runs", 0, "N", OPTION_INT, offsetof(struct values, runs),
     .help =
         "replay the program N times at most; default: 48, fewer for very long programs",
     .min = 1},
    {"compat", 0, "VERSION", OPTION_STRING, offsetof(struct values, compat),
     .help = "the release of PyTorch the program ran on, like 2.11; default auto: those "
             "that reproduce the record"},
    {"device", 'd', "N", OPTION_INT, offsetof(struct values, device),
     .help = "the device; default: the one that ran out of memory, else the busiest",
     .max = NO_MAX},
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help = "print JSON, schema drystone.recommend/1, see drystone-recommend(1)"},
};

static const char about_text[] =
    "Searches PYTORCH_CUDA_ALLOC_CONF by replay: runs the requests of FILE under "
    "settings made for the sizes it asks for, and says which one helps, by how much, "
    "what stands against it, or why none can.";

struct session {
    struct values values;
    struct dry_recommend_options options;
    const char *path;
    struct dry_trace *trace;
    struct dry_replay *replay;
    struct dry_recommendation *recommendation;
    struct progress progress;
    char work[48]; /* what the progress line says */
};

/* --- the command line --------------------------------------------------------------------- */

static int
read_goal(struct session *s)
{
    const char *goal = s->values.goal;
    if (!goal)
        return EXIT_FINE;
    for (unsigned i = 0; i < DRY_GOAL_COUNT; i++) {
        if (strcmp(dry_goal_name((enum dry_goal)i), goal) == 0) {
            s->options.goal = (enum dry_goal)i;
            return EXIT_FINE;
        }
    }
    return report_usage("recommend", "--goal %s: expected fit, peak or stable", goal);
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
    const struct option_list *without = &s->values.without;
    for (size_t i = 0; i < without->count; i++) {
        uint32_t bit = 0;
        for (size_t j = 0; j < sizeof names / sizeof *names; j++)
            bit |= strcmp(without->values[i], names[j].name) == 0 ? names[j].bit : 0;
        if (!bit)
            return report_usage("recommend",
                                "--without %s: expected expandable, gc or split",
                                without->values[i]);
        s->options.without |= bit;
    }
    return EXIT_FINE;
}

static int
read_options(struct session *s, const struct option_list *operands)
{
    const struct values *v = &s->values;
    int code = options_expect_one_file(&command_recommend, operands);
    if (code != EXIT_FINE)
        return code;
    dry_recommend_options_init(&s->options);
    s->options.capacity_bytes = v->capacity;
    s->options.min_gain_bytes = v->min_gain;
    s->options.run_max = (size_t)v->runs;
    code = read_goal(s);
    return code == EXIT_FINE ? read_without(s) : code;
}

/* The first device that ran out of memory; the busiest if none did, as for `explain`. */
static int64_t
choose_device(const struct session *s)
{
    const struct dry_trace_view *v = dry_trace_get_view(s->trace);
    const struct dry_trace_device *best = NULL;
    for (size_t i = 0; i < v->device_count && s->values.device == LOAD_BUSIEST_DEVICE;
         i++) {
        const struct dry_trace_device *d = &v->devices[i];
        bool has_oom = d->event_count > 0 && d->device != DRY_DEVICE_HOST &&
                       memchr(v->action + d->first_event, DRY_ACTION_OOM, d->event_count);
        if (has_oom && (!best || d->event_count > best->event_count))
            best = d;
    }
    return best ? best->device : s->values.device;
}

/* --- the work ----------------------------------------------------------------------------- */

static int
open_replay(struct session *s)
{
    const struct load_replay wanted = {
        .command = "recommend",
        .path = s->path,
        .device = choose_device(s),
        .compat = s->values.compat,
        .progress = &s->progress,
    };
    return load_replay(&wanted, s->trace, &s->replay);
}

/* The line counts events within a run; its words say which run. */
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
    return report_error("recommend", s->path, &err);
}

static int
report(const struct session *s)
{
    struct recommend_report r = {
        .file = s->path, .replay = s->replay, .recommendation = s->recommendation};
    int code = EXIT_FINE;
    if (s->values.json)
        code = recommend_report_print_json(&r);
    else if (!recommend_report_print(&r))
        code =
            report_failure("recommend", s->path, EXIT_MACHINE, "no memory for the table");
    return code == EXIT_FINE ? recommend_report_exit_code(&r) : code;
}

static int
recommend_for_file(struct session *s)
{
    int code = load_trace("recommend", s->path, &s->trace, NULL);
    if (code != EXIT_FINE)
        return code;
    progress_begin(&s->progress, "replaying", 0);
    code = open_replay(s);
    if (code == EXIT_FINE)
        code = search(s);
    progress_end(&s->progress);
    return code == EXIT_FINE ? report(s) : code;
}

static int
run(int argc, char **argv)
{
    struct session s = {.values = {.device = LOAD_BUSIEST_DEVICE}};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_recommend, argc, argv, &s.values, &operands, &code)) {
        code = read_options(&s, &operands);
        if (code == EXIT_FINE) {
            s.path = operands.values[0];
            code = recommend_for_file(&s);
        }
    }
    dry_recommend_destroy(s.recommendation);
    dry_replay_destroy(s.replay);
    dry_trace_destroy(s.trace);
    options_finish(&command_recommend, &s.values, &operands);
    return code;
}

const struct command command_recommend = {
    .name = "recommend",
    .summary = "which settings would have helped, by replay",
    .usage = "[options] FILE",
    .about = about_text,
    .examples = "drystone recommend oom.pickle\n"
                "drystone recommend run.pickle --capacity 40GiB\n"
                "drystone recommend run.pickle --goal peak --without expandable --json\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
