/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone export`: write a recording as files of other tools. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/command.h"
#include "base/output.h"
#include "base/progress.h"
#include "base/report.h"
#include "base/term.h"
#include "export/export.h"
#include "record/moment.h"

#define SLICES_DEFAULT 200000

static const struct export_format *const formats[] = {
    &export_perfetto, &export_folded, &export_sqlite,
    &export_csv,      &export_pickle, &export_json,
};
#define FORMAT_COUNT (sizeof formats / sizeof(const struct export_format *))
#define FORMAT_NAMES "perfetto, folded, sqlite, csv, pickle or json"

struct values {
    const char *format, *output, *at;
    int64_t device, slices;
    uint64_t min_size;
    bool every_point;
};

static const struct option_spec specs[] = {
    {"output", 'o', "OUT", OPTION_STRING, offsetof(struct values, output),
     .help = "the file to write; - is standard output"},
    {"format", 'f', "FORMAT", OPTION_STRING, offsetof(struct values, format),
     .help = FORMAT_NAMES "; default: what OUT's ending says"},
    {"at", 'a', "WHEN", OPTION_STRING, offsetof(struct values, at),
     .help = "oom, peak, end or the number of an event, for folded, sqlite and json; "
             "default: the OOM, else the peak"},
    {"device", 'd', "N", OPTION_INT, offsetof(struct values, device),
     .help = "one device; default: all", .max = NO_MAX},
    {"slices", 0, "N", OPTION_INT, offsetof(struct values, slices),
     .help = "perfetto: at most N allocations a device, those with most bytes x life; "
             "default 200000",
     .max = NO_MAX},
    {"min-size", 0, "SIZE", OPTION_SIZE, offsetof(struct values, min_size),
     .help = "perfetto: no allocations below SIZE; default 1MiB where there are more "
             "than N, else 0"},
    {"every-point", 0, NULL, OPTION_FLAG, offsetof(struct values, every_point),
     .help = "perfetto: counters at every event, however many there are"},
};

static const char about_text[] =
    "Writes FILE for Perfetto, flame graphs, SQL, spreadsheets or as PyTorch's "
    "snapshot. OUT appears when it is whole; what is left out is said on standard error.";

struct session {
    struct values values;
    const struct export_format *format;
    const char *path;
    struct study study;
    struct export_names names;
    struct export_job job;
    uint32_t *moments;
};

/* --- formats ------------------------------------------------------------------------------ */

static bool
has_ending(const char *name, const char *ending)
{
    size_t length = strlen(name), end = strlen(ending);
    if (length < end)
        return false;
    return strcasecmp(name + length - end, ending) == 0;
}

static const struct export_format *
find_by_ending(const char *output)
{
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        for (size_t k = 0; k < 3 && formats[i]->endings[k]; k++) {
            if (has_ending(output, formats[i]->endings[k]))
                return formats[i];
        }
    }
    return NULL;
}

static int
find_format(struct session *s)
{
    const char *name = s->values.format;
    if (!name) {
        s->format = find_by_ending(s->values.output);
        if (s->format)
            return EXIT_FINE;
        return report_usage("export",
                            "-o %s: no format has this ending; --format says it",
                            s->values.output);
    }
    for (size_t i = 0; i < FORMAT_COUNT; i++) {
        if (strcmp(formats[i]->name, name) == 0)
            s->format = formats[i];
    }
    if (s->format)
        return EXIT_FINE;
    return report_usage("export", "--format %s: expected " FORMAT_NAMES, name);
}

/* --- usage -------------------------------------------------------------------------------- */

/* An option that would change nothing is a mistake. */
static int
check_meaning(const struct session *s)
{
    const struct values *v = &s->values;
    const struct export_format *f = s->format;
    bool is_perfetto = f == &export_perfetto;
    const char *idle = NULL;
    if (v->at && !f->needs_moment)
        idle = "at";
    else if (v->slices != SLICES_DEFAULT && !is_perfetto)
        idle = "slices";
    else if (v->min_size != UINT64_MAX && !is_perfetto)
        idle = "min-size";
    else if (v->every_point && !is_perfetto)
        idle = "every-point";
    else if (v->device != STUDY_EVERY_DEVICE && f == &export_pickle)
        idle = "device";
    if (!idle)
        return EXIT_FINE;
    return report_usage("export", "--%s means nothing to %s", idle, f->name);
}

static int
check_output(const struct session *s)
{
    bool is_stdout = strcmp(s->values.output, "-") == 0;
    if (is_stdout && s->format->is_database)
        return report_usage("export", "-o -: a database needs a file of its own");
    if (is_stdout && !s->format->is_text && isatty(STDOUT_FILENO))
        return report_usage("export", "-o -: %s is nothing for a terminal",
                            s->format->name);
    return EXIT_FINE;
}

static int
check_usage(struct session *s, const struct option_list *operands)
{
    const struct values *v = &s->values;
    int code = options_expect_one_file(&command_export, operands);
    if (code != EXIT_FINE)
        return code;
    if (!v->output)
        return report_usage("export", "no output: give -o OUT");
    code = find_format(s);
    if (code == EXIT_FINE)
        code = check_meaning(s);
    if (code == EXIT_FINE && output_is_input(v->output, operands->values[0]))
        code = report_usage("export", "-o %s: that is the input", v->output);
    return code == EXIT_FINE ? check_output(s) : code;
}

/* --- moments ------------------------------------------------------------------------------ */

/* Return true if the moment of --at is on this device. Other devices are left out. */
static bool
is_of_device(const struct session *s, size_t device)
{
    const struct dry_timeline_view *v = export_view(&s->job, device);
    enum moment_reason reason = moment_find_reason(v, s->values.at);
    if (reason == MOMENT_OOM)
        return v->oom_count > 0;
    if (reason != MOMENT_EVENT)
        return true;
    errno = 0;
    unsigned long long event = strtoull(s->values.at, NULL, 10);
    return errno == 0 && event >= v->first_event &&
           event - v->first_event < v->event_count;
}

static int
find_moments(struct session *s)
{
    struct study *study = &s->study;
    bool is_of_any = false;
    for (size_t i = 0; i < study->device_count; i++)
        is_of_any = is_of_any || is_of_device(s, i);
    int code = EXIT_FINE;
    for (size_t i = 0; i < study->device_count && code == EXIT_FINE; i++) {
        s->moments[i] = DRY_NONE;
        if (!is_of_any || is_of_device(s, i))
            code = study_find_moment(study, i, s->values.at, &s->moments[i]);
    }
    return code;
}

const char *
export_moment_name(const struct export_job *job, size_t device,
                   char name[EXPORT_NAME_BYTES])
{
    switch (moment_find_reason(export_view(job, device), job->at)) {
    case MOMENT_OOM:
        return "the OOM";
    case MOMENT_PEAK:
        return "the peak of active bytes";
    case MOMENT_END:
        return "the end";
    case MOMENT_EVENT:
        break;
    }
    snprintf(name, EXPORT_NAME_BYTES, "event %.20s", job->at);
    return name;
}

/* --- writing ------------------------------------------------------------------------------ */

/* Perfetto needs several times the size of a trace; a browser tab has at most 2 GiB. */
#define BIG_BYTES (UINT64_C(500) << 20)

static int
write_output(struct session *s)
{
    struct output out;
    int code = s->format->is_database
                   ? output_open_named(&out, "export", s->values.output)
                   : output_open(&out, "export", s->values.output);
    if (code != EXIT_FINE)
        return code;
    s->job.output = &out;
    s->job.database_path = output_part_path(&out);
    struct dry_sink sink = output_sink(&out);
    struct progress progress;
    struct writer w;
    progress_begin(&progress, "writing", 0);
    writer_init(&w, &sink, &progress);
    if (s->format->is_database && !s->job.database_path)
        writer_fail(&w, DRY_ERR_UNSUPPORTED, "a database cannot be written to a device");
    if (w.status == DRY_OK)
        s->format->write(&s->job, &w);
    struct dry_error err;
    enum dry_status status = writer_finish(&w, &err);
    progress_end(&progress);
    char size[TERM_NUMBER_BYTES];
    if (status == DRY_OK && s->format == &export_perfetto && w.written > BIG_BYTES)
        export_note(&s->job,
                    "%s written: browsers may fail to open it; --slices and --min-size "
                    "make it smaller",
                    term_format_bytes(w.written, size));
    s->job.output = NULL; /* the job outlives these locals */
    s->job.database_path = NULL;
    return output_close(&out, status, &err);
}

static int
export_study(struct session *s)
{
    s->moments = calloc(s->study.device_count + 1, sizeof *s->moments);
    if (!s->moments)
        return report_memory("export", s->path);
    struct dry_error err;
    if (export_names_init(&s->names, s->study.devices[0].timeline, &err) != DRY_OK)
        return report_error("export", s->path, &err);
    s->job = (struct export_job){
        .study = &s->study,
        .path = s->path,
        .moments = s->moments,
        .at = s->values.at,
        .names = &s->names,
        .slice_max = (uint64_t)s->values.slices,
        .min_bytes = s->values.min_size,
        .is_every_point = s->values.every_point,
    };
    int code = find_moments(s);
    if (code != EXIT_FINE)
        return code;
    if (s->study.is_simulated)
        export_note(&s->job,
                    "it records no addresses: shown is what PyTorch's rules make "
                    "of its requests");
    if (s->format->cuts_strings)
        export_note_strings(&s->job);
    return write_output(s);
}

static int
run(int argc, char **argv)
{
    struct session s = {.values = {.device = STUDY_EVERY_DEVICE,
                                   .slices = SLICES_DEFAULT,
                                   .min_size = UINT64_MAX}};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_export, argc, argv, &s.values, &operands, &code)) {
        code = check_usage(&s, &operands);
        if (code == EXIT_FINE) {
            s.path = operands.values[0];
            code = study_open(&s.study, "export", s.path, s.values.device);
            if (code == EXIT_FINE)
                code = export_study(&s);
            study_close(&s.study);
        }
    }
    export_names_finish(&s.names);
    free(s.moments);
    options_finish(&command_export, &s.values, &operands);
    return code;
}

const struct command command_export = {
    .name = "export",
    .summary = "for Perfetto, flame graphs, SQL, spreadsheets",
    .usage = "[options] FILE -o OUT",
    .about = about_text,
    .examples =
        "drystone export run.pickle -o run.pftrace\n"
        "drystone export run.pickle -f folded -o - --at oom | flamegraph.pl >oom.svg\n"
        "drystone export run.pickle -o run.sqlite\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
