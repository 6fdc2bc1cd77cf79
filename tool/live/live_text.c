/* SPDX-License-Identifier: Apache-2.0 */

/* Devices and processes as tables, one line each. live_text_source.c prints a process's
   sources in detail. */
#include "live/live_text.h"

#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "live/live_summary.h"
#include "live/live_text_source.h"

/* --- devices ------------------------------------------------------------------------------ */

#define BAR_COLUMNS 10

static void
add_share(struct table *table, const struct watch_device *device)
{
    char text[TERM_NUMBER_BYTES] = "-", bar[BAR_COLUMNS + 3] = "";
    if (device->total != WATCH_UNKNOWN && device->total &&
        device->used <= device->total) {
        double share = (double)device->used / (double)device->total;
        int filled = (int)(share * BAR_COLUMNS + 0.5);
        (void)snprintf(text, sizeof text, "%.0f %%", 100 * share);
        (void)snprintf(bar, sizeof bar, "[----------]");
        memset(bar + 1, '#', (size_t)filled);
    }
    table_add(table, text);
    table_add(table, bar);
}

bool
live_text_devices(const struct watch *watch, const struct term *term)
{
    struct table table;
    char text[TERM_NUMBER_BYTES];
    if (watch->device_count == 0) {
        fprintf(term->out, "  no devices: %s\n",
                watch->no_driver ? watch->no_driver : "the driver has none");
        return true;
    }
    table_init(&table, ">device <name >used >total >share <");
    for (size_t i = 0; i < watch->device_count; i++) {
        const struct watch_device *d = &watch->devices[i];
        (void)snprintf(text, sizeof text, "%zu", i);
        table_add(&table, text);
        table_add(&table, d->name);
        table_add(&table, live_format_bytes(d->used, text));
        table_add(&table, live_format_bytes(d->total, text));
        add_share(&table, d);
    }
    return table_print(&table, term);
}

/* --- processes ---------------------------------------------------------------------------- */

/* The cells of a process that must not be cut; their widths limit the name. */
struct row {
    char number[TERM_NUMBER_BYTES], rank[TERM_NUMBER_BYTES], devices[LIVE_TEXT_BYTES];
};

static void
make_row(const struct watch_process *p, struct row *row)
{
    bool has_rank = p->program.rank >= 0 && p->file_name[0] && p->state != WATCH_WRONG;
    uint64_t number = live_process_number(p);
    (void)snprintf(row->number, sizeof row->number, "%llu", (unsigned long long)number);
    if (number == 0)
        (void)snprintf(row->number, sizeof row->number, "-");
    (void)snprintf(row->rank, sizeof row->rank, "%d", (int)p->program.rank);
    if (!has_rank)
        (void)snprintf(row->rank, sizeof row->rank, "-");
    live_name_devices(p, row->devices);
}

static size_t
most(size_t a, size_t b)
{
    return a > b ? a : b;
}

#define OTHER_COLUMNS 56u /* columns of all cells except these and the name, with gaps */
#define NAME_COLUMNS_MIN 8u

/* Return the columns left for the name, so that the table fits the width. The table code
   alone would not shrink a column below 12. */
static size_t
name_columns(const struct watch *watch, const char *wanted, const struct term *term)
{
    size_t number = 3, rank = 4, devices = 3;
    for (size_t i = 0; i < watch->process_count; i++) {
        struct row row;
        if (!live_is_wanted(watch->processes[i], wanted))
            continue;
        make_row(watch->processes[i], &row);
        number = most(number, strlen(row.number));
        rank = most(rank, strlen(row.rank));
        devices = most(devices, strlen(row.devices));
    }
    size_t others = OTHER_COLUMNS + number + rank + devices;
    size_t width = (size_t)term->width;
    return width > others + NAME_COLUMNS_MIN ? width - others : NAME_COLUMNS_MIN;
}

static void
add_process(struct table *table, const struct watch_process *p, size_t columns)
{
    struct row row;
    char text[TERM_NUMBER_BYTES], name[LIVE_TEXT_BYTES];
    make_row(p, &row);
    live_cut(name, p->name[0] ? p->name : "-", columns);
    table_add(table, row.number);
    table_add(table, row.rank);
    table_add(table, name);
    table_add(table, row.devices[0] ? row.devices : "-");
    table_add(table, live_format_bytes(watch_reserved(p), text));
    table_add(table, live_format_bytes(live_allocated(p), text));
    table_add(table, live_format_bytes(live_stranded(p), text));
    table_add(table, live_format_bytes(live_headroom(p), text));
    table_add(table, live_state_name(p->state));
}

bool
live_text_processes(const struct watch *watch, const char *wanted,
                    const struct term *term)
{
    struct table table;
    size_t columns = name_columns(watch, wanted, term);
    table_init(&table,
               ">PID >rank <name <dev >reserved >allocated >stranded >left <state");
    for (size_t i = 0; i < watch->process_count; i++)
        if (live_is_wanted(watch->processes[i], wanted))
            add_process(&table, watch->processes[i], columns);
    return table_print(&table, term);
}

/* --- one process -------------------------------------------------------------------------- */

static void
print_head(const struct watch_process *p, const struct term *term)
{
    char name[LIVE_TEXT_BYTES];
    uint64_t number = live_process_number(p);
    live_cut(name, p->name, (size_t)term->width / 2);
    fprintf(term->out, "%s", term_style(term, TERM_BOLD));
    if (number)
        fprintf(term->out, "%llu ", (unsigned long long)number);
    fprintf(term->out, "%s%s", name, term_style(term, TERM_PLAIN));
    if (p->program.rank >= 0 && p->source_count)
        fprintf(term->out, ", rank %d", (int)p->program.rank);
    if (p->program.rank >= 0 && p->program.world > 0 && p->source_count)
        fprintf(term->out, " of %d", (int)p->program.world);
    fprintf(term->out, "%s\n",
            p->state == WATCH_ENDED ? ", has ended"
            : p->file_name[0] && !p->process && p->program.process
                ? ", of another PID namespace"
                : "");
}

/* Print labels such as "pod=train-0,namespace=ml", wrapped at commas. */
static void
print_labels(const char *labels, const struct term *term)
{
    char text[2 * sizeof((struct dry_live_program *)0)->labels], printable[sizeof text];
    size_t used = 0;
    for (; *labels && used + 3 < sizeof text; labels++) {
        text[used++] = *labels;
        if (*labels == ',')
            text[used++] = ' ';
    }
    (void)term_make_printable(printable, sizeof printable, text, used);
    fputs("  ", term->out);
    term_print_name(term->out, printable, 2, term->width);
}

static void
print_why(const char *why, const struct term *term)
{
    char text[sizeof((struct watch_process *)0)->why];
    (void)term_make_printable(text, sizeof text, why, strlen(why));
    fputs("  its page cannot be used:\n    ", term->out);
    term_print_name(term->out, text, 4, term->width);
}

/* Print the driver's figures for a process, one line per device. */
static void
print_uses(const struct watch_process *p, const struct term *term)
{
    char text[TERM_NUMBER_BYTES];
    for (size_t i = 0; i < p->use_count; i++)
        fprintf(term->out, "  by the driver %s on device %zu\n",
                live_format_bytes(p->uses[i].bytes, text), p->uses[i].device);
    if (p->state == WATCH_SEEN)
        fprintf(term->out,
                "  It shows no page, so nobody knows how much of that is in use.\n");
}

bool
live_text_process(const struct watch *watch, const struct watch_process *process,
                  const struct term *term)
{
    print_head(process, term);
    if (process->program.labels[0])
        print_labels(process->program.labels, term);
    if (process->state == WATCH_WRONG)
        print_why(process->why, term);
    print_uses(process, term);
    bool is_fine = true;
    for (size_t i = 0; i < process->source_count; i++)
        is_fine = live_text_source(watch, &process->sources[i], term) && is_fine;
    return is_fine;
}

/* --- everything --------------------------------------------------------------------------- */

static bool
print_list(const struct watch *watch, const char *wanted, const struct term *term)
{
    fprintf(term->out, "%sprocesses%s\n", term_style(term, TERM_BOLD),
            term_style(term, TERM_PLAIN));
    if (watch->process_count == 0) {
        fprintf(term->out, "  none%s\n",
                watch->device_count ? "" : " that shows a page of its memory");
        fprintf(term->out, "  a program has one under: "
                           "drystone run --watch -- python train.py\n");
        return true;
    }
    bool is_fine = live_text_processes(watch, wanted, term);
    if (watch->left_out)
        fprintf(term->out, "  and %zu more\n", watch->left_out);
    return is_fine;
}

bool
live_text_print(const struct watch *watch, const char *wanted, const struct term *term)
{
    struct term wide = *term;
    const struct watch_process *only = live_find_only(watch, wanted);
    wide.has_width = true; /* keep to the width in a pipe too */
    fprintf(term->out, "%sdevices%s\n", term_style(term, TERM_BOLD),
            term_style(term, TERM_PLAIN));
    bool is_fine = live_text_devices(watch, &wide);
    fputc('\n', term->out);
    is_fine = print_list(watch, wanted, &wide) && is_fine;
    for (size_t i = 0; i < watch->process_count; i++) {
        const struct watch_process *p = watch->processes[i];
        if (p != only && !(wanted && live_is_wanted(p, wanted)))
            continue;
        fputc('\n', term->out);
        is_fine = live_text_process(watch, p, &wide) && is_fine;
    }
    return is_fine;
}
