/* SPDX-License-Identifier: Apache-2.0 */
/* `drystone sweep`: replay recorded programs under other settings, chosen by a search or
   from a grid. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <drystone/drystone.h>

#include "base/command.h"
#include "base/fnv.h"
#include "base/report.h"
#include "base/rows.h"
#include "record/load.h"
#include "sweep/sweep_report.h"
#include "sweep/sweep_run.h"
#include "sweep/sweep_search.h"
#include "sweep/sweep_table.h"
#include "work/part.h"
#include "work/work.h"

/* The key of a task also has to hold the longest settings. */
#define PATH_BYTES_MAX 1900
#define SEARCH_ROWS 12u /* rows of the table of a search */

struct values {
    struct sweep_search search; /* also holds the options shared with --grid */
    const char *grid, *place, *store, *part;
    int64_t threads, rows;
    bool merge;
};

#define OF_GRID .needs = {"grid", "for --grid alone"}
#define OF_SEARCH .refuses = {{"grid", "for a search, without --grid"}}

static const struct option_spec specs[] = {
    {"goal", 0, "GOAL", OPTION_STRING, offsetof(struct values, search.goal),
     .help =
         "without --grid, what to search for: fit, the smallest device on which it does "
         "not fail; peak, the lowest peak "
         "of reserved memory; stable, the fewest retries, then the least driver "
         "time; default: fit where a capacity is known or the recording met its "
         "limit, else peak",
     OF_SEARCH},
    {"without", 0, "WHAT", OPTION_LIST, offsetof(struct values, search.without),
     .help = "without --grid, what cannot be used: expandable, gc or split; may be given "
             "several times",
     OF_SEARCH},
    {"min-gain", 0, "SIZE", OPTION_SIZE, offsetof(struct values, search.min_gain),
     .help =
         "without --grid, the least that is a gain; default: 64MiB or 1 % of the peak, "
         "whichever is more",
     OF_SEARCH},
    {"runs", 0, "N", OPTION_INT, offsetof(struct values, search.runs),
     .help =
         "replay the program N times at most; default: 64, fewer for very long "
         "programs; with --grid run N combinations whole at most, and prune the others "
         "after a part of the events, half of them at a time; default: all",
     .min = 1, .max = SWEEP_COMBINATIONS_MAX},
    {"grid", 'g', "GRID", OPTION_STRING, offsetof(struct values, grid),
     .help = "instead of a search, these settings: KEY=VALUES;KEY=VALUES, keys as in "
             "PYTORCH_CUDA_ALLOC_CONF; "
             "values are a list a,b,c, in which default leaves the key out, and ranges "
             "FROM:TO:STEP or FROM:TO:xFACTOR"},
    {"capacity", 0, "SIZE", OPTION_SIZE, offsetof(struct values, search.capacity),
     .help = "bytes the device has for PyTorch: 40GiB; default: what the recording "
             "shows, by an OOM or, without --grid, by retries, else no limit",
     .min = 1},
    {"place", 'p', "PLACE", OPTION_STRING, offsetof(struct values, place),
     .help =
         "with --grid, who decides where a request goes: torch, the default, or paged, "
         "Drystone's own; the grid has its keys",
     OF_GRID},
    {"compat", 0, "VERSION", OPTION_STRING, offsetof(struct values, search.compat),
     .help = "the release of PyTorch whose rules apply, like 2.11; default auto: the one "
             "that reproduces the recording, without --grid all that do"},
    {"device", 'd', "N", OPTION_INT, offsetof(struct values, search.device),
     .help = "the device; default: each file's one with the most events, without --grid "
             "the one that ran out of memory before it",
     .max = NO_MAX},
    {"threads", 't', "N", OPTION_INT, offsetof(struct values, threads),
     .help = "with --grid, replay on N cores; default: all of them", .min = 1,
     .max = WORK_THREADS_MAX, OF_GRID},
    {"store", 0, "FILE", OPTION_STRING, offsetof(struct values, store),
     .help =
         "with --grid, keep all results in this SQLite file, and go on from those it has",
     OF_GRID},
    {"part", 0, "K/N", OPTION_STRING, offsetof(struct values, part),
     .help = WORK_PART_HELP, .needs = {"store", WORK_WANTS_STORE}},
    {"merge", 0, NULL, OPTION_FLAG, offsetof(struct values, merge),
     .help = WORK_MERGE_HELP, .needs = {"store", WORK_WANTS_STORE},
     .refuses = {{"part", WORK_NO_PART}}},
    {"rows", 'n', "N", OPTION_INT, offsetof(struct values, rows),
     .help =
         "how many rows of the table, 0 for all; default 12, with --grid 20; --json has "
         "all",
     .max = NO_MAX, .refuses = {{"json", "for the table: --json has all rows"}}},
    {"json", 0, NULL, OPTION_FLAG, offsetof(struct values, search.json),
     .help =
         "print JSON, schema drystone.sweep-search/1, with --grid drystone.sweep/1, see "
         "drystone-sweep(1)"},
};

static const char about_text[] =
    "Searches PYTORCH_CUDA_ALLOC_CONF by replay: runs the requests of FILE under "
    "settings made for the sizes it asks for, and says which one helps, by how much, "
    "what stands against it, or why none can. With --grid it replays each FILE under "
    "every combination of the grid, on all cores, and ranks them "
    "by the smallest device on which the program runs, then by reserved memory, then by "
    "the driver's time. The recorded settings are a row of their own, and the others are "
    "held against it. Of several files the worst one decides.";

/* --- the command line --------------------------------------------------------------------- */

static int
check_place(const char *place)
{
    if (!place || strcmp(place, "torch") == 0 || strcmp(place, "paged") == 0)
        return EXIT_FINE;
    return report_usage("sweep", "--place '%s' has no settings to try: torch or paged",
                        place);
}

static int
check_files(const struct values *v, const struct option_list *operands)
{
    if (operands->count == 0)
        return report_usage("sweep", "no file is given");
    for (size_t i = 0; i < operands->count; i++) {
        const char *path = operands->values[i];
        if (strlen(path) > PATH_BYTES_MAX)
            return report_usage("sweep", "a file's name is longer than %d bytes",
                                PATH_BYTES_MAX);
        if (v->store && strcmp(path, "-") == 0)
            return report_usage("sweep", "--store needs files: standard input has no "
                                         "name by which to find its results");
        for (size_t j = 0; j < i; j++) {
            if (strcmp(path, operands->values[j]) == 0)
                return report_usage("sweep", "%s is given twice", path);
        }
    }
    return EXIT_FINE;
}

/* Refuse --runs together with ranks or parts: each round needs the results of the
   previous one, so a budget works within one process only. */
static int
check_budget(const struct values *v)
{
    struct part part;
    const struct launcher *launcher = part_find_launcher(getenv, false, &part);
    if (v->search.runs > 0 && v->part)
        return report_usage("sweep",
                            "--part is for a sweep in one round: leave out --runs");
    if (v->search.runs == 0 || !launcher || !launcher->starts_ranks)
        return EXIT_FINE;
    return report_usage("sweep", "--runs is for one process with threads; %s started %zu",
                        launcher->name, part.count);
}

static int
read_options(struct sweep *s, const struct values *v, const struct option_list *operands)
{
    char why[SWEEP_GRID_WHY_BYTES];
    int code = check_files(v, operands);
    if (code == EXIT_FINE)
        code = check_place(v->place);
    if (code == EXIT_FINE)
        code = check_budget(v);
    if (code != EXIT_FINE)
        return code;
    if (!sweep_grid_parse(v->grid, &s->grid, why))
        return report_usage("sweep", "--grid: %s", why);
    s->place = v->place;
    s->compat = v->search.compat;
    s->store = v->store;
    s->device = v->search.device;
    s->capacity_bytes = v->search.capacity;
    s->threads = v->threads;
    s->part = v->part;
    s->does_merge = v->merge;
    s->budget = (size_t)v->search.runs;
    return EXIT_FINE;
}

/* --- files -------------------------------------------------------------------------------- */

/* Return a stamp for the keys of stored results. It depends on the file's contents and on
   this program's version, whose rules may differ. */
static uint64_t
get_stamp(const char *path, const struct input_description *about)
{
    struct stat st;
    uint64_t hash = fnv_add(FNV_BEGIN, DRY_VERSION, sizeof DRY_VERSION);
    if (about->stamp != 0)
        return fnv_add(hash, &about->stamp, sizeof about->stamp);
    if (stat(path, &st) != 0)
        return hash;
    hash = fnv_add(hash, &st.st_size, sizeof st.st_size);
    hash = fnv_add(hash, &st.st_mtim.tv_sec, sizeof st.st_mtim.tv_sec);
    return fnv_add(hash, &st.st_mtim.tv_nsec, sizeof st.st_mtim.tv_nsec);
}

static void
find_events(struct sweep_file *file)
{
    const struct dry_trace_view *v = dry_trace_get_view(file->trace);
    int32_t device = dry_replay_get_recorded(file->replay)->device;
    for (size_t i = 0; i < v->device_count; i++) {
        if (v->devices[i].device == device) {
            file->first_event = v->devices[i].first_event;
            file->event_count = v->devices[i].event_count;
        }
    }
}

/* Open a file without progress for its replay, which several threads share and would
   update concurrently. */
static int
open_file(const struct sweep *s, struct sweep_file *file, const char *path)
{
    const struct load_replay wanted = {
        .command = "sweep", .path = path, .device = s->device, .compat = s->compat};
    file->path = path;
    struct input_description about = {0};
    int code = load_trace("sweep", path, &file->trace, &about);
    file->stamp = get_stamp(path, &about);
    if (code == EXIT_FINE)
        code = load_replay(&wanted, file->trace, &file->replay);
    if (code == EXIT_FINE)
        find_events(file);
    return code;
}

static int
open_files(struct sweep *s, const struct option_list *operands)
{
    int code = EXIT_FINE;
    s->files = calloc(operands->count, sizeof *s->files);
    if (!s->files)
        return report_failure("sweep", NULL, EXIT_MACHINE, "no memory for the files");
    for (size_t i = 0; i < operands->count && code == EXIT_FINE; i++)
        code = open_file(s, &s->files[s->file_count++], operands->values[i]);
    return code;
}

static void
finish(struct sweep *s)
{
    for (size_t i = 0; i < s->row_count; i++) {
        free(s->rows[i].conf);
        free(s->rows[i].files);
        free(s->rows[i].refused);
    }
    for (size_t i = 0; i < s->file_count; i++) {
        dry_replay_destroy(s->files[i].replay);
        dry_trace_destroy(s->files[i].trace);
    }
    free(s->rows);
    free(s->files);
    sweep_grid_finish(&s->grid);
}

static int
sweep_files(struct sweep *s, const struct values *v, const struct option_list *operands)
{
    int code = read_options(s, v, operands);
    if (code == EXIT_FINE)
        code = open_files(s, operands);
    if (code == EXIT_FINE)
        code = sweep_run(s);
    if (code == EXIT_FINE && s->store && !s->is_elsewhere)
        code = sweep_table_write(s);
    if (code != EXIT_FINE || s->is_elsewhere)
        return code;
    code = v->search.json ? sweep_report_print_json(s, v->grid)
                          : sweep_report_print(s, rows_limit(v->rows, false));
    return code == EXIT_FINE ? sweep_report_exit_code(s) : code;
}

static int
search(struct values *v, const struct option_list *operands)
{
    if (operands->count != 1)
        return report_usage("sweep",
                            "%zu files are given; without --grid one is expected",
                            operands->count);
    v->search.path = operands->values[0];
    v->search.row_max =
        v->rows == ROWS_NOT_GIVEN ? SEARCH_ROWS : rows_limit(v->rows, false);
    return sweep_search_run(&v->search);
}

static int
run(int argc, char **argv)
{
    struct values values = {.search.device = LOAD_BUSIEST_DEVICE, .rows = ROWS_NOT_GIVEN};
    struct sweep sweep = {0};
    struct option_list operands = {0};
    int code;
    if (options_parse(&command_sweep, argc, argv, &values, &operands, &code))
        code = values.grid ? sweep_files(&sweep, &values, &operands)
                           : search(&values, &operands);
    finish(&sweep);
    options_finish(&command_sweep, &values, &operands);
    return code;
}

const struct command command_sweep = {
    .name = "sweep",
    .summary = "which settings would have helped, or a grid of them, by replay",
    .usage = "[options] FILE, or [options] --grid GRID FILE...",
    .about = about_text,
    .examples =
        "drystone sweep oom.pickle\n"
        "drystone sweep run.pickle --capacity 40GiB\n"
        "drystone sweep run.pickle --goal peak --without expandable --json\n"
        "drystone sweep run.pickle -g 'max_split_size_mb=default,20:512:x2'\n"
        "drystone sweep rank*.pickle -g 'expandable_segments=False,True;"
        "roundup_power2_divisions=default,4,[256:1,512:2,>:4]' --store sweep.sqlite\n"
        "drystone sweep run.pickle -g 'large_segment_size_mb=20:200:10;"
        "max_split_size_mb=default,200:800:100' --runs 16 --capacity 40GiB\n",
    .options = specs,
    .option_count = sizeof specs / sizeof *specs,
    .run = run,
};
