/* SPDX-License-Identifier: Apache-2.0 */

/* All labels go into one text, each with a leading comma and a terminating zero. Rows
   point into the text once it is complete, because it moves while it grows. */
#include "exporter/exporter_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "exporter/exporter_label.h"

#define PAGE_PREFIX "drystone-live-"

struct choice {
    struct exporter_rows *rows;
    const struct watch *watch;
    const struct exporter_bounds *bounds;
    FILE *text;
    bool is_short; /* memory ran out */
};

static struct exporter_row *
add(struct choice *c, struct exporter_table *table)
{
    struct exporter_row *more =
        grow(table->rows, table->count, &table->capacity, sizeof *more);
    if (!more) {
        c->is_short = true;
        return NULL;
    }
    table->rows = more;
    struct exporter_row *row = &table->rows[table->count];
    *row = (struct exporter_row){.labels_at = (size_t)ftello(c->text)};
    table->count++;
    return row;
}

static void
end_labels(const struct choice *c)
{
    fputc('\0', c->text);
}

/* --- labels ------------------------------------------------------------------------------- */

static void
label_process(const struct choice *c, const struct watch_process *p)
{
    if (p->process)
        fprintf(c->text, ",process=\"%llu\"", (unsigned long long)p->process);
    exporter_label(c->text, "name", p->name);
    if (p->state != WATCH_LIVE)
        return;
    if (p->program.rank >= 0)
        fprintf(c->text, ",rank=\"%d\"", p->program.rank);
    exporter_page_labels(c->text, p->program.labels);
}

static void
label_device(const struct choice *c, size_t device)
{
    fprintf(c->text, ",device=\"%zu\"", device);
    exporter_label(c->text, "uuid", c->watch->devices[device].uuid);
}

/* Write a source's labels. The driver's device number is preferred, because programs may
   renumber devices. */
static void
label_source(const struct choice *c, const struct watch_process *p, size_t number)
{
    const struct watch_source *s = &p->sources[number];
    const size_t prefix = sizeof PAGE_PREFIX - 1;
    const char *page = strncmp(p->file_name, PAGE_PREFIX, prefix) == 0
                           ? p->file_name + prefix
                           : p->file_name;
    label_process(c, p);
    if (s->device != WATCH_NO_DEVICE) {
        label_device(c, s->device);
    } else {
        if (s->published.device < 0)
            fprintf(c->text, ",device=\"host\"");
        else
            fprintf(c->text, ",device=\"%d\"", s->published.device);
        exporter_label(c->text, "uuid", s->published.uuid);
    }
    exporter_label(c->text, "allocator", s->published.name);
    fprintf(c->text, ",source=\"%s/%zu\"", page, number);
}

/* --- lanes -------------------------------------------------------------------------------- */

static uint64_t
subtract(uint64_t from, uint64_t what)
{
    return from > what ? from - what : 0;
}

static bool
is_same_lane(const struct dry_live_lane *a, const struct dry_live_lane *b)
{
    return a->stream == b->stream && a->pool.a == b->pool.a && a->pool.b == b->pool.b;
}

/* Tell whether a lane is the first of its kind: a hostile page may list a lane twice, and
   duplicates are ignored. */
static bool
is_first(const struct dry_live_detail *d, uint32_t i)
{
    for (uint32_t before = 0; before < i; before++)
        if (is_same_lane(&d->lanes[before], &d->lanes[i]))
            return false;
    return true;
}

static void
label_lane(const struct choice *c, const struct dry_live_lane *lane)
{
    if (lane->pool.a || lane->pool.b)
        fprintf(c->text, ",pool=\"%llu.%llu\"", (unsigned long long)lane->pool.a,
                (unsigned long long)lane->pool.b);
    else
        fprintf(c->text, ",pool=\"default\"");
    fprintf(c->text, ",lane=\"%#llx\"", (unsigned long long)lane->stream);
}

/* Add a row labelled as `lane`; NULL: as the sum of the other lanes. */
static struct exporter_row *
add_lane(struct choice *c, const struct watch_process *p, size_t number,
         const struct dry_live_lane *lane)
{
    struct exporter_row *row = add(c, &c->rows->lanes);
    if (!row)
        return NULL;
    label_source(c, p, number);
    if (lane) {
        row->lane = *lane;
        label_lane(c, lane);
    } else {
        fprintf(c->text, ",pool=\"other\",lane=\"other\"");
    }
    end_labels(c);
    return row;
}

/* Subtract a lane that has its own row. The result saturates at 0, because a hostile
   page's sums may be too small. */
static void
take_from_rest(struct dry_live_lane *rest, const struct dry_live_lane *shown)
{
    rest->reserved = subtract(rest->reserved, shown->reserved);
    rest->allocated = subtract(rest->allocated, shown->allocated);
    rest->pending = subtract(rest->pending, shown->pending);
    rest->releasable = subtract(rest->releasable, shown->releasable);
    rest->stranded = subtract(rest->stranded, shown->stranded);
}

/* Add rows for a source's lanes. The row for the remaining lanes makes the sum over all
   rows equal to the source's sum. */
static void
add_lanes(struct choice *c, const struct watch_process *p, size_t number)
{
    const struct dry_live_detail *d = &p->sources[number].published.detail;
    struct dry_live_lane rest = {
        .reserved = d->reserved,
        .pending = d->pending,
        .releasable = d->releasable,
        .stranded = d->stranded,
        .allocated = subtract(subtract(d->reserved, d->pending),
                              d->releasable < UINT64_MAX - d->stranded
                                  ? d->releasable + d->stranded
                                  : UINT64_MAX),
    };
    size_t shown = 0;
    for (uint32_t i = 0; i < d->lane_count; i++) {
        if (!is_first(d, i))
            continue;
        if (shown < c->bounds->lanes) {
            (void)add_lane(c, p, number, &d->lanes[i]);
            take_from_rest(&rest, &d->lanes[i]);
            shown++;
        } else if (d->lanes[i].largest_hole > rest.largest_hole) {
            rest.largest_hole = d->lanes[i].largest_hole;
        }
    }
    struct exporter_row *row = add_lane(c, p, number, NULL);
    if (row)
        row->lane = rest;
}

/* --- processes ---------------------------------------------------------------------------- */

static void
add_source(struct choice *c, const struct watch_process *p, size_t number)
{
    const struct watch_source *s = &p->sources[number];
    bool is_of_host = s->published.kind == DRY_LIVE_PINNED || s->published.device < 0;
    struct exporter_row *row = add(c, is_of_host ? &c->rows->pinned : &c->rows->sources);
    if (!row)
        return;
    row->source = s;
    label_source(c, p, number);
    end_labels(c);
    if (c->bounds->lanes > 0 && s->published.detail.at_ns && !is_of_host)
        add_lanes(c, p, number);
}

/* Tell whether an earlier entry has the same device: the driver lists a process once per
   partition of a device, and the partitions are summed. */
static bool
is_use_before(const struct watch_process *p, size_t i)
{
    for (size_t before = 0; before < i; before++)
        if (p->uses[before].device == p->uses[i].device)
            return true;
    return false;
}

static void
add_use(struct choice *c, const struct watch_process *p, size_t i)
{
    uint64_t bytes = WATCH_UNKNOWN;
    for (size_t n = i; n < p->use_count; n++)
        if (p->uses[n].device == p->uses[i].device && p->uses[n].bytes != WATCH_UNKNOWN)
            bytes = (bytes == WATCH_UNKNOWN ? 0 : bytes) + p->uses[n].bytes;
    struct exporter_row *row = add(c, &c->rows->uses);
    if (!row)
        return;
    row->bytes = bytes;
    label_process(c, p);
    label_device(c, p->uses[i].device);
    end_labels(c);
}

static void
add_process(struct choice *c, const struct watch_process *p)
{
    for (size_t i = 0; i < p->source_count; i++)
        add_source(c, p, i);
    for (size_t i = 0; i < p->use_count; i++)
        if (!is_use_before(p, i))
            add_use(c, p, i);
}

/* Add processes, up to the bound; the watch sorts the largest first. */
static void
add_processes(struct choice *c)
{
    struct exporter_rows *r = c->rows;
    size_t taken = 0;
    r->processes_left_out = c->watch->left_out;
    for (size_t i = 0; i < c->watch->process_count; i++) {
        const struct watch_process *p = c->watch->processes[i];
        r->pages += p->state == WATCH_LIVE;
        r->refused += p->state == WATCH_WRONG;
        if (p->state != WATCH_LIVE && p->state != WATCH_SEEN)
            continue;
        if (taken == c->bounds->processes) {
            r->processes_left_out++;
            continue;
        }
        add_process(c, p);
        taken++;
    }
}

static void
add_devices(struct choice *c)
{
    for (size_t i = 0; i < c->watch->device_count; i++) {
        struct exporter_row *row = add(c, &c->rows->devices);
        if (!row)
            return;
        row->device = &c->watch->devices[i];
        label_device(c, i);
        exporter_label(c->text, "model", c->watch->devices[i].name);
        end_labels(c);
    }
}

/* --- all ---------------------------------------------------------------------------------- */

static int
compare(const void *a, const void *b)
{
    return strcmp(((const struct exporter_row *)a)->labels,
                  ((const struct exporter_row *)b)->labels);
}

/* Set the rows' labels, sort rows and drop duplicates. Rows of devices keep their order,
   which matches the watch's. Returns the number dropped. */
static size_t
settle(struct exporter_table *table, const char *text, bool has_order)
{
    size_t kept = 0;
    for (size_t i = 0; i < table->count; i++)
        table->rows[i].labels = text + table->rows[i].labels_at + 1;
    if (has_order || table->count == 0)
        return 0;
    qsort(table->rows, table->count, sizeof *table->rows, compare);
    for (size_t i = 0; i < table->count; i++)
        if (kept == 0 || strcmp(table->rows[kept - 1].labels, table->rows[i].labels) != 0)
            table->rows[kept++] = table->rows[i];
    size_t dropped = table->count - kept;
    table->count = kept;
    return dropped;
}

bool
exporter_rows_choose(struct exporter_rows *rows, const struct watch *watch,
                     const struct exporter_bounds *bounds)
{
    size_t length = 0;
    struct choice c = {.rows = rows, .watch = watch, .bounds = bounds};
    *rows = (struct exporter_rows){0};
    c.text = open_memstream(&rows->text, &length);
    if (!c.text)
        return false;
    add_devices(&c);
    add_processes(&c);
    bool is_whole = !ferror(c.text);
    if (fclose(c.text) != 0 || !is_whole || c.is_short)
        return false;
    rows->sources_left_out = settle(&rows->sources, rows->text, false) +
                             settle(&rows->pinned, rows->text, false);
    (void)settle(&rows->lanes, rows->text, false);
    (void)settle(&rows->uses, rows->text, false);
    (void)settle(&rows->devices, rows->text, true);
    return true;
}

void
exporter_rows_finish(struct exporter_rows *rows)
{
    free(rows->sources.rows);
    free(rows->pinned.rows);
    free(rows->lanes.rows);
    free(rows->uses.rows);
    free(rows->devices.rows);
    free(rows->text);
    *rows = (struct exporter_rows){0};
}
