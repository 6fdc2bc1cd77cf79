/* SPDX-License-Identifier: Apache-2.0 */
/* See sweep_report.h. This file makes the JSON; see drystone-sweep(1). */
#include <string.h>

#include "base/json_out.h"
#include "sweep/sweep_report.h"

static json_t *
make_device(uint64_t bytes)
{
    return bytes == SWEEP_NO_DEVICE ? json_null() : json_out_number(bytes);
}

/* --- what was swept ----------------------------------------------------------------------- */

static json_t *
make_file(const struct sweep_file *file)
{
    const struct dry_replay_check *check = dry_replay_get_check(file->replay);
    const struct dry_replay_recorded *rec = dry_replay_get_recorded(file->replay);
    return json_pack(
        "{s:o, s:i, s:o, s:b, s:b, s:s, s:o, s:o}", "file", json_out_string(file->path),
        "device", (int)rec->device, "events", json_out_number(file->event_count),
        "possible", (int)check->possible, "exact", (int)check->exact, "compat",
        check->compat, "recorded_place", json_out_filled(rec->place), "recorded_conf",
        json_out_string(strcmp(rec->place, "paged") == 0 ? rec->place_conf : rec->conf));
}

static json_t *
make_files(const struct sweep *s)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->file_count && list; i++)
        list = json_out_append(list, make_file(&s->files[i]));
    return list;
}

static json_t *
make_budget(const struct sweep *s)
{
    json_t *rounds = json_array();
    if (s->budget == 0) {
        json_decref(rounds);
        return json_null();
    }
    for (size_t i = 0; i < s->round_count && rounds; i++) {
        const struct sweep_round *r = &s->rounds[i];
        rounds = json_out_append(
            rounds, json_pack("{s:f, s:I, s:I}", "part",
                              1.0 / (double)(UINT32_C(1) << r->halvings), "tried",
                              (json_int_t)r->tried, "kept", (json_int_t)r->kept));
    }
    return json_pack("{s:I, s:o}", "combinations", (json_int_t)s->budget, "rounds",
                     rounds);
}

/* --- rows --------------------------------------------------------------------------------- */

/* Return the values by key; null for an omitted key and for the recorded settings. */
static json_t *
make_settings(const struct sweep *s, const struct sweep_row *row)
{
    if (sweep_row_is_recorded(row))
        return json_null();
    json_t *settings = json_object();
    for (size_t k = 0; k < s->grid.key_count && settings; k++) {
        const char *value = sweep_grid_value(&s->grid, row->combination, k)->text;
        if (json_object_set_new(settings, s->grid.keys[k].name, json_out_string(value)) !=
            0) {
            json_decref(settings);
            settings = NULL;
        }
    }
    return settings;
}

static json_t *
make_figures(const struct sweep_figures *f)
{
    return json_pack("{s:b, s:o, s:o, s:f, s:o, s:o}", "fits", (int)f->fits,
                     "runs_on_bytes", make_device(f->device_bytes), "reserved_peak_bytes",
                     json_out_number(f->reserved_bytes), "driver_time_us",
                     (double)f->driver_time_ns / 1000.0, "driver_calls",
                     json_out_number(f->driver_calls), "num_alloc_retries",
                     json_out_number(f->retries));
}

static json_t *
make_file_figures(const struct sweep *s, const struct sweep_row *row)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->file_count && list; i++)
        list = json_out_append(list, make_figures(&row->files[i]));
    return list;
}

static json_int_t
subtract(uint64_t a, uint64_t b)
{
    return (json_int_t)(a - b);
}

/* Return a row's figures minus those of the recorded settings. */
static json_t *
make_difference(const struct sweep *s, const struct sweep_row *row)
{
    const struct sweep_figures *a = &row->all, *b = &sweep_find_recorded(s)->all;
    bool is_known =
        a->device_bytes != SWEEP_NO_DEVICE && b->device_bytes != SWEEP_NO_DEVICE;
    if (row->pruned)
        return json_null(); /* its figures cover a part of the events only */
    return json_pack(
        "{s:o, s:I, s:f, s:I, s:I}", "runs_on_bytes",
        is_known ? json_integer(subtract(a->device_bytes, b->device_bytes)) : json_null(),
        "reserved_peak_bytes", subtract(a->reserved_bytes, b->reserved_bytes),
        "driver_time_us", (double)subtract(a->driver_time_ns, b->driver_time_ns) / 1000.0,
        "driver_calls", subtract(a->driver_calls, b->driver_calls), "num_alloc_retries",
        subtract(a->retries, b->retries));
}

static json_t *
make_row(const struct sweep *s, const struct sweep_row *row)
{
    return json_pack("{s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o}", "conf",
                     json_out_string(row->conf), "settings", make_settings(s, row),
                     "recorded", (int)sweep_row_is_recorded(row), "front",
                     (int)row->is_front, "pruned_in_round",
                     json_out_known(row->pruned, row->pruned), "worst_file",
                     json_out_string(s->files[row->worst_file].path), "figures",
                     make_figures(&row->all), "difference", make_difference(s, row),
                     "files", make_file_figures(s, row));
}

static json_t *
make_refused(const struct sweep *s, const struct sweep_row *row)
{
    return json_pack("{s:o, s:o, s:o}", "conf", json_out_string(row->conf), "settings",
                     make_settings(s, row), "why", json_out_string(row->refused));
}

/* Return the rows that ran, or those that were refused. */
static json_t *
make_rows(const struct sweep *s, bool wants_refused)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->row_count && list; i++) {
        const struct sweep_row *row = &s->rows[i];
        if ((row->refused != NULL) == wants_refused)
            list = json_out_append(list, wants_refused ? make_refused(s, row)
                                                       : make_row(s, row));
    }
    return list;
}

int
sweep_report_print_json(const struct sweep *s, const char *grid)
{
    const struct sweep_row *best = s->rows[0].all.fits ? &s->rows[0] : NULL;
    return json_out_print(
        "sweep", json_pack("{s:s, s:o, s:o, s:I, s:s, s:o, s:o, s:o, s:o, s:o}", "schema",
                           "drystone.sweep/1", "files", make_files(s), "grid",
                           json_out_string(grid), "combinations",
                           (json_int_t)s->grid.combination_count, "place",
                           s->place ? s->place : "torch", "capacity_bytes",
                           json_out_known(s->capacity_bytes, s->capacity_bytes), "budget",
                           make_budget(s), "best", best ? json_integer(0) : json_null(),
                           "rows", make_rows(s, false), "refused", make_rows(s, true)));
}
