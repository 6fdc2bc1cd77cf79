/* SPDX-License-Identifier: Apache-2.0 */
/* See top_report.h. */
#include "explain/top_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json_out.h"
#include "base/table.h"
#include "base/term.h"

/* Sums over all rows, and over the rows that are not shown. */
struct totals {
    size_t row_count, shown;
    struct dry_owner all, rest;
};

static uint64_t
add_up(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static struct totals
sum_up(const struct top_report *r)
{
    struct totals t = {.all.bytes = dry_owners_total(r->owners)};
    const struct dry_owner *rows = dry_owners_get(r->owners, &t.row_count);
    t.shown = r->row_limit < t.row_count ? r->row_limit : t.row_count;
    if (t.row_count - t.shown == 1)
        t.shown++; /* a single hidden row would take a line anyway, so show its name */
    for (size_t i = 0; i < t.row_count; i++) {
        t.all.count += rows[i].count;
        t.all.requested = add_up(t.all.requested, rows[i].requested);
        if (i < t.shown)
            continue;
        t.rest.count += rows[i].count;
        t.rest.bytes = add_up(t.rest.bytes, rows[i].bytes);
        t.rest.requested = add_up(t.rest.requested, rows[i].requested);
        if (rows[i].largest > t.rest.largest)
            t.rest.largest = rows[i].largest;
    }
    return t;
}

static double
get_share(uint64_t bytes, uint64_t total)
{
    return total > 0 ? (double)bytes / (double)total : 0;
}

/* --- text --------------------------------------------------------------------------------- */

#define CELL_BYTES 1100u

static void
add_row(struct table *t, const struct dry_owner *row, uint64_t total)
{
    char text[CELL_BYTES], number[TERM_NUMBER_BYTES];
    table_add(t, term_format_bytes(row->bytes, number));
    snprintf(number, sizeof number, "%.1f %%", 100 * get_share(row->bytes, total));
    table_add(t, number);
    table_add(t, term_format_count(row->count, number));
    table_add(t, row->largest ? term_format_bytes(row->largest, number) : "");
    term_make_printable(text, sizeof text, row->name, row->name_length);
    table_add(t, text);
    table_add_operation(t, row->what, row->what_length);
}

static void
add_word(struct table *t, const char *word, const struct dry_owner *sums, uint64_t total)
{
    struct dry_owner row = *sums;
    row.name = word;
    row.name_length = strlen(word);
    row.what = "";
    add_row(t, &row, total);
}

static void
add_owner(struct table *t, const struct top_report *r, const struct dry_owner *o,
          uint64_t total)
{
    struct dry_owner row = *o;
    static const char suffix[] = " (freed there)";
    char number[TERM_NUMBER_BYTES];
    /* suffix has its own column */
    if (o->is_of_free && o->name_length > sizeof suffix - 1) {
        row.name_length -= sizeof suffix - 1;
        row.what = suffix + 1;
        row.what_length = sizeof suffix - 2;
    }
    if (r->key == DRY_OWNER_SIZE) { /* all blocks of this owner have one size */
        row.name = term_format_bytes(o->requested / o->count, number);
        row.name_length = strlen(number);
    }
    add_row(t, &row, total);
}

static bool
print_table(const struct top_report *r, const struct totals *totals,
            const struct term *term)
{
    size_t count;
    const struct dry_owner *rows = dry_owners_get(r->owners, &count);
    struct table t;
    char columns[80];
    snprintf(columns, sizeof columns, ">bytes >share >count >largest =%s%s <what",
             r->is_inverted ? "outermost_" : "", dry_owner_key_name(r->key));
    table_init(&t, columns);
    t.is_bounded = true;
    for (size_t i = 0; i < totals->shown; i++)
        add_owner(&t, r, &rows[i], totals->all.bytes);
    if (count > totals->shown) {
        char others[TERM_NUMBER_BYTES + 16], number[TERM_NUMBER_BYTES];
        snprintf(others, sizeof others, "(%s other%s)",
                 term_format_count(count - totals->shown, number),
                 count - totals->shown == 1 ? "" : "s");
        add_word(&t, others, &totals->rest, totals->all.bytes);
    }
    add_word(&t, "total", &totals->all, totals->all.bytes);
    return table_print(&t, term);
}

static void
print_other_devices(const struct top_report *r)
{
    size_t count = r->study->device_count - 1;
    if (count > 0)
        printf("  %zu other device%s: choose by --device N, compare by drystone diff\n",
               count, count == 1 ? "" : "s");
}

static void
print_head(const struct top_report *r, const struct totals *totals,
           const struct term *term)
{
    const struct dry_timeline *timeline = r->study->devices[r->device].timeline;
    const struct dry_timeline_view *view = dry_timeline_get_view(timeline);
    char a[TERM_NUMBER_BYTES], b[TERM_NUMBER_BYTES], when[MOMENT_BYTES];
    term_print_subject(term, r->file, TERM_BOLD, "device %" PRId32 ", %s", view->device,
                       moment_write(timeline, &r->moment, when));
    printf("  active %s in %s allocation%s", term_format_bytes(totals->all.bytes, a),
           term_format_count(totals->all.count, b), totals->all.count == 1 ? "" : "s");
    printf(", reserved %s",
           term_format_bytes(
               dry_timeline_height(timeline, DRY_CURVE_RESERVED, r->moment.moment), a));
    printf("\n");
    if (r->study->is_simulated)
        printf("  addresses are simulated: the file has none\n");
    print_other_devices(r);
    printf("\n");
}

/* --- stacks ------------------------------------------------------------------------------- */

#define FRAMES_SHOWN 24u

#define PATH_BYTES_SHOWN 40u
#define FRAME_NAME_BYTES 41u

/* Write a frame's path, shortened at its beginning: the end identifies the file. */
static size_t
write_path(const struct dry_trace *trace, uint32_t string, char *text, size_t capacity)
{
    size_t length;
    const char *bytes = dry_trace_string(trace, string, &length);
    text[0] = '\0';
    if (!bytes)
        return 0;
    bool is_cut = length > PATH_BYTES_SHOWN;
    size_t from = is_cut ? length - PATH_BYTES_SHOWN : 0;
    size_t used = (size_t)snprintf(text, capacity, "%s", is_cut ? "..." : "");
    return used +
           term_make_printable(text + used, capacity - used, bytes + from, length - from);
}

/* Print a frame: "...core/train.py:12 step". The function's name goes to the next line if
   both are too wide. */
static void
print_frame(const struct top_report *r, uint32_t frame, const struct term *term)
{
    const struct dry_trace *trace = r->study->subject;
    const struct dry_frame *f = &dry_trace_get_view(trace)->frames[frame];
    char text[CELL_BYTES], name_text[FRAME_NAME_BYTES] = "";
    size_t used = write_path(trace, f->file, text, CELL_BYTES / 2), length = 0;
    if (f->line > 0)
        used += (size_t)snprintf(text + used, sizeof text - used, ":%" PRIu32, f->line);
    const char *name = dry_trace_string(trace, f->name, &length);
    bool is_cut = name && length >= FRAME_NAME_BYTES;
    if (name)
        term_make_printable(name_text, is_cut ? FRAME_NAME_BYTES - 8 : FRAME_NAME_BYTES,
                            name, length);
    snprintf(text + used, sizeof text - used, " %s%s", name_text, is_cut ? "..." : "");
    printf("      ");
    term_print_name(stdout, text, 8, term->width);
}

static void
print_left_out(size_t count)
{
    if (count > 0)
        printf("      (%zu more frame%s)\n", count, count == 1 ? "" : "s");
}

/*
 * Print a stack in its order, FRAMES_SHOWN frames at most: the user's before all others, the
 * inner ones before the outer ones. Frames of C++ are shown only in a stack without Python.
 */
static void
print_stack(const struct top_report *r, const struct dry_owner *o,
            const struct term *term)
{
    size_t count, users = 0, natives = 0, skipped = 0;
    const uint32_t *frames = dry_trace_stack(r->study->subject, o->stack, &count);
    for (size_t i = 0; i < count; i++) {
        enum dry_frame_kind kind = dry_owners_frame_kind(r->owners, frames[i]);
        users += kind == DRY_FRAME_USER;
        natives += kind == DRY_FRAME_NATIVE;
    }
    bool has_python = natives < count;
    users = users < FRAMES_SHOWN ? users : FRAMES_SHOWN;
    size_t others = FRAMES_SHOWN - users;
    for (size_t i = 0; i < count; i++) {
        enum dry_frame_kind kind = dry_owners_frame_kind(r->owners, frames[i]);
        if (kind == DRY_FRAME_NATIVE && has_python)
            continue;
        size_t *left = kind == DRY_FRAME_USER ? &users : &others;
        if (*left == 0) {
            skipped++;
            continue;
        }
        --*left;
        print_left_out(skipped);
        skipped = 0;
        print_frame(r, frames[i], term);
    }
    print_left_out(skipped + (has_python ? natives : 0));
}

static void
print_stacks(const struct top_report *r, const struct totals *totals,
             const struct term *term)
{
    size_t count;
    const struct dry_owner *rows = dry_owners_get(r->owners, &count);
    for (size_t i = 0; i < totals->shown; i++) {
        size_t frame_count;
        dry_trace_stack(r->study->subject, rows[i].stack, &frame_count);
        if (frame_count == 0)
            continue;
        char number[TERM_NUMBER_BYTES], text[50];
        size_t used =
            term_make_printable(text, sizeof text, rows[i].name, rows[i].name_length);
        printf("\n  %s  %s%s%s\n", term_format_bytes(rows[i].bytes, number), text,
               used < rows[i].name_length ? "..." : "",
               rows[i].count > 1 ? ", its largest:" : "");
        print_stack(r, &rows[i], term);
    }
}

bool
top_report_print(const struct top_report *r)
{
    struct term term;
    term_init(&term, stdout);
    struct totals totals = sum_up(r);
    print_head(r, &totals, &term);
    if (!print_table(r, &totals, &term))
        return false;
    if (r->has_stacks)
        print_stacks(r, &totals, &term);
    return true;
}

/* --- JSON --------------------------------------------------------------------------------- */

/* Limit on texts from the file: a hostile file could repeat a long text in every row. */
#define TEXT_BYTES_MAX 4096u

static json_t *
make_string(const struct dry_trace *trace, uint32_t string)
{
    size_t length = 0;
    const char *bytes = dry_trace_string(trace, string, &length);
    return json_out_text(bytes, length < TEXT_BYTES_MAX ? length : TEXT_BYTES_MAX);
}

static json_t *
make_frame(const struct top_report *r, uint32_t frame)
{
    static const char *const kinds[] = {"native",    "library", "torch",
                                        "generated", "package", "user"};
    const struct dry_trace *trace = r->study->subject;
    const struct dry_frame *f = &dry_trace_get_view(trace)->frames[frame];
    return json_pack("{s:o, s:I, s:o, s:s}", "file", make_string(trace, f->file), "line",
                     (json_int_t)f->line, "function", make_string(trace, f->name), "kind",
                     kinds[dry_owners_frame_kind(r->owners, frame)]);
}

#define JSON_FRAMES_MAX 256u

static json_t *
make_stack(const struct top_report *r, uint32_t stack)
{
    size_t count;
    const uint32_t *frames = dry_trace_stack(r->study->subject, stack, &count);
    json_t *list = json_array();
    for (size_t i = 0; list && i < count && i < JSON_FRAMES_MAX; i++)
        list = json_out_append(list, make_frame(r, frames[i]));
    return list;
}

/* Return the event that allocated the owner's largest block; null if the block is older
   than the trace. */
static json_t *
make_event(const struct dry_timeline_view *view, const struct dry_owner *o)
{
    const struct dry_allocation *a = &view->allocations[o->largest_allocation];
    return a->begin == 0 ? json_null()
                         : json_out_number(view->first_event + a->begin - 1);
}

static json_t *
make_owner(const struct top_report *r, const struct dry_owner *o, uint64_t total)
{
    const struct dry_timeline_view *view =
        dry_timeline_get_view(r->study->devices[r->device].timeline);
    json_t *row = json_pack(
        "{s:o, s:o, s:o, s:o, s:f, s:o, s:o, s:o, s:b, s:o}", "name",
        json_out_text(o->name, o->name_length), "what",
        json_out_text(o->what, o->what_length), "bytes", json_out_number(o->bytes),
        "requested_bytes", json_out_number(o->requested), "share",
        get_share(o->bytes, total), "count", json_out_number(o->count), "largest_bytes",
        json_out_number(o->largest), "largest_event", make_event(view, o), "is_of_free",
        (int)o->is_of_free, "frame",
        o->frame == DRY_NONE ? json_null() : make_frame(r, o->frame));
    if (row && r->has_stacks &&
        json_object_set_new(row, "stack",
                            o->stack == DRY_NONE ? json_null()
                                                 : make_stack(r, o->stack)) != 0) {
        json_decref(row);
        return NULL;
    }
    return row;
}

static json_t *
make_owners(const struct top_report *r, const struct totals *totals)
{
    size_t count;
    const struct dry_owner *rows = dry_owners_get(r->owners, &count);
    json_t *list = json_array();
    for (size_t i = 0; list && i < totals->shown; i++)
        list = json_out_append(list, make_owner(r, &rows[i], totals->all.bytes));
    return list;
}

int
top_report_print_json(const struct top_report *r)
{
    const struct dry_timeline *timeline = r->study->devices[r->device].timeline;
    const struct dry_timeline_view *view = dry_timeline_get_view(timeline);
    struct totals t = sum_up(r);
    json_t *root = json_pack(
        "{s:s, s:o, s:i, s:b, s:o, s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:{s:o, s:o, s:o, "
        "s:o}}",
        "schema", "drystone.top/1", "file", json_out_string(r->file), "device",
        (int)view->device, "simulated", (int)r->study->is_simulated, "at",
        moment_make_json(timeline, &r->moment), "by", dry_owner_key_name(r->key),
        "inverted", (int)r->is_inverted, "active_bytes", json_out_number(t.all.bytes),
        "requested_bytes", json_out_number(t.all.requested), "reserved_bytes",
        json_out_number(
            dry_timeline_height(timeline, DRY_CURVE_RESERVED, r->moment.moment)),
        "count", json_out_number(t.all.count), "owners", make_owners(r, &t), "others",
        "owners", json_out_number(t.row_count - t.shown), "bytes",
        json_out_number(t.rest.bytes), "requested_bytes",
        json_out_number(t.rest.requested), "count", json_out_number(t.rest.count));
    return json_out_print("top", root);
}
