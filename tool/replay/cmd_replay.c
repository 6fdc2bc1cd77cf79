/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone replay`: verify the recorded run, and replay it under other settings. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/replay.h>
#include <drystone/sim.h>

#include "base/command.h"
#include "base/output.h"
#include "base/progress.h"
#include "base/report.h"
#include "record/load.h"
#include "replay/across.h"
#include "replay/replay_gate.h"
#include "replay/replay_report.h"

struct values {
    struct option_list confs, places;
    const char *compat, *decisions, *across;
    uint64_t capacity;
    int64_t device, steady_from;
    struct gate_values gate;
    bool find_capacity, check_order, json;
};

static const struct option_spec specs[] = {
    {"conf", 'c', "STR", OPTION_LIST, offsetof(struct values, confs),
     .help = "also run under these settings, written as in PYTORCH_CUDA_ALLOC_CONF; may "
             "be given several times; '' is the default"},
    {"place", 'p', "PLACE", OPTION_LIST, offsetof(struct values, places),
     .help = "who decides where a request goes: torch, paged (Drystone's own), or "
             "offline (all lifetimes known); may be given several times, each runs under "
             "every --conf; PLACE:STR runs under STR alone"},
    {"capacity", 0, "SIZE", OPTION_SIZE, offsetof(struct values, capacity),
     .help = "bytes the device has for PyTorch: 40GiB; default: what the recording "
             "shows, if it ran out of memory, else no limit",
     .min = 1},
    {"find-capacity", 0, NULL, OPTION_FLAG, offsetof(struct values, find_capacity),
     .help = "find the smallest device on which each run does not fail, in steps of 2 "
             "MiB, whatever --capacity is"},
    {"compat", 0, "VERSION", OPTION_STRING, offsetof(struct values, compat),
     .help = "the release of PyTorch whose rules apply, like 2.11; default auto: the one "
             "that reproduces the recording"},
    {"across", 0, "LIST", OPTION_STRING, offsetof(struct values, across),
     .help = "run under the rules of several releases instead, 2.9,2.12,2.15, and tell "
             "what changed from one to the next",
     .refuses = {{"place compat decisions steady-from",
                  "for PyTorch's own places and releases: leave out --place, --compat, "
                  "--decisions and --steady-from"}}},
    {"device", 'd', "N", OPTION_INT, offsetof(struct values, device),
     .help = "the device; default: the one with the most events", .max = NO_MAX},
    {"steady-from", 0, "N", OPTION_INT, offsetof(struct values, steady_from),
     .help = "also report on the part from event N on, when the first steps are over",
     .max = NO_MAX},
    {"check-order", 0, NULL, OPTION_FLAG, offsetof(struct values, check_order),
     .help = "also prove that nothing is reused, unmapped or moved before its last use "
             "is over"},
    {"decisions", 0, "OUT", OPTION_STRING, offsetof(struct values, decisions),
     .help = "write every decision of the one run to OUT, a line each (at most one "
             "--conf and one --place)"},
    GATE_OPTIONS(struct values, gate, "reserved_peak", .unless = NULL),
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help = "print JSON, schema drystone.replay/1, see drystone-replay(1)"},
};

static const char about_text[] =
    "Rebuilds the allocator's state from FILE, replays every request and proves itself: "
    "under the recorded settings every recorded address, every segment event and the "
    "final layout must come out again; the verdict stands on top. Then runs the same "
    "requests under other settings, and by other allocators than PyTorch's.";

struct session {
    struct values values;
    const char *path;
    struct dry_trace *trace;
    struct dry_replay *replay;
    struct replay_row *rows;
    size_t row_count;
    struct across across;
    struct progress progress;
};

/* --- runs --------------------------------------------------------------------------------- */

/* A requested run: a place, and its settings or NULL. */
struct run_setting {
    const char *label, *place, *conf;
    bool begin_anew, is_extra;
};

/* Report why a run failed. A user's mistake is reported as usage, with the settings. */
static int
report_run(const struct session *s, const struct dry_run_options *options,
           const struct dry_error *err)
{
    const char *conf = options->conf ? options->conf : "";
    bool is_of_file = dry_trace_get_view(s->trace)->is_of_driver;
    if (is_of_file ||
        (err->status != DRY_ERR_ARGUMENT && err->status != DRY_ERR_UNSUPPORTED))
        return report_error("replay", s->path, err);
    if (options->place)
        return report_usage("replay", "--place %s, settings '%s': %s", options->place,
                            conf, err->text);
    return report_usage("replay", "--conf '%s': %s", conf, err->text);
}

static enum dry_status
write_decision(void *self, const struct dry_decision *decision, struct dry_error *err)
{
    const struct dry_sink *out = self;
    char line[DRY_DECISION_BYTES];
    return out->write(out->self, line, dry_decision_write(decision, line), err);
}

/* Run and write the decisions to a file, whose failures are reported separately. */
static int
run_with_decisions(const struct session *s, struct dry_run_options *options,
                   struct dry_run *run)
{
    struct output out;
    struct dry_error err;
    int code = output_open(&out, "replay", s->values.decisions);
    if (code != EXIT_FINE)
        return code;
    struct dry_sink file = output_sink(&out);
    const struct dry_decision_sink sink = {.take = write_decision, .self = &file};
    options->decisions = &sink;
    enum dry_status status = dry_replay_run(s->replay, options, run, &err);
    options->decisions = NULL;
    if (status == DRY_OK || status == DRY_ERR_SYSTEM)
        return output_close(&out, status, &err);
    output_discard(&out);
    return report_run(s, options, &err);
}

/* Return --capacity, or 0 for the capacity that the record shows. */
static uint64_t
capacity_given(const struct session *s)
{
    return s->values.capacity == NOT_GIVEN ? 0 : s->values.capacity;
}

/* Set the options that all rows share. */
static void
init_options(const struct session *s, struct dry_run_options *options)
{
    dry_run_options_init(options);
    options->capacity_bytes = capacity_given(s);
    options->find_capacity = s->values.find_capacity;
    options->check_order = s->values.check_order;
    if (s->values.steady_from >= 0)
        options->steady_from = (size_t)s->values.steady_from;
}

static bool
is_place(const char *place, const char *name)
{
    return place && strcmp(place, name) == 0;
}

static bool
shows_to_people(const struct session *s)
{
    return !s->values.json && !s->values.decisions;
}

/* Return the middle event of the device, by which earlier steps have warmed it up. */
static size_t
middle_event(const struct session *s)
{
    const struct dry_trace_view *view = dry_trace_get_view(s->trace);
    int32_t device = dry_replay_get_recorded(s->replay)->device;
    for (size_t i = 0; i < view->device_count; i++) {
        const struct dry_trace_device *d = &view->devices[i];
        if (d->device == device)
            return d->first_event + d->event_count / 2;
    }
    return DRY_EVENT_NONE;
}

static int
run_row(struct session *s, const struct run_setting *run_setting)
{
    struct dry_run_options options;
    init_options(s, &options);
    options.conf = run_setting->conf;
    options.place = run_setting->place;
    options.begin_anew = run_setting->begin_anew;
    if (s->values.steady_from < 0 && shows_to_people(s) &&
        is_place(run_setting->place, "paged"))
        options.steady_from = middle_event(s);
    struct replay_row *row = s->rows + s->row_count;
    *row = (struct replay_row){.label = run_setting->label,
                               .conf = run_setting->conf,
                               .is_extra = run_setting->is_extra};
    s->progress.what = is_place(run_setting->place, "offline")
                           ? "packing, searches so far"
                           : "replaying";
    int code = EXIT_FINE;
    struct dry_error err;
    if (s->values.decisions && s->row_count == 0)
        code = run_with_decisions(s, &options, &row->run);
    else if (dry_replay_run(s->replay, &options, &row->run, &err) != DRY_OK)
        code = report_run(s, &options, &err);
    s->row_count += code == EXIT_FINE;
    return code;
}

static const char *
get_label(const char *conf)
{
    return conf && conf[0] ? conf : "default";
}

static const char *
recorded_place(const struct session *s)
{
    return dry_replay_get_recorded(s->replay)->place;
}

/*
 * Label the recorded settings by what was run. Only the rebuilt layout can repeat the
 * record; --check-order begins with an empty device.
 */
static const char *
label_of_recorded(const struct session *s)
{
    bool is_limited = s->values.capacity != NOT_GIVEN;
    if (!recorded_place(s)[0])
        return "default"; /* PyTorch's default: the recorded placement is not known */
    if (is_limited || !dry_replay_get_check(s->replay)->possible)
        return "recorded settings";
    return s->values.check_order ? "begun empty" : "as recorded";
}

/*
 * Run the recorded settings. Text reports show them first. If the window began warm, they
 * are run again from an empty device, for comparison with the other rows. JSON and
 * --decisions get only the requested runs.
 */
static int
run_recorded(struct session *s)
{
    bool is_alone = s->values.confs.count == 0 && s->values.places.count == 0;
    if (!shows_to_people(s) && !is_alone)
        return EXIT_FINE;
    struct run_setting run_setting = {.label = label_of_recorded(s),
                                      .place =
                                          recorded_place(s)[0] ? recorded_place(s) : NULL,
                                      .is_extra = !is_alone};
    int code = run_row(s, &run_setting);
    bool began_warm = s->row_count > 0 && s->rows[0].run.as_recorded &&
                      dry_replay_get_check(s->replay)->live_before > 0;
    if (code == EXIT_FINE && shows_to_people(s) && !is_alone && began_warm) {
        run_setting = (struct run_setting){
            .label = "begun empty", .begin_anew = true, .is_extra = true};
        code = run_row(s, &run_setting);
    }
    return code;
}

/* Run a place under every --conf. A packing (offline) has no settings: one run. */
static int
run_place(struct session *s, const char *place)
{
    const struct option_list *confs = &s->values.confs;
    bool has_settings = !is_place(place, "offline");
    if (confs->count == 0 || !has_settings) {
        bool is_recorded = is_place(place, recorded_place(s));
        if (is_recorded && shows_to_people(s))
            return EXIT_FINE; /* it is the first row already */
        struct run_setting run_setting = {.label = is_recorded    ? "recorded settings"
                                                   : has_settings ? "default"
                                                                  : "lifetimes known",
                                          .place = place};
        return run_row(s, &run_setting);
    }
    int code = EXIT_FINE;
    for (size_t i = 0; i < confs->count && code == EXIT_FINE; i++) {
        struct run_setting run_setting = {.label = get_label(confs->values[i]),
                                          .place = place,
                                          .conf = confs->values[i]};
        code = run_row(s, &run_setting);
    }
    return code;
}

/* Run a place with its own settings as one row: "paged:budget:1.02". */
static int
run_place_as_given(struct session *s, const char *text)
{
    const char *colon = strchr(text, ':');
    if (!colon)
        return run_place(s, text);
    char place[16];
    snprintf(place, sizeof place, "%.*s", (int)(colon - text), text);
    struct run_setting run_setting = {
        .label = get_label(colon + 1), .place = place, .conf = colon + 1};
    return run_row(s, &run_setting);
}

/* Fill the rows with the requested releases. */
static int
run_across(struct session *s)
{
    struct dry_run_options options;
    struct dry_error err;
    init_options(s, &options);
    options.conf = s->values.confs.count > 0 ? s->values.confs.values[0] : NULL;
    if (across_run(&s->across, s->replay, &options, &err) != DRY_OK)
        return report_run(s, &options, &err);
    for (size_t i = 0; i < s->across.release_count; i++) {
        const struct across_release *r = &s->across.releases[i];
        s->rows[s->row_count++] = (struct replay_row){
            .label = r->version,
            .conf = options.conf,
            .run = s->across.rules[r->rules].run,
        };
    }
    return EXIT_FINE;
}

static int
run_all(struct session *s)
{
    const struct option_list *confs = &s->values.confs, *places = &s->values.places;
    if (s->values.across)
        return run_across(s);
    int code = run_recorded(s);
    for (size_t i = 0; i < confs->count && code == EXIT_FINE && places->count == 0; i++) {
        struct run_setting run_setting = {.label = get_label(confs->values[i]),
                                          .conf = confs->values[i]};
        code = run_row(s, &run_setting);
    }
    for (size_t i = 0; i < places->count && code == EXIT_FINE; i++)
        code = run_place_as_given(s, places->values[i]);
    return code;
}

static int
report_runs(struct session *s)
{
    struct replay_report report = {
        .file = s->path,
        .view = dry_trace_get_view(s->trace),
        .replay = s->replay,
        .rows = s->rows,
        .row_count = s->row_count,
        .finds_capacity = s->values.find_capacity,
        .capacity_bytes = capacity_given(s),
        .has_places = !s->values.across && (s->values.places.count > 0 ||
                                            !is_place("torch", recorded_place(s))),
        .wants_steady = s->values.steady_from >= 0,
        .across = s->values.across ? &s->across : NULL,
    };
    bool is_silent = gate_takes_output(&s->values.gate) ||
                     (s->values.decisions && strcmp(s->values.decisions, "-") == 0);
    int code = EXIT_FINE;
    if (s->values.json)
        code = replay_report_print_json("replay", &report);
    else if (!is_silent && !replay_report_print(&report))
        code = report_failure("replay", s->path, EXIT_MACHINE, "no memory for the table");
    if (code == EXIT_FINE)
        code = replay_report_exit_code(&report);
    return replay_gate_judge(&report, &s->values.gate, code);
}

static int
open_replay(struct session *s)
{
    const struct load_replay wanted = {
        .command = "replay",
        .path = s->path,
        .device = s->values.device,
        .compat = s->values.compat,
        .progress = &s->progress,
    };
    return load_replay(&wanted, s->trace, &s->replay);
}

static int
replay_file(struct session *s)
{
    int code = load_trace("replay", s->path, &s->trace, NULL);
    if (code != EXIT_FINE)
        return code;
    s->rows = calloc(2 + s->across.release_count +
                         (s->values.confs.count + 1) * (s->values.places.count + 1),
                     sizeof *s->rows);
    if (!s->rows)
        return report_memory("replay", s->path);
    progress_begin(&s->progress, "replaying", 0);
    code = open_replay(s);
    if (code == EXIT_FINE)
        code = run_all(s);
    progress_end(&s->progress);
    return code == EXIT_FINE ? report_runs(s) : code;
}

/* Check the names of places before any file is read. */
static int
check_places(const struct session *s)
{
    static const char *const names[] = {"torch", "paged", "offline"};
    for (size_t i = 0; i < s->values.places.count; i++) {
        const char *text = s->values.places.values[i];
        size_t length = strcspn(text, ":"), n = 0;
        while (n < 3 &&
               (strlen(names[n]) != length || strncmp(text, names[n], length) != 0))
            n++;
        if (n == 3)
            return report_usage(
                "replay", "--place '%s' is no place: torch, paged or offline", text);
    }
    return EXIT_FINE;
}

static int
check_across(struct session *s)
{
    if (!s->values.across)
        return EXIT_FINE;
    if (s->values.confs.count > 1)
        return report_usage("replay", "--across runs one setting: at most one --conf");
    return across_parse(s->values.across, &s->across);
}

static int
check_usage(struct session *s, const struct option_list *operands)
{
    int code = options_expect_one_file(&command_replay, operands);
    if (code == EXIT_FINE)
        code = check_across(s);
    if (code == EXIT_FINE)
        code = replay_gate_check(&s->values.gate, s->values.json);
    if (code != EXIT_FINE)
        return code;
    if (s->values.decisions && strcmp(s->values.decisions, "-") == 0 &&
        (s->values.json || s->values.find_capacity || gate_takes_output(&s->values.gate)))
        return report_usage("replay",
                            "--decisions - prints decisions alone: name a file");
    if (s->values.decisions && output_is_input(s->values.decisions, operands->values[0]))
        return report_usage("replay", "--decisions %s: that is the input",
                            s->values.decisions);
    if (s->values.decisions && (s->values.confs.count > 1 || s->values.places.count > 1))
        return report_usage("replay", "--decisions takes one run, so at most one --conf "
                                      "and one --place");
    return check_places(s);
}

static int
run(int argc, char **argv)
{
    struct session s = {.values = {.device = LOAD_BUSIEST_DEVICE,
                                   .capacity = NOT_GIVEN,
                                   .steady_from = NO_NUMBER}};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_replay, argc, argv, &s.values, &operands, &code)) {
        code = check_usage(&s, &operands);
        if (code == EXIT_FINE) {
            s.path = operands.values[0];
            code = replay_file(&s);
        }
    }
    dry_replay_destroy(s.replay);
    dry_trace_destroy(s.trace);
    free(s.rows);
    options_finish(&command_replay, &s.values, &operands);
    return code;
}

const struct command command_replay = {
    .name = "replay",
    .summary = "what happened, proved, and what other settings would have done",
    .usage = "[options] FILE",
    .about = about_text,
    .examples = "drystone replay run.pickle\n"
                "drystone replay run.pickle -c '' -c expandable_segments:True\n"
                "drystone replay run.pickle -c '' --find-capacity\n"
                "drystone replay run.pickle --across 2.9,2.12,2.15\n"
                "drystone replay run.pickle --place paged --place offline\n"
                "drystone replay run.pickle -c '' --capacity 40GiB --json\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
