/* SPDX-License-Identifier: Apache-2.0 */
/* See sweep_run.h. */
#include "sweep/sweep_run.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"
#include "sweep/sweep_rank.h"
#include "sweep/sweep_result.h"
#include "work/work.h"

static int
report_no_memory(void)
{
    return report_failure("sweep", NULL, EXIT_MACHINE, "no memory for the combinations");
}

/* --- one run ------------------------------------------------------------------------------ */

/* Set the options of a run of `row` on `file`, as in `drystone replay`. */
static void
init_options(const struct sweep *s, const struct sweep_row *row,
             const struct sweep_file *file, struct dry_run_options *options)
{
    const char *recorded = dry_replay_get_recorded(file->replay)->place;
    dry_run_options_init(options);
    options->capacity_bytes = s->capacity_bytes;
    options->begin_anew = true; /* the recorded settings too, for comparability */
    options->conf = row->conf;
    options->place = s->place;
    if (sweep_row_is_recorded(row))
        options->place = recorded[0] ? recorded : NULL;
}

/* Return the event at which a part ends. */
static size_t
end_of_part(const struct sweep_file *file, unsigned halvings)
{
    size_t part = file->event_count >> halvings;
    return halvings ? file->first_event + (part ? part : 1) : DRY_EVENT_NONE;
}

/* --- what the allocator refuses ----------------------------------------------------------- */

/* Run no events of `file`: this only parses the settings and places the blocks that were
   alive before. */
static enum dry_status
try_settings(const struct sweep *s, const struct sweep_row *row,
             const struct sweep_file *file, struct dry_error *err)
{
    struct dry_run_options options;
    struct dry_run run;
    init_options(s, row, file, &options);
    options.end_event = file->first_event;
    return dry_replay_run(file->replay, &options, &run, err);
}

/* Tell whether an earlier file has the same rules and the same knowledge of capacity, so
   that it accepts the same settings. */
static bool
has_known_judge(const struct sweep *s, size_t file)
{
    const struct dry_replay *replay = s->files[file].replay;
    const char *compat = dry_replay_get_check(replay)->compat;
    bool has_capacity = dry_replay_get_recorded(replay)->capacity_bytes > 0;
    for (size_t i = 0; i < file; i++) {
        const struct dry_replay *other = s->files[i].replay;
        if (strcmp(dry_replay_get_check(other)->compat, compat) == 0 &&
            (dry_replay_get_recorded(other)->capacity_bytes > 0) == has_capacity)
            return true;
    }
    return false;
}

static int
try_row(const struct sweep *s, struct sweep_row *row)
{
    struct dry_error err;
    for (size_t i = 0; i < s->file_count && !row->refused; i++) {
        enum dry_status status =
            has_known_judge(s, i) ? DRY_OK : try_settings(s, row, &s->files[i], &err);
        if (status == DRY_ERR_ARGUMENT || status == DRY_ERR_UNSUPPORTED) {
            row->refused = strdup(err.text);
            if (!row->refused)
                return report_no_memory();
        } else if (status != DRY_OK) {
            return report_error("sweep", s->files[i].path, &err);
        }
    }
    return EXIT_FINE;
}

static bool
is_taken(const struct sweep *s, size_t key, const struct sweep_value *value)
{
    for (size_t i = 0; i < s->grid.combination_count; i++) {
        if (!s->rows[i].refused && sweep_grid_value(&s->grid, i, key) == value)
            return true;
    }
    return false;
}

static int
report_value(const struct sweep *s, size_t key, const struct sweep_value *value,
             const char *why)
{
    return report_usage("sweep", "--grid: character %zu: %.40s=%.60s: %s", value->at,
                        s->grid.keys[key].name, value->text ? value->text : "default",
                        why);
}

/* Report a value that is refused even without other keys. EXIT_FINE: it is accepted. */
static int
report_if_alone(const struct sweep *s, size_t key, const struct sweep_value *value)
{
    char conf[SWEEP_GRID_BYTES_MAX + 2];
    struct dry_error err;
    struct sweep_row row = {.conf = conf};
    snprintf(conf, sizeof conf, "%s:%s", s->grid.keys[key].name,
             value->text ? value->text : "");
    if (!value->text || try_settings(s, &row, &s->files[0], &err) == DRY_OK)
        return EXIT_FINE;
    return report_value(s, key, value, err.text);
}

/* Report a value with the error of its first combination. */
static int
report_together(const struct sweep *s, size_t key, const struct sweep_value *value)
{
    size_t i = 0;
    while (sweep_grid_value(&s->grid, i, key) != value)
        i++;
    return report_value(s, key, value, s->rows[i].refused);
}

/*
 * Find a value whose every combination is refused, and report it. Values refused alone
 * come first, because a wrong key makes the combinations of all other values fail, too.
 */
static int
check_values(const struct sweep *s)
{
    int (*const reports[])(const struct sweep *, size_t, const struct sweep_value *) = {
        report_if_alone, report_together};
    for (size_t r = 0; r < 2 && sweep_count_refused(s) > 0; r++) {
        for (size_t k = 0; k < s->grid.key_count; k++) {
            const struct sweep_key *key = &s->grid.keys[k];
            for (size_t v = 0; v < key->count; v++) {
                int code = is_taken(s, k, &key->values[v])
                               ? EXIT_FINE
                               : reports[r](s, k, &key->values[v]);
                if (code != EXIT_FINE)
                    return code;
            }
        }
    }
    return EXIT_FINE;
}

static int
make_rows(struct sweep *s)
{
    size_t count = s->grid.combination_count + 1;
    int code = EXIT_FINE;
    s->rows = calloc(count, sizeof *s->rows);
    if (!s->rows)
        return report_no_memory();
    s->row_count = count;
    for (size_t i = 0; i < count && code == EXIT_FINE; i++) {
        struct sweep_row *row = &s->rows[i];
        bool is_recorded = i + 1 == count;
        row->combination = is_recorded ? SWEEP_RECORDED : i;
        row->files = calloc(s->file_count, sizeof *row->files);
        row->conf = is_recorded ? NULL : sweep_grid_write(&s->grid, i);
        if (!row->files || (!is_recorded && !row->conf))
            return report_no_memory();
        code = is_recorded ? EXIT_FINE : try_row(s, row);
    }
    return code == EXIT_FINE ? check_values(s) : code;
}

/* --- work --------------------------------------------------------------------------------- */

/* Rows that run on the same part. Tasks are numbered by row, then by file. */
struct batch {
    const struct sweep *sweep;
    struct sweep_row *rows;
    size_t count;
    unsigned halvings;
};

static void
describe(void *self, size_t i, struct work_task *task)
{
    const struct batch *b = self;
    const struct sweep *s = b->sweep;
    const struct sweep_row *row = &b->rows[i / s->file_count];
    const struct sweep_file *file = &s->files[i % s->file_count];
    snprintf(task->key, sizeof task->key,
             "1/%u of device %" PRId32 " by %s, compat %s, capacity %" PRIu64
             ", settings %s, file %s",
             1u << b->halvings, dry_replay_get_recorded(file->replay)->device,
             s->place ? s->place : "torch", s->compat ? s->compat : "auto",
             s->capacity_bytes, row->conf ? row->conf : "recorded", file->path);
    task->stamp = file->stamp;
    task->weight = (file->event_count >> b->halvings) + 1;
}

static char *
run_task(void *self, size_t i)
{
    const struct batch *b = self;
    const struct sweep *s = b->sweep;
    const struct sweep_file *file = &s->files[i % s->file_count];
    struct dry_run_options options;
    struct dry_run run;
    struct dry_error err;
    init_options(s, &b->rows[i / s->file_count], file, &options);
    options.find_capacity = true;
    options.end_event = end_of_part(file, b->halvings);
    enum dry_status status = dry_replay_run(file->replay, &options, &run, &err);
    if (status == DRY_ERR_MEMORY)
        return NULL;
    return status == DRY_OK ? sweep_result_write(&run)
                            : sweep_result_write_error(err.text);
}

/* Read the figures from the texts of a batch. */
static int
read_results(const struct batch *b, char **texts)
{
    const struct sweep *s = b->sweep;
    for (size_t i = 0; i < b->count; i++) {
        struct sweep_row *row = &b->rows[i];
        for (size_t f = 0; f < s->file_count; f++) {
            char error[SWEEP_ERROR_BYTES];
            if (!sweep_result_read(texts[i * s->file_count + f], &row->files[f], error))
                return report_failure("sweep", s->files[f].path, EXIT_INPUT, "%s: %s",
                                      row->conf ? row->conf : "recorded settings", error);
        }
        sweep_row_conclude(row, s->file_count);
    }
    return EXIT_FINE;
}

static int
run_batch(struct sweep *s, struct sweep_row *rows, size_t count, unsigned halvings)
{
    struct batch batch = {s, rows, count, halvings};
    struct work work = {.name = "sweep",
                        .count = count * s->file_count,
                        .self = &batch,
                        .describe = describe,
                        .run = run_task,
                        .is_whole = sweep_result_is_whole};
    struct work_options options = {.threads = s->threads,
                                   .store = s->store,
                                   .part = s->part,
                                   .does_merge = s->does_merge};
    struct work_results results;
    int code = work_run(&work, &options, &results);
    s->is_elsewhere = results.is_elsewhere;
    s->is_job = results.is_job;
    if (code == EXIT_FINE && !s->is_elsewhere)
        code = read_results(&batch, results.texts);
    work_results_drop(&results);
    return code;
}

/* --- rounds ------------------------------------------------------------------------------- */

/* Run the first `*count` rows on a part, and sort the better half to the front. The last
   round keeps as many rows as the budget allows. */
static int
run_round(struct sweep *s, size_t round, size_t round_count, size_t *count)
{
    unsigned halvings = (unsigned)(round_count - round);
    size_t tried = *count, kept = (tried + 1) / 2;
    if (round + 1 == round_count || kept < s->budget)
        kept = s->budget;
    int code = run_batch(s, s->rows, tried, halvings);
    if (code != EXIT_FINE)
        return code;
    sweep_rank(s->rows, tried);
    for (size_t i = kept; i < tried; i++)
        s->rows[i].pruned = (unsigned)round + 1;
    s->rounds[s->round_count++] =
        (struct sweep_round){.halvings = halvings, .tried = tried, .kept = kept};
    *count = kept;
    return EXIT_FINE;
}

/*
 * Order the rows: candidates, recorded settings, refused. Successive halving runs the candidates;
 * the recorded settings join only the final full run.
 */
int
sweep_run(struct sweep *s)
{
    int code = make_rows(s);
    if (code != EXIT_FINE)
        return code;
    size_t count = s->grid.combination_count - sweep_count_refused(s);
    struct sweep_row recorded = s->rows[s->row_count - 1];
    s->rows[s->row_count - 1] = (struct sweep_row){0};
    sweep_rank(s->rows, s->row_count - 1);
    size_t round_count = sweep_count_rounds(count, s->budget);
    for (size_t i = 0; i < round_count && code == EXIT_FINE; i++)
        code = run_round(s, i, round_count, &count);
    memmove(s->rows + count + 1, s->rows + count,
            (s->row_count - 1 - count) * sizeof *s->rows);
    s->rows[count] = recorded;
    if (code == EXIT_FINE)
        code = run_batch(s, s->rows, count + 1, 0);
    if (code != EXIT_FINE || s->is_elsewhere)
        return code;
    sweep_rank(s->rows, s->row_count);
    sweep_mark_front(s->rows, s->row_count);
    return EXIT_FINE;
}

size_t
sweep_count_refused(const struct sweep *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->row_count; i++)
        count += s->rows[i].refused != NULL;
    return count;
}

size_t
sweep_count_pruned(const struct sweep *s)
{
    size_t count = 0;
    for (size_t i = 0; i < s->row_count; i++)
        count += s->rows[i].pruned > 0;
    return count;
}
