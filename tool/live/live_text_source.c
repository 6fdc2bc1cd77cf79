/* SPDX-License-Identifier: Apache-2.0 */

/* A source in detail. Figures are from the last update; sums per lane are from the last
   detail, which may be older, so its age is printed. */
#include "live/live_text_source.h"

#include <stdio.h>
#include <string.h>

#include "base/table.h"
#include "live/live_summary.h"

/* --- figures ------------------------------------------------------------------------------ */

static void
print_row(const struct term *term, const char *what, uint64_t bytes, const char *note)
{
    char text[TERM_NUMBER_BYTES];
    const char *value = bytes == WATCH_UNKNOWN ? "-" : term_format_bytes(bytes, text);
    fprintf(term->out, "    %-14s %11s%s%s\n", what, value, *note ? "  " : "", note);
}

static const char *
name_device(const struct watch *watch, const struct watch_source *s,
            char text[LIVE_TEXT_BYTES + 32])
{
    char name[LIVE_TEXT_BYTES];
    if (s->device != WATCH_NO_DEVICE) {
        live_cut(name, watch->devices[s->device].name, 32);
        (void)snprintf(text, LIVE_TEXT_BYTES + 32, "device %zu (%s)", s->device, name);
    } else if (s->published.device >= 0) {
        (void)snprintf(text, LIVE_TEXT_BYTES, "its device %d", (int)s->published.device);
    } else {
        (void)snprintf(text, LIVE_TEXT_BYTES, "the host");
    }
    return text;
}

static void
print_head(const struct watch *watch, const struct watch_source *s,
           const struct term *term)
{
    char name[LIVE_TEXT_BYTES], device[LIVE_TEXT_BYTES + 32], age[TERM_NUMBER_BYTES];
    live_cut(name, s->published.name, sizeof s->published.name);
    fprintf(term->out, "  %s%s%s on %s", term_style(term, TERM_BOLD), name,
            term_style(term, TERM_PLAIN), name_device(watch, s, device));
    if (s->published.updates == 0)
        fprintf(term->out, ", not updated yet");
    else if (s->age_s >= 2)
        fprintf(term->out, ", of %s ago", live_format_seconds(s->age_s, age));
    fputc('\n', term->out);
}

static void
print_reserved(const struct watch_source *s, const struct term *term)
{
    const struct dry_live_figures *f = &s->published.figures;
    char note[LIVE_TEXT_BYTES], limit[TERM_NUMBER_BYTES], peak[TERM_NUMBER_BYTES];
    if (s->limit == WATCH_UNKNOWN)
        (void)snprintf(note, sizeof note, "%s at the peak",
                       term_format_bytes(f->reserved_peak, peak));
    else
        (void)snprintf(note, sizeof note, "of %s; %s at the peak",
                       term_format_bytes(s->limit, limit),
                       term_format_bytes(f->reserved_peak, peak));
    print_row(term, "reserved", f->reserved, note);
    (void)snprintf(note, sizeof note, "%s at the peak",
                   term_format_bytes(f->allocated_peak, peak));
    print_row(term, "  allocated", f->allocated, note);
}

/* Print a sum with its key, as "  largest hole", and its meaning. */
static void
print_sum(const struct dry_live_detail *d, const struct dry_field *f,
          const struct term *term)
{
    char what[LIVE_TEXT_BYTES];
    struct dry_field_value value;
    bool is_known = dry_field_get(f, d, &value);
    (void)snprintf(what, sizeof what, "  %.*s", (int)(strlen(f->key) - strlen("_bytes")),
                   f->key);
    for (char *c = what; (c = strchr(c, '_'));)
        *c = ' ';
    print_row(term, what, is_known ? value.number : WATCH_UNKNOWN, f->meaning);
}

static void
print_sums(const struct watch_source *s, uint64_t now_ns, const struct term *term)
{
    const struct dry_live_detail *d = &s->published.detail;
    const struct dry_fields sums = dry_live_get_fields(DRY_LIVE_DETAIL);
    char text[TERM_NUMBER_BYTES];
    if (!d->at_ns) {
        fprintf(term->out, "      its blocks were not walked yet\n");
        return;
    }
    for (size_t i = 1; i < sums.count; i++) /* the first is reserved_bytes */
        print_sum(d, &sums.list[i], term);
    double age = live_detail_age(d, now_ns);
    if (age >= s->age_s + 2)
        fprintf(term->out, "      as its blocks were %s ago\n",
                live_format_seconds(age, text));
}

static void
print_driver(const struct dry_live_figures *f, const struct term *term)
{
    char calls[TERM_NUMBER_BYTES], moved[TERM_NUMBER_BYTES], time[TERM_NUMBER_BYTES];
    fprintf(term->out, "    driver         %s calls, %s pages moved, %s\n",
            term_format_count(f->driver_calls, calls),
            term_format_count(f->pages_moved, moved),
            term_format_time(f->driver_time_ns / 1000, time));
}

static void
print_course(const struct watch_source *s, const struct term *term)
{
    const struct dry_live_figures *f = &s->published.figures;
    char trend[LIVE_TEXT_BYTES], retries[TERM_NUMBER_BYTES], ooms[TERM_NUMBER_BYTES];
    char more[LIVE_TEXT_BYTES] = "";
    live_format_trend(s, trend);
    if (s->rates.is_known)
        (void)snprintf(more, sizeof more, "; a minute: %.1f and %.1f",
                       s->rates.retries_per_min, s->rates.ooms_per_min);
    print_row(term, "left", s->left_bytes, "");
    fprintf(term->out, "    trend          %s\n", trend);
    fprintf(term->out, "    retries        %s, out of memory %s%s\n",
            term_format_count(f->retries, retries), term_format_count(f->ooms, ooms),
            more);
    if (f->driver_calls != DRY_LIVE_UNKNOWN)
        print_driver(f, term);
}

/* --- lanes and lines ---------------------------------------------------------------------- */

static void
name_stream(const struct dry_live_lane *lane, char text[TERM_NUMBER_BYTES])
{
    bool is_address = lane->stream > 99999;
    (void)snprintf(text, TERM_NUMBER_BYTES, is_address ? "0x%llx" : "%llu",
                   (unsigned long long)lane->stream);
}

#define POOL_COLUMNS 9u

static void
name_pool(const struct dry_live_lane *lane, char text[LIVE_TEXT_BYTES])
{
    char all[2 * TERM_NUMBER_BYTES] = "-";
    if (lane->pool.a || lane->pool.b)
        (void)snprintf(all, sizeof all, "%llu,%llu", (unsigned long long)lane->pool.a,
                       (unsigned long long)lane->pool.b);
    live_cut(text, all, POOL_COLUMNS);
}

#define LANE_COLUMNS 65u /* width of all columns except stream and pool, with gaps */

/* Add a lane. The stream, often an address, is cut first, like a process's name. */
static void
add_lane(struct table *table, const struct dry_live_lane *lane, size_t width)
{
    char text[TERM_NUMBER_BYTES], pool[LIVE_TEXT_BYTES], cut[LIVE_TEXT_BYTES];
    name_pool(lane, pool);
    name_stream(lane, text);
    size_t others = LANE_COLUMNS + (term_columns(pool) > 4 ? term_columns(pool) : 4);
    live_cut(cut, text, width > others + 6 ? width - others : 6);
    table_add(table, cut);
    table_add(table, pool);
    table_add(table, live_format_bytes(lane->reserved, text));
    table_add(table, live_format_bytes(lane->allocated, text));
    table_add(table, live_format_bytes(lane->pending, text));
    table_add(table, live_format_bytes(lane->releasable, text));
    table_add(table, live_format_bytes(lane->stranded, text));
    table_add(table, live_format_bytes(lane->largest_hole, text));
}

static bool
print_lanes(const struct dry_live_detail *d, const struct term *term)
{
    struct table table;
    if (d->lane_count == 0)
        return true;
    table_init(&table,
               "<stream <pool >reserved >allocated >pending >can_give >stranded >hole");
    for (uint32_t i = 0; i < d->lane_count; i++)
        add_lane(&table, &d->lanes[i], (size_t)term->width);
    bool is_fine = table_print(&table, term);
    if (d->more_lanes)
        fprintf(term->out, "  and more streams, for which the page has no room\n");
    return is_fine;
}

static bool
print_lines(const struct dry_live_detail *d, const struct term *term)
{
    struct table table;
    char text[TERM_NUMBER_BYTES];
    if (d->line_count == 0)
        return true;
    table_init(&table, ">bytes >count <line");
    for (uint32_t i = 0; i < d->line_count; i++) {
        table_add(&table, term_format_bytes(d->lines[i].bytes, text));
        table_add(&table, term_format_count(d->lines[i].count, text));
        table_add(&table, d->lines[i].text);
    }
    return table_print(&table, term);
}

bool
live_text_source(const struct watch *watch, const struct watch_source *source,
                 const struct term *term)
{
    print_head(watch, source, term);
    print_reserved(source, term);
    print_sums(source, watch->now_ns, term);
    print_course(source, term);
    return print_lanes(&source->published.detail, term) &&
           print_lines(&source->published.detail, term);
}
