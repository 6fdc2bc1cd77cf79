/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A metric family is a field: its key is the name and has the unit at its end, its meaning
 * is the help. The format requires all samples of a family together, so the outer loop is
 * over families.
 */
#include "exporter/exporter_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#define PREFIX "drystone_"

struct exposition {
    FILE *out;
    enum exporter_format format;
};

/* --- what is written ---------------------------------------------------------------------- */

static bool
is_total(const struct dry_field *f)
{
    return f->unit == DRY_UNIT_TOTAL || f->unit == DRY_UNIT_NANOSECONDS;
}

/* Write the name of a family. Times are told in seconds, whatever their key. */
static void
write_name(const struct exposition *exposition, const char *group,
           const struct dry_field *f, bool has_ending)
{
    bool is_time = f->unit == DRY_UNIT_NANOSECONDS;
    size_t length = strlen(f->key) - (is_time ? strlen("_us") : 0);
    fprintf(exposition->out, PREFIX "%s%.*s%s%s", group, (int)length, f->key,
            is_time ? "_seconds" : "", has_ending && is_total(f) ? "_total" : "");
}

static void
write_head(const struct exposition *exposition, const char *group,
           const struct dry_field *f)
{
    bool is_open = exposition->format == EXPORTER_OPENMETRICS;
    const char *unit = f->unit == DRY_UNIT_BYTES ? "bytes"
                       : f->unit == DRY_UNIT_SECONDS || f->unit == DRY_UNIT_NANOSECONDS
                           ? "seconds"
                           : NULL;
    fputs("# HELP ", exposition->out);
    write_name(exposition, group, f, !is_open);
    fprintf(exposition->out, " %s\n# TYPE ", f->meaning);
    write_name(exposition, group, f, !is_open);
    fprintf(exposition->out, " %s\n", is_total(f) ? "counter" : "gauge");
    if (!is_open || !unit)
        return;
    fputs("# UNIT ", exposition->out);
    write_name(exposition, group, f, false);
    fprintf(exposition->out, " %s\n", unit);
}

/* Write a sample, unless the figure is not known. */
static void
write_sample(const struct exposition *exposition, const char *group,
             const struct dry_field *f, const char *labels, const void *object)
{
    struct dry_field_value value;
    if (!dry_field_get(f, object, &value))
        return;
    write_name(exposition, group, f, true);
    if (labels[0])
        fprintf(exposition->out, "{%s}", labels);
    if (value.type == DRY_FIELD_REAL)
        fprintf(exposition->out, " %.6f\n", value.real);
    else if (f->unit == DRY_UNIT_NANOSECONDS)
        fprintf(exposition->out, " %.6f\n", (double)value.number * 1e-9);
    else
        fprintf(exposition->out, " %llu\n", (unsigned long long)value.number);
}

/* --- tables of rows ----------------------------------------------------------------------- */

static const struct dry_field use_fields[] = {
    DRY_FIELD_OF(struct exporter_row, "driver_used_bytes", U64, BYTES, bytes,
                 DRY_KNOWN_UNLESS_MAX, offsetof(struct exporter_row, bytes), false,
                 "device memory of a process, by the driver"),
};

enum object { FIGURES, DETAIL, SOURCE, LANE, DEVICE, USE };

/* Return the struct that has a row's fields. NULL: the row has none. */
static const void *
find_object(const struct exporter_row *row, enum object object)
{
    switch (object) {
    case FIGURES:
        return &row->source->published.figures;
    case DETAIL:
        return row->source->published.detail.at_ns ? &row->source->published.detail
                                                   : NULL;
    case SOURCE:
        return row->source;
    case LANE:
        return &row->lane;
    case DEVICE:
        return row->device;
    case USE:
        break;
    }
    return row;
}

/* Write the fields with a unit as families; a database makes rates itself. */
static void
write_table(const struct exposition *exposition, const char *group,
            struct dry_fields fields, const struct exporter_table *rows,
            enum object object)
{
    for (size_t i = 0; i < fields.count; i++) {
        const struct dry_field *f = &fields.list[i];
        if (f->unit == DRY_UNIT_NONE)
            continue;
        write_head(exposition, group, f);
        for (size_t n = 0; n < rows->count; n++) {
            const void *of = find_object(&rows->rows[n], object);
            if (of)
                write_sample(exposition, group, f, rows->rows[n].labels, of);
        }
    }
}

/* Return the figures without totals, which pinned caches do not have. Totals come last. */
static struct dry_fields
get_byte_figures(void)
{
    struct dry_fields fields = dry_live_get_fields(DRY_LIVE_FIGURES);
    while (fields.list[fields.count - 1].unit != DRY_UNIT_BYTES)
        fields.count--;
    return fields;
}

/* Sources of devices and of the host are separate groups: a sum over a family then covers one
   kind of memory. */
static void
write_sources(const struct exposition *exposition, const char *group,
              struct dry_fields figures, const struct exporter_table *rows)
{
    struct dry_fields sums = dry_live_get_fields(DRY_LIVE_DETAIL);
    sums.list++; /* reserved_bytes is among the figures, and newer */
    sums.count--;
    write_table(exposition, group, figures, rows, FIGURES);
    write_table(exposition, group, sums, rows, DETAIL);
    write_table(exposition, group, watch_source_fields, rows, SOURCE);
}

/* --- the exporter itself ------------------------------------------------------------------ */

struct self {
    uint64_t build, driver_up, pages, refused, processes_left_out, sources_left_out;
    struct exporter_counts counts;
};

/* clang-format off */
#define SELF(key, kind, unit, member, meaning)                                           \
    DRY_FIELD_OF(struct self, key, kind, unit, member, DRY_KNOWN_ALWAYS, 0, false, meaning)

static const struct dry_field self_fields[] = {
    SELF("build_info", U64, COUNT, build, "the exporter's version"),
    SELF("driver_up", U64, COUNT, driver_up, "1 if the driver tells of devices"),
    SELF("pages", U64, COUNT, pages, "pages of running programs that are read"),
    SELF("pages_refused", U64, COUNT, refused, "pages that cannot be used; drystone live says why"),
    SELF("processes_left_out", U64, COUNT, processes_left_out, "processes beyond --processes-max, the smallest"),
    SELF("sources_left_out", U64, COUNT, sources_left_out, "allocators that have the labels of another one"),
    SELF("look_duration_seconds", REAL, SECONDS, counts.sample_seconds, "duration of the last look at all pages"),
    SELF("looks", U64, TOTAL, counts.samples, "looks at all pages"),
    SELF("ended_programs", U64, TOTAL, counts.ended_programs, "programs with a page that have ended"),
    SELF("ended_retries", U64, TOTAL, counts.ended_retries, "retries of programs that have ended, by their last page"),
    SELF("ended_ooms", U64, TOTAL, counts.ended_ooms, "refused requests of programs that have ended"),
};
/* clang-format on */

static void
write_self(const struct exposition *exposition, const struct watch *watch,
           const struct exporter_rows *rows, const struct exporter_counts *counts)
{
    struct self self = {
        .build = 1,
        .driver_up = !watch->no_driver,
        .pages = rows->pages,
        .refused = rows->refused,
        .processes_left_out = rows->processes_left_out,
        .sources_left_out = rows->sources_left_out,
        .counts = *counts,
    };
    const char *labels = "version=\"" DRY_VERSION "\"";
    for (size_t i = 0; i < sizeof self_fields / sizeof *self_fields; i++, labels = "") {
        write_head(exposition, "exporter_", &self_fields[i]);
        write_sample(exposition, "exporter_", &self_fields[i], labels, &self);
    }
}

char *
exporter_write(const struct watch *watch, const struct exporter_bounds *bounds,
               const struct exporter_counts *counts, enum exporter_format format,
               size_t *length)
{
    struct exporter_rows rows;
    char *text = NULL;
    bool is_whole = exporter_rows_choose(&rows, watch, bounds);
    struct exposition exposition = {
        .out = is_whole ? open_memstream(&text, length) : NULL, .format = format};
    if (exposition.out) {
        write_sources(&exposition, "process_", dry_live_get_fields(DRY_LIVE_FIGURES),
                      &rows.sources);
        write_sources(&exposition, "pinned_", get_byte_figures(), &rows.pinned);
        if (bounds->lanes > 0)
            write_table(&exposition, "lane_", dry_live_get_fields(DRY_LIVE_LANE),
                        &rows.lanes, LANE);
        write_table(&exposition, "device_", watch_device_fields, &rows.devices, DEVICE);
        write_table(&exposition, "process_", DRY_FIELDS_OF(use_fields), &rows.uses, USE);
        write_self(&exposition, watch, &rows, counts);
        if (format == EXPORTER_OPENMETRICS)
            fputs("# EOF\n", exposition.out);
        is_whole = !ferror(exposition.out);
        is_whole = fclose(exposition.out) == 0 && is_whole;
    }
    exporter_rows_finish(&rows);
    if (is_whole && exposition.out)
        return text;
    free(text);
    return NULL;
}
