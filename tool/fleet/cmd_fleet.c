/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone fleet`: judge all ranks of a job in one pass. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/command.h"
#include "base/json_out.h"
#include "base/output.h"
#include "base/report.h"
#include "fleet/fleet_files.h"
#include "fleet/fleet_judge.h"
#include "fleet/fleet_report.h"
#include "fleet/fleet_row.h"
#include "fleet/fleet_settings.h"
#include "record/load.h"
#include "work/work.h"

struct values {
    const char *rank_from, *store, *part, *output;
    uint64_t max_bytes;
    int64_t threads;
    bool all, json, merge, no_settings;
};

#define DEFAULT_BYTES (UINT64_C(5) << 20)
#define LEAST_BYTES (INT64_C(256) << 10)

static const struct option_spec specs[] = {
    {"all", 0, NULL, OPTION_FLAG, offsetof(struct values, all),
     .help = "show every rank, group, finding, step and file"},
    {"rank-from", 0, "REGEX", OPTION_STRING, offsetof(struct values, rank_from),
     .help =
         "the rank is what the first group of this POSIX extended expression matches in "
         "a path; default: as trainers name files"},
    {"no-settings", 0, NULL, OPTION_FLAG, offsetof(struct values, no_settings),
     .help = "replay no other settings of the allocator"},
    {"store", 0, "FILE", OPTION_STRING, offsetof(struct values, store),
     .help = "keep what was found of each file in this SQLite file, and read no file "
             "again that it has"},
    {"part", 0, "K/N", OPTION_STRING, offsetof(struct values, part),
     .help = WORK_PART_HELP, .needs = {"store", WORK_WANTS_STORE}},
    {"merge", 0, NULL, OPTION_FLAG, offsetof(struct values, merge),
     .help = WORK_MERGE_HELP, .needs = {"store", WORK_WANTS_STORE},
     .refuses = {{"part", WORK_NO_PART}}},
    {"threads", 't', "N", OPTION_INT, offsetof(struct values, threads),
     .help = "files read at once; default: as many as there are cores", .min = 1,
     .max = WORK_THREADS_MAX},
    {"output", 'o', "OUT", OPTION_STRING, offsetof(struct values, output),
     .help = "also write one HTML file that opens anywhere; - is standard output, "
             "in place of the text",
     .refuses = {{"part", "for the whole job, and --part is for some files"}}},
    {"max-size", 0, "SIZE", OPTION_SIZE, offsetof(struct values, max_bytes),
     .help = "bytes of that file at most; default 5MiB. It says what was left out",
     .min = LEAST_BYTES, .needs = {"output", "for the HTML file: --output OUT"}},
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, json),
     .help = "print JSON, schema drystone.fleet/1, see drystone-fleet(1)"},
};

static const char about_text[] =
    "Reads the snapshots of all ranks of a job, one at a time for each thread, and says "
    "which ranks differ from the others and by which lines of source, which ranks hold "
    "alike, how the steps' peaks lie over the ranks, who failed first, and one change "
    "for "
    "the whole job. A folder stands for the snapshots in it, on a disk or in a store "
    "(s3://BUCKET/KEY). --output writes all of it as an HTML file.";

struct session {
    struct values values;
    struct fleet_files files;
    uint64_t memory_bytes; /* limit for the trace of one file */
    struct work_results row_texts;
    bool is_elsewhere; /* another process prints the report */
    bool is_job;       /* run under MPI */
    struct fleet_row *rows;
    struct fleet_rank *ranks;
    struct fleet_judgement judgement;
    size_t deciders[FLEET_DECIDERS_MAX];
    size_t decider_count;
    struct fleet_search searches[FLEET_DECIDERS_MAX], trials[FLEET_DECIDERS_MAX];
    const struct dry_candidate *proposals[FLEET_PROPOSALS_MAX];
    size_t proposal_count;
};

/* --- rows --------------------------------------------------------------------------------- */

static void
describe_file(const struct fleet_file *file, const char *what, struct work_task *task)
{
    snprintf(task->key, sizeof task->key, "%s %s", what, file->path);
    task->stamp = file->bytes * UINT64_C(0x9e3779b97f4a7c15) ^ file->stamp;
    task->weight = file->bytes;
}

static void
describe_row(void *self, size_t i, struct work_task *task)
{
    const struct session *s = self;
    describe_file(&s->files.files[i], "row", task);
}

static char *
run_row(void *self, size_t i)
{
    const struct session *s = self;
    return fleet_row_make(s->files.files[i].path, s->memory_bytes);
}

static bool
is_row(const char *text)
{
    struct fleet_row row;
    struct dry_error err;
    bool is_read = fleet_row_read(text, strlen(text), &row, &err) == DRY_OK;
    fleet_row_finish(&row);
    return is_read;
}

/* Read a row's text. If the text is not a valid row, its file counts as unreadable. */
static int
read_row(const char *text, struct fleet_row *row)
{
    struct dry_error err;
    if (fleet_row_read(text, strlen(text), row, &err) == DRY_OK)
        return EXIT_FINE;
    char why[400];
    snprintf(why, sizeof why, "its row is broken: %s", err.text);
    fleet_row_finish(row);
    char *instead = fleet_row_make_unreadable(why);
    bool is_read =
        instead && fleet_row_read(instead, strlen(instead), row, &err) == DRY_OK;
    free(instead);
    return is_read ? EXIT_FINE : report_memory("fleet", NULL);
}

static int
make_rows(struct session *s, const struct work_options *options)
{
    struct work work = {.name = "fleet",
                        .count = s->files.count,
                        .self = s,
                        .describe = describe_row,
                        .run = run_row,
                        .is_whole = is_row};
    int code = work_run(&work, options, &s->row_texts);
    s->is_elsewhere = s->row_texts.is_elsewhere;
    s->is_job = s->row_texts.is_job;
    if (code != EXIT_FINE || s->is_elsewhere) {
        work_results_drop(&s->row_texts);
        return code;
    }
    s->rows = calloc(s->files.count, sizeof *s->rows);
    s->ranks = calloc(s->files.count, sizeof *s->ranks);
    if (!s->rows || !s->ranks)
        code = report_memory("fleet", NULL);
    bool has_room = s->rows && s->ranks;
    for (size_t i = 0; has_room && code == EXIT_FINE && i < s->files.count; i++) {
        code = read_row(s->row_texts.texts[i], &s->rows[i]);
        s->ranks[i] = (struct fleet_rank){s->files.files[i].path, s->files.files[i].rank,
                                          &s->rows[i]};
    }
    work_results_drop(&s->row_texts);
    return code;
}

/* --- settings ----------------------------------------------------------------------------- */

static void
describe_search(void *self, size_t i, struct work_task *task)
{
    const struct session *s = self;
    describe_file(&s->files.files[s->deciders[i]], "settings", task);
}

static char *
run_search(void *self, size_t i)
{
    const struct session *s = self;
    return fleet_settings_make(s->files.files[s->deciders[i]].path, s->memory_bytes);
}

static bool
is_search(const char *text)
{
    struct fleet_search search;
    struct dry_error err;
    bool is_read = fleet_settings_read(text, strlen(text), &search, &err) == DRY_OK;
    fleet_settings_finish(&search);
    return is_read;
}

/* Name the task of a trial by its settings, too, because its result depends on them. */
static void
describe_trial(void *self, size_t i, struct work_task *task)
{
    const struct session *s = self;
    char what[600] = "try";
    size_t used = strlen(what);
    for (size_t k = 0; k < s->proposal_count && used + 1 < sizeof what; k++) {
        int length =
            snprintf(what + used, sizeof what - used, " %s", s->proposals[k]->conf);
        used += length > 0 ? (size_t)length : 0;
    }
    describe_file(&s->files.files[s->deciders[i]], what, task);
}

static char *
run_trial(void *self, size_t i)
{
    const struct session *s = self;
    return fleet_settings_try(s->files.files[s->deciders[i]].path, s->memory_bytes,
                              s->proposals, s->proposal_count);
}

/* Run `work` for the ranks that decide, and read the results into `searches`. */
static int
ask_deciders(struct session *s, const struct work *work,
             const struct work_options *options, struct fleet_search *searches)
{
    struct dry_error err;
    struct work_results texts;
    struct work_options local = *options;
    local.is_local = true; /* the other ranks of the job have exited */
    local.does_merge = false;
    int code = work_run(work, &local, &texts);
    for (size_t i = 0; code == EXIT_FINE && i < s->decider_count; i++) {
        const char *text = texts.texts[i];
        if (fleet_settings_read(text, strlen(text), &searches[i], &err) != DRY_OK)
            code = report_error("fleet", options->store, &err);
    }
    work_results_drop(&texts);
    return code;
}

static int
search_settings(struct session *s, const struct work_options *options)
{
    struct work work = {.name = "fleet",
                        .self = s,
                        .describe = describe_search,
                        .run = run_search,
                        .is_whole = is_search};
    s->decider_count = work.count = fleet_settings_choose(&s->judgement, s->deciders);
    int code = ask_deciders(s, &work, options, s->searches);
    if (code != EXIT_FINE)
        return code;
    s->proposal_count =
        fleet_settings_propose(s->searches, s->decider_count, s->proposals);
    if (s->proposal_count == 0)
        return EXIT_FINE;
    work.describe = describe_trial;
    work.run = run_trial;
    code = ask_deciders(s, &work, options, s->trials);
    for (size_t i = 0; code == EXIT_FINE && i < s->decider_count; i++) {
        if (!fleet_settings_add(&s->searches[i], &s->trials[i]))
            code = report_memory("fleet", NULL);
    }
    return code;
}

/* --- the whole command -------------------------------------------------------------------- */

/* Print the report, unless the page itself goes to standard output. */
static int
print(const struct session *s, const struct fleet_report *r)
{
    if (s->values.output && strcmp(s->values.output, "-") == 0)
        return EXIT_FINE;
    if (s->values.json)
        return json_out_print("fleet", fleet_report_make_json(r));
    return fleet_report_print(r) ? EXIT_FINE : report_memory("fleet", NULL);
}

static int
report(const struct session *s, const char *subject, bool is_searched)
{
    struct fleet_report r = {.subject = subject,
                             .judgement = &s->judgement,
                             .shows_all = s->values.all,
                             .is_searched = is_searched,
                             .decider_count = s->decider_count,
                             .deciders = s->deciders,
                             .searches = s->searches};
    fleet_settings_decide(s->searches, s->decider_count, &r.decision);
    r.advice = fleet_advice_choose(&r);
    int code = print(s, &r);
    if (code == EXIT_FINE && s->values.output)
        code = fleet_report_write_html(&r, s->values.output, s->values.max_bytes);
    if (code != EXIT_FINE)
        return code;
    if (s->judgement.used_count == 0)
        return report_failure("fleet", subject, EXIT_INPUT,
                              "none of the files can be used");
    bool is_fine =
        s->judgement.finding_count == 0 && s->judgement.used_count == s->judgement.count;
    return is_fine || s->is_job ? EXIT_FINE : EXIT_FOUND;
}

static int
judge(struct session *s, const char *subject)
{
    struct work_options options = {.threads = s->values.threads,
                                   .store = s->values.store,
                                   .part = s->values.part,
                                   .does_merge = s->values.merge};
    int code = make_rows(s, &options);
    if (code != EXIT_FINE || s->is_elsewhere)
        return code;
    if (!fleet_judge(&s->judgement, s->ranks, s->files.count))
        return report_memory("fleet", NULL);
    bool is_searched = !s->values.no_settings && s->judgement.used_count > 0;
    if (is_searched)
        code = search_settings(s, &options);
    return code == EXIT_FINE ? report(s, subject, is_searched) : code;
}

static int
find_files(struct session *s, const struct option_list *operands)
{
    regex_t pattern;
    const char *text = s->values.rank_from;
    if (operands->count == 0)
        return report_usage("fleet",
                            "no files; a folder, a pattern or files are expected");
    if (!text)
        return fleet_files_find(&s->files, operands->values, operands->count, NULL);
    int status = regcomp(&pattern, text, REG_EXTENDED);
    if (status != 0) {
        char why[200];
        regerror(status, &pattern, why, sizeof why);
        return report_usage("fleet", "--rank-from %s: %s", text, why);
    }
    int code =
        pattern.re_nsub == 0
            ? report_usage("fleet", "--rank-from %s: it has no group, as in rank([0-9]+)",
                           text)
            : fleet_files_find(&s->files, operands->values, operands->count, &pattern);
    regfree(&pattern);
    return code;
}

/* Refuse an output path that would overwrite a file of the job or its store. */
static int
check_output(const struct values *v, const struct fleet_files *files)
{
    const char *output = v->output, *store = v->store ? v->store : "";
    if (!output)
        return EXIT_FINE;
    if (strcmp(output, "-") == 0)
        return v->json
                   ? report_usage("fleet", "--json and the HTML file of --output - are "
                                           "both standard output")
                   : EXIT_FINE;
    for (size_t i = 0; i < files->count; i++)
        if (output_is_input(output, files->files[i].path))
            return report_usage("fleet", "%s is both read and written", output);
    if (strcmp(output, store) == 0 || output_is_input(output, store))
        return report_usage("fleet", "%s is the store and the HTML file", output);
    return EXIT_FINE;
}

static void
close_session(struct session *s)
{
    for (size_t i = 0; i < s->decider_count; i++) {
        fleet_settings_finish(&s->searches[i]);
        fleet_settings_finish(&s->trials[i]);
    }
    fleet_judge_finish(&s->judgement);
    for (size_t i = 0; s->rows && i < s->files.count; i++)
        fleet_row_finish(&s->rows[i]);
    free(s->rows);
    free(s->ranks);
    fleet_files_finish(&s->files);
}

/* Divide the memory by the threads: each file that is read may take that share. */
static uint64_t
share_memory(const struct values *v)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint64_t threads =
        v->threads ? (uint64_t)v->threads : (cores > 1 ? (uint64_t)cores : 1);
    return load_memory_bytes() / threads;
}

static int
run(int argc, char **argv)
{
    struct session s = {.values = {.max_bytes = DEFAULT_BYTES}};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_fleet, argc, argv, &s.values, &operands, &code)) {
        code = find_files(&s, &operands);
        s.memory_bytes = share_memory(&s.values);
        if (code == EXIT_FINE)
            code = check_output(&s.values, &s.files);
        if (code == EXIT_FINE)
            code = judge(&s, operands.values[0]);
    }
    close_session(&s);
    options_finish(&command_fleet, &s.values, &operands);
    return code;
}

const struct command command_fleet = {
    .name = "fleet",
    .summary = "all ranks of a job: which differ, by which lines, who failed first",
    .usage = "[options] DIR|GLOB|FILE|s3://BUCKET/KEY...",
    .about = about_text,
    .examples = "drystone fleet outputs/memory_snapshot/iteration_10\n"
                "drystone fleet 'oom-*.pickle' --all\n"
                "drystone fleet snapshots --rank-from 'worker([0-9]+)' --json\n"
                "drystone fleet snapshots --store fleet.sqlite\n"
                "drystone fleet s3://runs/job-17/snapshots\n"
                "drystone fleet snapshots -o fleet.html\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
