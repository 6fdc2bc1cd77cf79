/* SPDX-License-Identifier: Apache-2.0 */
/* See sweep_report.h. This file prints the text. */
#include "sweep/sweep_report.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"
#include "base/table.h"
#include "base/term.h"
#include "sweep/sweep_run.h"

#define COLUMN 12
#define REFUSED_SHOWN 3
#define SETTINGS_BYTES (SWEEP_GRID_BYTES_MAX + 32)
#define DIFFERENCE_BYTES (TERM_NUMBER_BYTES + 1)

const struct sweep_row *
sweep_find_recorded(const struct sweep *s)
{
    const struct sweep_row *row = s->rows;
    while (!sweep_row_is_recorded(row))
        row++;
    return row;
}

/* Print a word in the margin and a wrapped text. */
__attribute__((format(printf, 3, 4))) static void
print_item(const struct term *term, const char *word, const char *format, ...)
{
    char text[SETTINGS_BYTES + 512], printable[sizeof text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    term_make_printable(printable, sizeof printable, text, strlen(text));
    printf("%-*s", COLUMN, word);
    term_print_wrapped(stdout, printable, COLUMN, term->width);
}

/* Write a row's values without keys, in the keys' order. */
static void
write_values(const struct sweep *s, const struct sweep_row *row,
             char text[SETTINGS_BYTES])
{
    size_t used = 0;
    if (sweep_row_is_recorded(row))
        snprintf(text, SETTINGS_BYTES, "recorded");
    for (size_t k = 0; k < s->grid.key_count && !sweep_row_is_recorded(row); k++) {
        const struct sweep_value *v = sweep_grid_value(&s->grid, row->combination, k);
        used += (size_t)snprintf(text + used, SETTINGS_BYTES - used, "%s%s", k ? "," : "",
                                 v->text ? v->text : "default");
    }
}

/* --- head --------------------------------------------------------------------------------- */

static void
print_file(const struct sweep *s, size_t i, const struct term *term)
{
    const struct sweep_file *file = &s->files[i];
    const struct dry_replay_check *check = dry_replay_get_check(file->replay);
    const char *verdict =
        check->possible ? check->exact ? "exact" : "not exact" : "not possible";
    char number[24] = "", count[TERM_NUMBER_BYTES];
    if (s->file_count > 1)
        snprintf(number, sizeof number, "%zu ", i + 1);
    print_item(term, i ? "" : "file",
               "%s%s: device %" PRId32 ", %s event%s, self-check %s", number, file->path,
               dry_replay_get_recorded(file->replay)->device,
               term_format_count(file->event_count, count),
               file->event_count == 1 ? "" : "s", verdict);
}

/* Print the memory limit of the runs: the given one, or each file's own. */
static void
print_capacity(const struct sweep *s, const struct term *term)
{
    char text[TERM_NUMBER_BYTES];
    const char *word = "capacity";
    if (s->capacity_bytes > 0)
        print_item(term, word, "%s", term_format_bytes(s->capacity_bytes, text));
    for (size_t i = 0; i < s->file_count && s->capacity_bytes == 0; i++) {
        uint64_t bytes = dry_replay_get_recorded(s->files[i].replay)->capacity_bytes;
        if (bytes == 0)
            continue;
        print_item(term, word, "%s, as %s shows", term_format_bytes(bytes, text),
                   s->files[i].path);
        word = "";
    }
}

static bool
is_paged(const struct sweep *s)
{
    return s->place && strcmp(s->place, "paged") == 0;
}

static void
print_keys(const struct sweep *s, const struct term *term)
{
    char keys[SETTINGS_BYTES] = "";
    size_t used = 0;
    for (size_t i = 0; i < s->grid.key_count && used < sizeof keys; i++)
        used += (size_t)snprintf(keys + used, sizeof keys - used, "%s%s", i ? ", " : "",
                                 s->grid.keys[i].name);
    print_item(term, "settings", "%s%s", keys, is_paged(s) ? "; placed by paged" : "");
}

static void
print_rounds(const struct sweep *s, const struct term *term)
{
    for (size_t i = 0; i < s->round_count; i++) {
        const struct sweep_round *r = &s->rounds[i];
        print_item(term, i ? "" : "budget",
                   "%zu combinations on 1/%u of the events: %zu pruned, %zu kept",
                   r->tried, 1u << r->halvings, r->tried - r->kept, r->kept);
    }
}

static void
print_refused(const struct sweep *s, const struct term *term)
{
    size_t count = sweep_count_refused(s), shown = 0;
    char values[SETTINGS_BYTES];
    for (size_t i = 0; i < s->row_count && shown < REFUSED_SHOWN; i++) {
        if (!s->rows[i].refused)
            continue;
        write_values(s, &s->rows[i], values);
        print_item(term, shown++ ? "" : "refused", "%s: %s", values, s->rows[i].refused);
    }
    if (count > shown)
        print_item(term, "", "and %zu more", count - shown);
}

static void
print_head(const struct sweep *s, const struct term *term)
{
    char count[TERM_NUMBER_BYTES];
    print_item(term, "sweep", "%s combination%s, and the recorded settings",
               term_format_count(s->grid.combination_count, count),
               s->grid.combination_count == 1 ? "" : "s");
    for (size_t i = 0; i < s->file_count; i++)
        print_file(s, i, term);
    print_keys(s, term);
    print_capacity(s, term);
    print_rounds(s, term);
    print_refused(s, term);
    printf("\n");
}

/* --- table -------------------------------------------------------------------------------- */

/* Format the difference from the recorded settings: "-1.25 GiB" means less memory. */
static const char *
format_difference(uint64_t bytes, uint64_t recorded, char text[DIFFERENCE_BYTES])
{
    if (bytes == SWEEP_NO_DEVICE || recorded == SWEEP_NO_DEVICE)
        return "-";
    if (bytes == recorded)
        return "0 B";
    text[0] = bytes < recorded ? '-' : '+';
    term_format_bytes(bytes < recorded ? recorded - bytes : bytes - recorded, text + 1);
    return text;
}

static const char *
format_device(uint64_t bytes, char text[TERM_NUMBER_BYTES])
{
    return bytes == SWEEP_NO_DEVICE ? "none" : term_format_bytes(bytes, text);
}

/* Count the rows that ran in full; they are sorted first. */
static size_t
count_whole(const struct sweep *s)
{
    size_t count = 0;
    while (count < s->row_count && !s->rows[count].refused && !s->rows[count].pruned)
        count++;
    return count;
}

static bool
has_retries(const struct sweep *s)
{
    bool has_any = false;
    for (size_t i = 0; i < count_whole(s); i++)
        has_any = has_any || s->rows[i].all.retries > 0;
    return has_any;
}

static void
add_row(struct table *t, const struct sweep *s, const struct sweep_row *row)
{
    char values[SETTINGS_BYTES], settings[SETTINGS_BYTES + 1], text[DIFFERENCE_BYTES];
    const struct sweep_row *recorded = sweep_find_recorded(s);
    write_values(s, row, values);
    snprintf(settings, sizeof settings, "%s%s",
             row->is_front   ? "*"
             : row->all.fits ? ""
                             : "!",
             values);
    table_add(t, settings);
    table_add(t, format_device(row->all.device_bytes, text));
    table_add(t, row == recorded ? "-"
                                 : format_difference(row->all.device_bytes,
                                                     recorded->all.device_bytes, text));
    table_add(t, term_format_bytes(row->all.reserved_bytes, text));
    table_add(t, term_format_count(row->all.driver_calls, text));
    table_add(t, term_format_time(row->all.driver_time_ns / 1000, text));
    if (has_retries(s))
        table_add(t, term_format_count(row->all.retries, text));
    if (s->file_count > 1) {
        snprintf(text, sizeof text, "%zu", row->worst_file + 1);
        table_add(t, text);
    }
}

/* Print `limit` rows. The recorded settings are appended if they rank lower. */
static bool
print_table(const struct sweep *s, const struct term *term, size_t limit)
{
    size_t count = count_whole(s), shown = limit < count ? limit : count;
    const struct sweep_row *recorded = sweep_find_recorded(s);
    bool is_behind = (size_t)(recorded - s->rows) >= shown;
    char columns[128];
    struct table t;
    snprintf(columns, sizeof columns,
             "=settings >device >difference >reserved >calls >driver%s%s",
             has_retries(s) ? " >retry" : "", s->file_count > 1 ? " >file" : "");
    table_init(&t, columns);
    t.is_bounded = true;
    for (size_t i = 0; i < shown; i++)
        add_row(&t, s, &s->rows[i]);
    if (is_behind)
        add_row(&t, s, recorded);
    bool is_good = table_print(&t, term);
    size_t left = count - shown - is_behind;
    if (is_good && left > 0)
        printf("  (%zu more: --rows 0 and --json have them all)\n", left);
    return is_good;
}

static void
print_legend(const struct sweep *s, const struct term *term)
{
    bool has_failed = false;
    for (size_t i = 0; i < count_whole(s); i++)
        has_failed = has_failed || !s->rows[i].all.fits;
    printf("\n");
    print_item(term, "*",
               "no other row has as little in all of device, reserved memory "
               "and driver time");
    if (has_failed)
        print_item(term, "!", "runs out of memory on the capacity");
    if (s->file_count > 1)
        print_item(term, "file",
                   "the worst: it needs the largest device. Each figure is "
                   "the largest of all files");
    print_item(term, "difference",
               "of the device, to the recorded settings: below 0 is "
               "better");
}

/* --- the best ----------------------------------------------------------------------------- */

/* Print settings as the user has to set them; shells need quotes around brackets. */
static void
print_conf(const struct sweep *s, const char *conf, const struct term *term)
{
    const char *quote = strchr(conf, '[') ? "'" : "";
    if (!conf[0])
        print_item(term, "best", "the default, nothing set");
    else if (is_paged(s))
        print_item(term, "best", "placement paged with %s", conf);
    else
        print_item(term, "best", "PYTORCH_CUDA_ALLOC_CONF=%s%s%s", quote, conf, quote);
}

/* Print the first row and what it saves. */
static void
print_best(const struct sweep *s, const struct term *term)
{
    const struct sweep_row *best = s->rows, *recorded = sweep_find_recorded(s);
    char device[TERM_NUMBER_BYTES], difference[DIFFERENCE_BYTES];
    printf("\n");
    if (!best->all.fits) {
        print_item(term, "best", "none: all run out of memory");
        return;
    }
    if (best == recorded) {
        print_item(term, "best", "the recorded settings");
        return;
    }
    print_conf(s, best->conf, term);
    uint64_t bytes = best->all.device_bytes, was = recorded->all.device_bytes;
    bool is_smaller = bytes < was && was != SWEEP_NO_DEVICE;
    print_item(term, "", "%s is the smallest device%s%s%s", format_device(bytes, device),
               is_smaller ? ", " : "",
               is_smaller ? format_difference(bytes, was, difference) + 1 : "",
               is_smaller     ? " less than the recorded settings need"
               : bytes == was ? ", as with the recorded settings"
                              : "");
}

int
sweep_report_print(const struct sweep *s, size_t limit)
{
    struct term term;
    term_init(&term, stdout);
    print_head(s, &term);
    if (!print_table(s, &term, limit))
        return report_failure("sweep", NULL, EXIT_MACHINE, "no memory for the table");
    print_legend(s, &term);
    print_best(s, &term);
    return EXIT_FINE;
}

int
sweep_report_exit_code(const struct sweep *s)
{
    return s->rows[0].all.fits || s->is_job ? EXIT_FINE : EXIT_FOUND;
}
