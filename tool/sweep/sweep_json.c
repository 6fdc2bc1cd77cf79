/* SPDX-License-Identifier: Apache-2.0 */
/* See sweep_report.h. This file makes the JSON; see drystone-sweep(1). */
#include <string.h>

#include "base/fields.h"
#include "base/json_out.h"
#include "sweep/sweep_report.h"

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
    return fields_add_json(json_object(), sweep_fields, f);
}

static json_t *
make_file_figures(const struct sweep *s, const struct sweep_row *row)
{
    json_t *list = json_array();
    for (size_t i = 0; i < s->file_count && list; i++)
        list = json_out_append(list, make_figures(&row->files[i]));
    return list;
}

/* Return a figure of a row minus that of the recorded settings. */
static json_t *
subtract(const struct dry_field *field, const struct sweep_figures *row,
         const struct sweep_figures *recorded)
{
    struct dry_field_value a, b;
    if (!dry_field_get(field, row, &a) || !dry_field_get(field, recorded, &b))
        return json_null();
    int64_t difference = (int64_t)(a.number - b.number);
    return field->unit == DRY_UNIT_NANOSECONDS ? json_real((double)difference / 1000)
                                               : json_integer(difference);
}

static json_t *
make_difference(const struct sweep *s, const struct sweep_row *row)
{
    if (row->pruned)
        return json_null(); /* its figures cover a part of the events only */
    json_t *made = json_object();
    for (size_t i = 0; made && i < sweep_fields.count; i++) {
        const struct dry_field *f = &sweep_fields.list[i];
        if (f->type != DRY_FIELD_BOOL &&
            json_object_set_new(made, f->key,
                                subtract(f, &row->all, &sweep_find_recorded(s)->all)) !=
                0) {
            json_decref(made);
            made = NULL;
        }
    }
    return made;
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
