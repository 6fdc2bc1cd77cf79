/* SPDX-License-Identifier: Apache-2.0 */
/* See series.h. */
#include "dryrun/series.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/json_out.h"
#include "base/report.h"
#include "base/table.h"

static int
keep_snapshot(const struct series *s, const struct trial *t, struct series_row *row)
{
    if (!trial_main(t)->snapshot || (s->has_one_snapshot && row->outcome != TRIAL_FITS))
        return EXIT_FINE;
    row->snapshot = s->has_one_snapshot ? strdup(s->output)
                                        : trial_name_snapshot(s->output, row->label);
    if (!row->snapshot)
        return report_memory(s->request->command, NULL);
    return trial_keep_snapshot(s->request->command, trial_main(t), row->snapshot);
}

static int
take(struct series *s, const struct trial *t, struct series_row *row)
{
    const struct facts_process *p = trial_main(t);
    row->outcome = trial_outcome(t);
    row->is_unseen = trial_find_unseen(t) != NULL && !trial_find_engine(t);
    if (row->outcome == TRIAL_FITS)
        dry_report_write_condition(t, row->condition, sizeof row->condition);
    row->torch_bytes = trial_torch_bytes(t->launch.request.card, p->nccl_bytes);
    row->reserved = p->reserved_peak;
    row->allocated = p->allocated_peak;
    row->has_host = t->launch.request.host_bytes > 0;
    row->host = trial_find_host(t).peak_bytes;
    const struct facts_process *engine = trial_find_engine(t);
    if (engine) {
        row->is_engine = true;
        row->kv_bytes = engine->engine.kv_bytes;
        row->kv_tokens = engine->engine.kv_tokens;
        row->requests = engine->engine.requests;
    }
    row->step_count = p->step_count;
    row->seconds = p->seconds;
    int code = keep_snapshot(s, t, row);
    const struct dry_report report = {.trial = t, .snapshot = row->snapshot};
    if (code == EXIT_FINE)
        row->json = dry_report_make_json(&report);
    if (code == EXIT_FINE &&
        (!row->json || json_object_set_new(row->json, "run", json_string(row->label))))
        code = report_memory(s->request->command, NULL);
    return code;
}

int
series_run(struct series *s, const struct launch_request *request, const char *label)
{
    struct series_row *more = realloc(s->rows, (s->count + 1) * sizeof *more);
    if (!more)
        return report_memory(request->command, NULL);
    s->rows = more;
    struct series_row *row = &s->rows[s->count];
    *row = (struct series_row){.outcome = TRIAL_NOT_KNOWN};
    snprintf(row->label, sizeof row->label, "%s", label);
    struct trial trial = {.launch = {.request = *request}};
    trial.launch.request.output = LAUNCH_OUTPUT_HIDDEN;
    trial.launch.request.title = row->label;
    int code = trial_run(&trial);
    if (code == EXIT_FINE) {
        s->count++;
        code = take(s, &trial, row);
    }
    if (row->outcome == TRIAL_NOT_KNOWN && code != EXIT_INTERRUPTED)
        launch_show_output(&trial.launch);
    trial_finish(&trial);
    return code;
}

/* Add a cell; "-" unless the run fits. */
static void
add_if_fits(struct table *table, const struct series_row *row, const char *text)
{
    table_add(table, row->outcome == TRIAL_FITS ? text : "-");
}

static void
add_memory(struct table *table, const struct series_row *row)
{
    char text[TERM_NUMBER_BYTES];
    uint64_t spare = trial_spare_bytes(row->torch_bytes, row->reserved);
    table_add(table, term_format_bytes(row->allocated, text));
    table_add(table, term_format_bytes(row->reserved, text));
    add_if_fits(table, row, term_format_bytes(spare, text));
    if (row->has_host)
        table_add(table, row->host > 0 ? term_format_bytes(row->host, text) : "-");
    table_add(table, term_format_count(row->step_count, text));
}

static void
add_engine(struct table *table, const struct series_row *row)
{
    char text[TERM_NUMBER_BYTES];
    add_if_fits(table, row, term_format_bytes(row->kv_bytes, text));
    add_if_fits(table, row, term_format_count(row->kv_tokens, text));
    add_if_fits(table, row, term_format_count(row->requests, text));
}

/* Print what the rows' "fits" depends on, once if they all share it. */
static bool
print_conditions(const struct series *s, const struct term *term)
{
    struct dry_condition *rows = calloc(s->count + 1, sizeof *rows);
    bool is_shared = true;
    size_t count = 0;
    for (size_t i = 0; rows && i < s->count; i++) {
        if (s->rows[i].outcome != TRIAL_FITS)
            continue;
        rows[count] = (struct dry_condition){s->rows[i].label, s->rows[i].condition};
        is_shared &= strcmp(rows[count].text, rows[0].text) == 0;
        count++;
    }
    if (rows && is_shared && count > 0) {
        rows[0].label = "fits";
        count = 1;
    }
    bool is_printed = rows && dry_report_print_conditions(rows, count, term);
    free(rows);
    return is_printed;
}

bool
series_print(const struct series *s, size_t best)
{
    struct term term;
    struct table table;
    char text[80], columns[240];
    bool is_engine = false, has_host = false;
    for (size_t i = 0; i < s->count; i++) {
        is_engine |= s->rows[i].is_engine;
        has_host |= s->rows[i].has_host;
    }
    term_init(&term, stdout);
    snprintf(columns, sizeof columns, "<%.60s <result %s >seconds", s->heading,
             is_engine  ? ">kv_cache >tokens >requests"
             : has_host ? ">allocated >reserved >to_spare >host >steps"
                        : ">allocated >reserved >to_spare >steps");
    table_init(&table, columns);
    for (size_t i = 0; i < s->count; i++) {
        const struct series_row *row = &s->rows[i];
        table_add(&table, row->label);
        table_add(&table, dry_report_outcome_name(row->outcome, row->is_unseen));
        (is_engine ? add_engine : add_memory)(&table, row);
        snprintf(text, sizeof text, "%.1f", row->seconds);
        table_add(&table, text);
    }
    bool is_printed = table_print(&table, &term);
    if (best < s->count)
        printf("  %s is the largest that fits\n", s->rows[best].label);
    return is_printed && print_conditions(s, &term);
}

int
series_print_json(const struct series *s, size_t best)
{
    json_t *runs = json_array();
    for (size_t i = 0; i < s->count; i++)
        json_array_append(runs, s->rows[i].json);
    json_t *root = json_pack(
        "{s:s, s:s, s:o, s:o}", "schema", "drystone.dry-run/1", "card",
        s->request->card->name, "best",
        best == SIZE_MAX ? json_null() : json_string(s->rows[best].label), "runs", runs);
    return json_out_print(s->request->command, root);
}

void
series_finish(struct series *s)
{
    for (size_t i = 0; i < s->count; i++) {
        free(s->rows[i].snapshot);
        json_decref(s->rows[i].json);
    }
    free(s->rows);
    s->rows = NULL;
    s->count = 0;
}
