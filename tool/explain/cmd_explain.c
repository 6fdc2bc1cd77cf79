/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone explain`: the cause of a failure, from a snapshot or an error message. */
#include <stdlib.h>
#include <string.h>

#include <drystone/explanation.h>

#include "base/command.h"
#include "base/report.h"
#include "base/rows.h"
#include "explain/explain_report.h"
#include "explain/figures.h"
#include "explain/message_report.h"
#include "record/load.h"
#include "record/study.h"

struct values {
    const char *at, *message, *compat;
    uint64_t total;
    int64_t device, runs, rows;
    struct gate_values gate;
    bool json;
};

#define RUNS_NOT_GIVEN (-1)

static const char of_file[] = "for a file: a message says that itself";

static const struct option_spec specs[] = {
    {"at", 'a', "WHEN", OPTION_STRING, offsetof(struct values, at),
     .help = "oom, peak, end, or the number of an event; default: the first "
             "OOM, else the peak",
     .refuses = {{"message", of_file}}},
    {"message", 'm', "TEXT", OPTION_STRING, offsetof(struct values, message),
     .help = "explain an error message instead of a file; - reads a message or a whole "
             "log from standard input"},
    {"gpu-total", 0, "SIZE", OPTION_SIZE, offsetof(struct values, total),
     .help = "how large the device is, 79.2GiB: a snapshot does not say, and only with "
             "it memory of others can be told",
     .min = 1, .refuses = {{"message", of_file}}},
    {"device", 'd', "N", OPTION_INT, offsetof(struct values, device),
     .help = "the device; default: the one that ran out of memory, else the busiest",
     .max = NO_MAX, .refuses = {{"message", of_file}}},
    {"runs", 0, "N", OPTION_INT, offsetof(struct values, runs),
     .help = "replays under other settings at most; 0: none; default: as many as "
             "drystone sweep makes",
     .max = 1000},
    {"compat", 0, "VERSION", OPTION_STRING, offsetof(struct values, compat),
     .help = "the release of PyTorch the program ran on, like 2.11; default auto: those "
             "that reproduce the recording",
     .refuses = {{"message", of_file}}},
    {"rows", 'n', "N", OPTION_INT, offsetof(struct values, rows),
     .help = "how many owners, 0 for all; default 8", .max = NO_MAX},
    GATE_OPTIONS(struct values, gate, "reserved_peak", .refuses = {{"message", of_file}}),
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help = "print JSON, schema drystone.explain/1, see drystone-explain(1)"},
};

static const char about_text[] =
    "Says why the memory did not fit, at the moment it did not: the cause with the sums "
    "that prove it, who held the memory by line of source, the same code on other "
    "devices and in earlier steps, what to change with its effect in bytes, and how far "
    "all this can be trusted. A text log is searched for messages, as by --message -.";

struct session {
    struct values values;
    struct study study;
};

static bool
on_progress(void *self, size_t run_count, size_t run_max)
{
    struct session *s = self;
    (void)run_max;
    return progress_update(&s->study.progress, run_count);
}

static int
report(const struct session *s, const struct dry_explanation *explanation)
{
    const struct study_device *d = &s->study.devices[s->study.main];
    struct explain_report r = {
        .file = s->study.path,
        .trace = s->study.subject,
        .view = dry_explanation_get_view(explanation),
        .timeline = d->timeline,
        .replay = d->replay,
        .device_count = s->study.device_count,
        .row_max = rows_limit(s->values.rows, false),
        .is_simulated = s->study.is_simulated,
        .is_total_known = s->values.total != NOT_GIVEN,
        .recorded_reserved_bytes =
            dry_trace_get_view(s->study.trace)->reserved_peak_bytes,
    };
    int code = EXIT_FINE;
    if (s->values.json)
        code = explain_report_print_json("explain", &r);
    else if (!gate_takes_output(&s->values.gate) && !explain_report_print(&r))
        code = report_memory("explain", s->study.path);
    if (code == EXIT_FINE && r.view->findings[0].cause != DRY_CAUSE_NONE)
        code = EXIT_FOUND;
    return figures_judge_explain(&r, &s->values.gate, code);
}

/* Choose the device to explain. All devices are opened even if one is asked for: the
   other ranks show how far this one had come. */
static int
choose_device(struct session *s)
{
    if (s->values.device == STUDY_EVERY_DEVICE)
        return EXIT_FINE;
    for (size_t i = 0; i < s->study.device_count; i++) {
        if (dry_timeline_get_view(s->study.devices[i].timeline)->device ==
            s->values.device) {
            s->study.main = i;
            return EXIT_FINE;
        }
    }
    return load_report_no_device("explain", s->study.path, s->study.trace,
                                 s->values.device);
}

/* Return the moment to explain. For an OOM that is one moment before, when the blocks in
   the request's way were still there. */
static uint32_t
at_failure(const struct dry_timeline_view *v, uint32_t moment)
{
    const uint8_t *action = dry_trace_get_view(v->trace)->action;
    bool has_event = moment > 0 && moment <= v->event_count;
    bool is_oom = has_event && action[v->first_event + moment - 1] == DRY_ACTION_OOM;
    return is_oom ? moment - 1 : moment;
}

static int
explain(struct session *s, const struct dry_explain_device *devices)
{
    struct dry_explain_options options;
    dry_explain_options_init(&options);
    options.devices = devices;
    options.device_count = s->study.device_count;
    options.subject = s->study.main;
    if (s->values.total != NOT_GIVEN)
        options.total_bytes = s->values.total;
    if (s->values.runs != RUNS_NOT_GIVEN)
        options.run_max = (size_t)s->values.runs;
    options.is_simulated = s->study.is_simulated;
    options.before_count = s->study.before_count;
    options.progress = on_progress;
    options.progress_self = s;
    if (s->values.at) {
        int code =
            study_find_moment(&s->study, s->study.main, s->values.at, &options.moment);
        if (code != EXIT_FINE)
            return code;
        options.moment = at_failure(
            dry_timeline_get_view(devices[options.subject].timeline), options.moment);
    }
    struct dry_explanation *explanation = NULL;
    struct dry_error err;
    progress_begin(&s->study.progress, "replaying other settings", 0);
    enum dry_status status = dry_explanation_create(&options, &explanation, &err);
    progress_end(&s->study.progress);
    if (status != DRY_OK)
        return report_error("explain", s->study.path, &err);
    int code = report(s, explanation);
    dry_explanation_destroy(explanation);
    return code;
}

static int
explain_file(struct session *s, const char *path)
{
    int code =
        study_open_by(&s->study, "explain", path, STUDY_EVERY_DEVICE, s->values.compat);
    if (code == EXIT_FINE)
        code = choose_device(s);
    if (code == EXIT_FINE) {
        struct dry_explain_device *devices =
            calloc(s->study.device_count, sizeof *devices);
        for (size_t i = 0; devices && i < s->study.device_count; i++) {
            devices[i].replay = s->study.devices[i].replay;
            devices[i].timeline = s->study.devices[i].timeline;
        }
        code = devices ? explain(s, devices) : report_memory("explain", path);
        free(devices);
    }
    study_close(&s->study);
    return code;
}

static int
check_usage(const struct values *v, const struct option_list *operands)
{
    if (!v->message) {
        int code = options_expect_one_file(&command_explain, operands);
        return code == EXIT_FINE ? figures_check("explain", &v->gate, v->json) : code;
    }
    if (operands->count > 0)
        return report_usage("explain", "--message and a file are given; one is expected");
    return EXIT_FINE;
}

/* Return whether the file is a text log. An option that is for traces only says that it is none. */
static bool
is_log(const struct values *v, const char *path)
{
    bool is_of_trace = v->at || v->compat || v->total != NOT_GIVEN ||
                       v->device != STUDY_EVERY_DEVICE || gate_takes_output(&v->gate);
    return !is_of_trace && strcmp(path, "-") != 0 && message_report_is_log(path);
}

static int
run(int argc, char **argv)
{
    struct session s = {.values = {.total = NOT_GIVEN,
                                   .device = STUDY_EVERY_DEVICE,
                                   .runs = RUNS_NOT_GIVEN,
                                   .rows = 8}};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_explain, argc, argv, &s.values, &operands, &code)) {
        const char *message = s.values.message;
        code = check_usage(&s.values, &operands);
        if (code == EXIT_FINE && message)
            code =
                message_report_run("explain", strcmp(message, "-") == 0 ? NULL : message,
                                   NULL, s.values.json);
        else if (code == EXIT_FINE && is_log(&s.values, operands.values[0]))
            code = message_report_run("explain", NULL, operands.values[0], s.values.json);
        else if (code == EXIT_FINE)
            code = explain_file(&s, operands.values[0]);
    }
    options_finish(&command_explain, &s.values, &operands);
    return code;
}

const struct command command_explain = {
    .name = "explain",
    .summary = "the verdict: why it did not fit, who held it, what to change",
    .usage = "[options] FILE",
    .about = about_text,
    .examples = "drystone explain oom.pickle\n"
                "drystone explain oom.pickle --gpu-total 79.2GiB --json\n"
                "drystone explain run.pickle --at 12345\n"
                "drystone explain --message 'CUDA out of memory. Tried to allocate ...'\n"
                "drystone explain train.log\n"
                "kubectl logs POD | drystone explain --message -\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
