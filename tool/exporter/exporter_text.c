/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A metric family is a table row: its name, its unit, and the offset of the figure in the
 * row's struct. The format requires all samples of a family together, so the outer loop
 * is over families.
 */
#include "exporter/exporter_text.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/drystone.h>

#define PREFIX "drystone_"

enum type { GAUGE, COUNTER };
enum form {
    WHOLE,
    NANOSECONDS,
    SECONDS
}; /* figures: uint64_t, uint64_t printed in seconds, double */

struct family {
    const char *name; /* after the group's prefix, without "_total" */
    const char *unit; /* suffix of the name; "": none */
    const char *help;
    enum type type;
    enum form form;
    size_t where;      /* offset of the figure in the group's struct */
    bool is_of_detail; /* has no value before the page's first walk over its blocks */
};

/* A table with its families. */
struct group {
    const char *name; /* prefix of the names: "process_" */
    const struct family *families;
    size_t count;
};

struct page {
    FILE *out;
    enum exporter_format format;
};

/* --- what is written ---------------------------------------------------------------------- */

static void
write_head(const struct page *page, const char *group, const struct family *f)
{
    static const char *const types[] = {[GAUGE] = "gauge", [COUNTER] = "counter"};
    bool is_open = page->format == EXPORTER_OPENMETRICS;
    const char *end = f->type == COUNTER && !is_open ? "_total" : "";
    fprintf(page->out, "# HELP " PREFIX "%s%s%s %s\n", group, f->name, end, f->help);
    fprintf(page->out, "# TYPE " PREFIX "%s%s%s %s\n", group, f->name, end,
            types[f->type]);
    if (is_open && f->unit[0])
        fprintf(page->out, "# UNIT " PREFIX "%s%s %s\n", group, f->name, f->unit);
}

/* Write a sample, unless the figure is unknown or not a finite, positive duration. */
static void
write_sample(const struct page *page, const char *group, const struct family *f,
             const char *labels, const void *figures)
{
    uint64_t whole = 0;
    double seconds = 0;
    const char *at = (const char *)figures + f->where;
    if (f->form == SECONDS)
        memcpy(&seconds, at, sizeof seconds);
    else
        memcpy(&whole, at, sizeof whole);
    if (f->form == NANOSECONDS)
        seconds = (double)whole * 1e-9;
    if (whole == WATCH_UNKNOWN || !isfinite(seconds) || seconds < 0)
        return;
    fprintf(page->out, PREFIX "%s%s%s", group, f->name,
            f->type == COUNTER ? "_total" : "");
    if (labels[0])
        fprintf(page->out, "{%s}", labels);
    if (f->form == WHOLE)
        fprintf(page->out, " %llu\n", (unsigned long long)whole);
    else
        fprintf(page->out, " %.6f\n", seconds);
}

/* --- allocators --------------------------------------------------------------------------- */

#define FIGURE(field) offsetof(struct watch_source, page.figures.field)
#define DETAIL(field) offsetof(struct watch_source, page.detail.field)
#define SOURCE(field) offsetof(struct watch_source, field)

/* The first rows exist for pinned memory too. */
#define PINNED_FAMILIES 11

static const struct family of_sources[] = {
    {"reserved_bytes", "bytes", "Memory that the allocator has from the driver.", GAUGE,
     WHOLE, FIGURE(reserved), false},
    {"allocated_bytes", "bytes", "Memory in blocks that the program holds.", GAUGE, WHOLE,
     FIGURE(allocated), false},
    {"active_bytes", "bytes",
     "Allocated memory, and freed blocks that wait for a stream.", GAUGE, WHOLE,
     FIGURE(active), false},
    {"requested_bytes", "bytes", "Memory of the blocks in use, as the program asked.",
     GAUGE, WHOLE, FIGURE(requested), false},
    {"reserved_peak_bytes", "bytes", "The most that was reserved.", GAUGE, WHOLE,
     FIGURE(reserved_peak), false},
    {"allocated_peak_bytes", "bytes", "The most that was allocated.", GAUGE, WHOLE,
     FIGURE(allocated_peak), false},
    {"pending_bytes", "bytes", "Freed blocks that wait for a stream.", GAUGE, WHOLE,
     DETAIL(pending), true},
    {"stranded_bytes", "bytes",
     "Free memory that cannot go back, for it is beside something in use or of a private "
     "pool.",
     GAUGE, WHOLE, DETAIL(stranded), true},
    {"releasable_bytes", "bytes", "Free memory that the driver could have back.", GAUGE,
     WHOLE, DETAIL(releasable), true},
    {"largest_hole_bytes", "bytes", "The largest free block.", GAUGE, WHOLE,
     DETAIL(largest_hole), true},
    {"update_age_seconds", "seconds", "The time since the program wrote these figures.",
     GAUGE, SECONDS, SOURCE(age_s), false},
    {"limit_bytes", "bytes",
     "What may be reserved at most: the allocator's limit, else the device's memory.",
     GAUGE, WHOLE, SOURCE(limit), false},
    {"room_bytes", "bytes",
     "What more may be reserved, by the limit and by what is free on the device.", GAUGE,
     WHOLE, SOURCE(room), false},
    {"time_to_limit_seconds", "seconds",
     "The time until the limit is reached at the last minute's rate; absent if it is not "
     "in sight.",
     GAUGE, SECONDS, SOURCE(seconds_left), false},
    {"retries", "", "Requests that were served only after cached memory went back.",
     COUNTER, WHOLE, FIGURE(retries), false},
    {"ooms", "", "Requests that were refused for want of memory.", COUNTER, WHOLE,
     FIGURE(ooms), false},
    {"driver_allocs", "", "Calls that took memory from the driver.", COUNTER, WHOLE,
     FIGURE(driver_allocs), false},
    {"driver_frees", "", "Calls that gave memory back to the driver.", COUNTER, WHOLE,
     FIGURE(driver_frees), false},
    {"driver_calls", "", "Calls of the driver, but queries.", COUNTER, WHOLE,
     FIGURE(driver_calls), false},
    {"pages_moved", "", "Pages taken from free memory and mapped elsewhere.", COUNTER,
     WHOLE, FIGURE(pages_moved), false},
    {"driver_seconds", "seconds",
     "The time in the driver's calls for memory, and in waits.", COUNTER, NANOSECONDS,
     FIGURE(driver_time_ns), false},
};
static const struct group process_group = {"process_", of_sources,
                                           sizeof of_sources / sizeof *of_sources};
static const struct group pinned_group = {"pinned_", of_sources, PINNED_FAMILIES};

/* Write the families of sources, for devices or for the host separately: a sum over a
   family then covers one kind of memory. */
static void
write_sources(const struct page *page, const struct group *g,
              const struct exporter_table *sources, bool is_of_host)
{
    for (size_t i = 0; i < g->count; i++) {
        const struct family *f = &g->families[i];
        write_head(page, g->name, f);
        for (size_t n = 0; n < sources->count; n++) {
            const struct exporter_row *row = &sources->rows[n];
            if (row->is_of_host == is_of_host &&
                (!f->is_of_detail || row->source->page.detail.at_ns))
                write_sample(page, g->name, f, row->labels, row->source);
        }
    }
}

/* --- lanes and devices -------------------------------------------------------------------- */

#define LANE(field) offsetof(struct dry_live_lane, field)

static const struct family of_lanes[] = {
    {"reserved_bytes", "bytes", "Reserved memory of a pool and stream.", GAUGE, WHOLE,
     LANE(reserved), false},
    {"allocated_bytes", "bytes", "Allocated memory of a pool and stream.", GAUGE, WHOLE,
     LANE(allocated), false},
    {"pending_bytes", "bytes",
     "Freed blocks of a pool and stream that wait for a stream.", GAUGE, WHOLE,
     LANE(pending), false},
    {"releasable_bytes", "bytes",
     "Free memory of a pool and stream that the driver could have back.", GAUGE, WHOLE,
     LANE(releasable), false},
    {"stranded_bytes", "bytes", "Free memory of a pool and stream that cannot go back.",
     GAUGE, WHOLE, LANE(stranded), false},
    {"largest_hole_bytes", "bytes", "The largest free block of a pool and stream.", GAUGE,
     WHOLE, LANE(largest_hole), false},
};

static void
write_lanes(const struct page *page, const struct exporter_table *lanes)
{
    for (size_t i = 0; i < sizeof of_lanes / sizeof *of_lanes; i++) {
        write_head(page, "lane_", &of_lanes[i]);
        for (size_t n = 0; n < lanes->count; n++)
            write_sample(page, "lane_", &of_lanes[i], lanes->rows[n].labels,
                         &lanes->rows[n].lane);
    }
}

static const struct family of_devices[] = {
    {"memory_size_bytes", "bytes", "The device's memory, by the driver.", GAUGE, WHOLE,
     offsetof(struct watch_device, total), false},
    {"memory_used_bytes", "bytes", "The memory in use on the device, by the driver.",
     GAUGE, WHOLE, offsetof(struct watch_device, used), false},
};

static void
write_devices(const struct page *page, const struct watch *watch,
              const struct exporter_rows *rows)
{
    static const struct family of_uses = {
        "driver_used_bytes",
        "bytes",
        "The device memory of a process, by the driver.",
        GAUGE,
        WHOLE,
        offsetof(struct exporter_row, bytes),
        false};
    for (size_t i = 0; i < sizeof of_devices / sizeof *of_devices; i++) {
        write_head(page, "device_", &of_devices[i]);
        for (size_t n = 0; n < rows->devices.count; n++)
            write_sample(page, "device_", &of_devices[i], rows->devices.rows[n].labels,
                         &watch->devices[n]);
    }
    write_head(page, "process_", &of_uses);
    for (size_t n = 0; n < rows->uses.count; n++)
        write_sample(page, "process_", &of_uses, rows->uses.rows[n].labels,
                     &rows->uses.rows[n]);
}

/* --- the exporter itself ------------------------------------------------------------------ */

struct self {
    uint64_t one, driver_up, pages, refused, processes_left_out, sources_left_out;
    struct exporter_counts counts;
};

#define SELF(field) offsetof(struct self, field)

static const struct family of_self[] = {
    {"driver_up", "", "1 if the driver tells of devices.", GAUGE, WHOLE, SELF(driver_up),
     false},
    {"pages", "", "Pages of running programs that are read.", GAUGE, WHOLE, SELF(pages),
     false},
    {"pages_refused", "", "Pages that cannot be used; drystone live says why.", GAUGE,
     WHOLE, SELF(refused), false},
    {"processes_left_out", "", "Processes beyond --processes-max, the smallest.", GAUGE,
     WHOLE, SELF(processes_left_out), false},
    {"sources_left_out", "", "Allocators that have the labels of another one.", GAUGE,
     WHOLE, SELF(sources_left_out), false},
    {"look_duration_seconds", "seconds", "What the last look at all pages took.", GAUGE,
     SECONDS, SELF(counts.look_seconds), false},
    {"looks", "", "Looks at all pages.", COUNTER, WHOLE, SELF(counts.looks), false},
    {"ended_programs", "", "Programs with a page that have ended.", COUNTER, WHOLE,
     SELF(counts.ended_programs), false},
    {"ended_retries", "",
     "Retries of programs that have ended, as their pages said last.", COUNTER, WHOLE,
     SELF(counts.ended_retries), false},
    {"ended_ooms", "", "Refused requests of programs that have ended.", COUNTER, WHOLE,
     SELF(counts.ended_ooms), false},
};

static void
write_self(const struct page *page, const struct watch *watch,
           const struct exporter_rows *rows, const struct exporter_counts *counts)
{
    static const struct family build = {
        "build_info", "", "The exporter's version.", GAUGE, WHOLE, SELF(one), false};
    struct self self = {
        .one = 1,
        .driver_up = !watch->no_driver,
        .pages = rows->pages,
        .refused = rows->refused,
        .processes_left_out = rows->processes_left_out,
        .sources_left_out = rows->sources_left_out,
        .counts = *counts,
    };
    write_head(page, "exporter_", &build);
    write_sample(page, "exporter_", &build, "version=\"" DRY_VERSION "\"", &self);
    for (size_t i = 0; i < sizeof of_self / sizeof *of_self; i++) {
        write_head(page, "exporter_", &of_self[i]);
        write_sample(page, "exporter_", &of_self[i], "", &self);
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
    struct page page = {.out = is_whole ? open_memstream(&text, length) : NULL,
                        .format = format};
    if (page.out) {
        write_sources(&page, &process_group, &rows.sources, false);
        write_sources(&page, &pinned_group, &rows.sources, true);
        if (bounds->lanes > 0)
            write_lanes(&page, &rows.lanes);
        write_devices(&page, watch, &rows);
        write_self(&page, watch, &rows, counts);
        if (format == EXPORTER_OPENMETRICS)
            fputs("# EOF\n", page.out);
        is_whole = !ferror(page.out);
        is_whole = fclose(page.out) == 0 && is_whole;
    }
    exporter_rows_finish(&rows);
    if (is_whole && page.out)
        return text;
    free(text);
    return NULL;
}
