/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone diff`: compare runs, ranks or devices, owner by owner. */
#include <stdlib.h>
#include <string.h>

#include <drystone/categories.h>
#include <drystone/diff.h>
#include <drystone/steps.h>

#include "base/command.h"
#include "base/report.h"
#include "base/rows.h"
#include "explain/diff_report.h"
#include "explain/figures.h"
#include "record/study.h"

#define MIN_BYTES_DEFAULT (UINT64_C(64) << 20)

struct values {
    const char *at, *by;
    uint64_t min, fail_above;
    int64_t device, rows;
    struct gate_values gate;
    bool json;
};

static const struct option_spec specs[] = {
    {"at", 'a', "WHEN", OPTION_STRING, offsetof(struct values, at),
     .help = "oom, peak, end, or the number of an event, in each; default: the "
             "OOM if there is one, else the peak"},
    {"by", 'b', "KEY", OPTION_STRING, offsetof(struct values, by),
     .help = "line (the default), function, module, category or size"},
    {"min", 0, "SIZE", OPTION_SIZE, offsetof(struct values, min),
     .help = "show owners that differ by this much; default 64 MiB, or 1 % of the "
             "largest total if that is less"},
    {"rows", 'n', "N", OPTION_INT, offsetof(struct values, rows),
     .help = "how many owners, 0 for all; default 20, with --json all", .max = NO_MAX},
    {"device", 'd', "N", OPTION_INT, offsetof(struct values, device),
     .help = "the device of each file; default: one that ran out of memory, else the one "
             "with the most events",
     .max = NO_MAX},
    {"fail-above", 0, "SIZE", OPTION_SIZE, offsetof(struct values, fail_above),
     .help = "end with 1 if a total or an owner differs by more",
     .refuses = {{"fail-if baseline", "for a run without --fail-if and --baseline: write "
                                      "--fail-if 'spread > SIZE'"}}},
    GATE_OPTIONS(struct values, gate, "growth", .unless = NULL),
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help = "print JSON, schema drystone.diff/1, see drystone-diff(1)"},
};

static const char about_text[] =
    "Compares the owners of the memory that is active at the peak (or --at): of two to "
    "64 files, which may be runs or ranks, or of the devices of one file. Paths, "
    "addresses and shifted line numbers do not count.";

struct subject {
    struct dry_steps *steps;
    struct dry_categories *categories;
};

struct session {
    struct values values;
    enum dry_owner_key key;
    struct study *studies; /* one per file */
    size_t study_count;
    bool is_devices;
    struct diff_report_subject subjects[DRY_DIFF_SUBJECTS_MAX];
    struct subject extras[DRY_DIFF_SUBJECTS_MAX];
    struct dry_diff_subject compared[DRY_DIFF_SUBJECTS_MAX];
    size_t subject_count;
    struct dry_diff *diff;
};

/* --- the command line --------------------------------------------------------------------- */

static int
find_key(struct session *s)
{
    static const enum dry_owner_key keys[] = {DRY_OWNER_LINE, DRY_OWNER_FUNCTION,
                                              DRY_OWNER_MODULE, DRY_OWNER_CATEGORY,
                                              DRY_OWNER_SIZE};
    const char *by = s->values.by ? s->values.by : "line";
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        if (strcmp(by, dry_owner_key_name(keys[i])) == 0) {
            s->key = keys[i];
            return EXIT_FINE;
        }
    }
    return report_usage("diff",
                        "--by %s: expected line, function, module, category or size", by);
}

static int
check_usage(struct session *s, const struct option_list *operands)
{
    if (operands->count == 0 || operands->count > DRY_DIFF_SUBJECTS_MAX)
        return report_usage("diff", "%zu files are given, 1 to %u are expected",
                            operands->count, DRY_DIFF_SUBJECTS_MAX);
    if (operands->count == 1 && s->values.device != STUDY_EVERY_DEVICE)
        return report_usage("diff", "--device: one device of one file has nothing to be "
                                    "compared with");
    int code = figures_check("diff", &s->values.gate, s->values.json);
    return code == EXIT_FINE ? find_key(s) : code;
}

/* --- subjects ----------------------------------------------------------------------------- */

static int
classify(struct session *s, const struct study *study, size_t device,
         struct subject *extra)
{
    if (s->key != DRY_OWNER_CATEGORY)
        return EXIT_FINE;
    const struct dry_timeline *timeline = study->devices[device].timeline;
    struct dry_error err;
    enum dry_status status = dry_steps_create(timeline, NULL, &extra->steps, &err);
    if (status == DRY_OK)
        status =
            dry_categories_create(timeline, extra->steps, NULL, &extra->categories, &err);
    return status == DRY_OK ? EXIT_FINE : report_error("diff", study->path, &err);
}

static int
add_subject(struct session *s, const struct study *study, size_t device)
{
    if (s->subject_count == DRY_DIFF_SUBJECTS_MAX)
        return report_usage("diff", "%s has %zu devices, %u can be compared", study->path,
                            study->device_count, DRY_DIFF_SUBJECTS_MAX);
    uint32_t moment;
    const struct dry_timeline *timeline = study->devices[device].timeline;
    size_t i = s->subject_count;
    int code = study_find_moment(study, device, s->values.at, &moment);
    if (code != EXIT_FINE)
        return code;
    s->subject_count++;
    code = classify(s, study, device, &s->extras[i]);
    s->subjects[i] = (struct diff_report_subject){
        .study = study,
        .device = device,
        .moment = moment_describe(dry_timeline_get_view(timeline), s->values.at, moment)};
    s->compared[i] = (struct dry_diff_subject){
        .timeline = timeline, .moment = moment, .categories = s->extras[i].categories};
    return code;
}

static int
open_files(struct session *s, const struct option_list *operands)
{
    s->studies = calloc(operands->count, sizeof *s->studies);
    if (!s->studies)
        return report_memory("diff", NULL);
    int code = EXIT_FINE;
    for (size_t i = 0; i < operands->count && code == EXIT_FINE; i++) {
        struct study *study = &s->studies[s->study_count++];
        code = study_open(study, "diff", operands->values[i], s->values.device);
        if (code == EXIT_FINE && operands->count > 1)
            code = add_subject(s, study, study->main);
    }
    return code;
}

static int
add_devices(struct session *s)
{
    const struct study *study = &s->studies[0];
    s->is_devices = true;
    if (study->device_count < 2)
        return report_usage(
            "diff", "%s has one device: give another file to compare with", study->path);
    int code = EXIT_FINE;
    for (size_t i = 0; i < study->device_count && code == EXIT_FINE; i++)
        code = add_subject(s, study, i);
    return code;
}

/* --- the report --------------------------------------------------------------------------- */

static uint64_t
default_min(const struct session *s)
{
    uint64_t largest = dry_diff_get_total(s->diff)->max;
    return largest / 100 < MIN_BYTES_DEFAULT ? largest / 100 : MIN_BYTES_DEFAULT;
}

static int
report(struct session *s)
{
    struct diff_report r = {
        .subjects = s->subjects,
        .subject_count = s->subject_count,
        .is_devices = s->is_devices,
        .diff = s->diff,
        .key = s->key,
        .min_bytes = s->values.min == NOT_GIVEN ? default_min(s) : s->values.min,
        .row_limit = rows_limit(s->values.rows, s->values.json),
    };
    int code = EXIT_FINE;
    if (s->values.json)
        code = diff_report_print_json(&r);
    else if (!gate_takes_output(&s->values.gate) && !diff_report_print(&r))
        code = report_failure("diff", NULL, EXIT_MACHINE, "no memory for the table");
    if (code == EXIT_FINE && s->values.fail_above != NOT_GIVEN &&
        diff_report_spread(&r) > s->values.fail_above)
        return EXIT_FOUND;
    return figures_judge_diff(&r, &s->values.gate, code);
}

static int
compare(struct session *s, const struct option_list *operands)
{
    int code = open_files(s, operands);
    if (code == EXIT_FINE && operands->count == 1)
        code = add_devices(s);
    if (code != EXIT_FINE)
        return code;
    struct dry_diff_options options;
    dry_diff_options_init(&options);
    options.key = s->key;
    struct dry_error err;
    if (dry_diff_create(s->compared, s->subject_count, &options, &s->diff, &err) !=
        DRY_OK)
        return report_error("diff", NULL, &err);
    return report(s);
}

static void
finish(struct session *s)
{
    dry_diff_destroy(s->diff);
    for (size_t i = 0; i < s->subject_count; i++) {
        dry_categories_destroy(s->extras[i].categories);
        dry_steps_destroy(s->extras[i].steps);
    }
    for (size_t i = 0; i < s->study_count; i++)
        study_close(&s->studies[i]);
    free(s->studies);
}

static int
run(int argc, char **argv)
{
    struct session s = {.values = {.device = STUDY_EVERY_DEVICE,
                                   .rows = ROWS_NOT_GIVEN,
                                   .min = NOT_GIVEN,
                                   .fail_above = NOT_GIVEN}};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_diff, argc, argv, &s.values, &operands, &code)) {
        code = check_usage(&s, &operands);
        if (code == EXIT_FINE)
            code = compare(&s, &operands);
    }
    finish(&s);
    options_finish(&command_diff, &s.values, &operands);
    return code;
}

const struct command command_diff = {
    .name = "diff",
    .summary = "runs, ranks or devices compared: what each holds more of",
    .usage = "[options] FILE [FILE...]",
    .about = about_text,
    .examples = "drystone diff before.pickle after.pickle\n"
                "drystone diff rank*.pickle --by function\n"
                "drystone diff run.pickle\n"
                "drystone diff main.pickle branch.pickle --fail-above 256MiB\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
