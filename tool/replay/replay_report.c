/* SPDX-License-Identifier: Apache-2.0 */
/* The report of replay_report.h: first as text, then as JSON. */
#include "replay/replay_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/command.h"
#include "base/fields.h"
#include "base/json_out.h"
#include "base/table.h"
#include "base/term.h"
#include "replay/across.h"

/* --- text --------------------------------------------------------------------------------- */

/* Print a count with its noun: "1 block", "664 blocks". */
static void
print_count(size_t count, const char *noun)
{
    char text[TERM_NUMBER_BYTES];
    printf("%s %s%s", term_format_count(count, text), noun, count == 1 ? "" : "s");
}

static void
print_matched(size_t matched, size_t count, const char *one, const char *many)
{
    char a[TERM_NUMBER_BYTES], b[TERM_NUMBER_BYTES];
    printf("            %s of %s %s\n", term_format_count(matched, a),
           term_format_count(count, b), count == 1 ? one : many);
}

static void
print_mismatch(const struct dry_mismatch *m)
{
    char text[sizeof m->what + 64], safe[sizeof text];
    int length = m->event != SIZE_MAX
                     ? snprintf(text, sizeof text, "event %zu: %s", m->event, m->what)
                     : snprintf(text, sizeof text, "%s", m->what);
    term_make_printable(safe, sizeof safe, text, (size_t)length);
    printf("            first mismatch: ");
    term_print_wrapped(stdout, safe, 28, 80);
}

/* Print what had to be inferred or skipped. */
static void
print_notes(const struct dry_replay_check *c)
{
    struct note {
        size_t count;
        const char *noun, *text;
    } notes[] = {
        {c->live_before, "block", "older than the window"},
        {c->sizes_inferred, "size", "of such blocks inferred from later addresses"},
        {c->frees_inferred, "free", "after the last event inferred from the segments"},
        {c->pending_count, "free", "that waited for another stream"},
        {c->assumed_count, "free", "taken as complete: free_completed was not recorded"},
        {c->empty_cache_count, "call", "of empty_cache() by the program"},
        {c->retry_count, "request", "tried again on a full device"},
        {c->oom_count, "OOM event", "recorded"},
        {c->unknown_count, "event", "of unknown actions skipped"},
    };
    for (size_t i = 0; i < sizeof notes / sizeof *notes; i++) {
        if (notes[i].count == 0)
            continue;
        printf("            ");
        print_count(notes[i].count, notes[i].noun);
        printf(" %s\n", notes[i].text);
    }
}

static void
print_check(const struct term *term, const struct dry_trace_view *view,
            const struct dry_replay_check *c)
{
    if (!c->possible) {
        char reason[sizeof c->reason];
        term_make_printable(reason, sizeof reason, c->reason, strlen(c->reason));
        bool is_long = term_columns(reason) > 80 - 26; /* columns before it */
        printf("self-check  %snot possible%s:%s", term_style(term, TERM_YELLOW),
               term_style(term, TERM_PLAIN), is_long ? "\n            " : " ");
        term_print_wrapped(stdout, reason, 12, 80);
        printf("            all figures below are %s\n",
               view->kind == DRY_TRACE_SNAPSHOT ? "approximate" : "unchecked");
        print_notes(c);
        return;
    }
    if (c->exact)
        printf("self-check  %sexact%s by the rules of PyTorch %s\n",
               term_style(term, TERM_GREEN), term_style(term, TERM_PLAIN), c->compat);
    else
        printf("self-check  %snot exact%s by the rules of PyTorch %s:\n"
               "            all figures below are approximate\n",
               term_style(term, TERM_RED), term_style(term, TERM_PLAIN), c->compat);
    print_matched(c->alloc_matched, c->alloc_count, "address", "addresses");
    print_matched(c->segment_event_matched, c->segment_event_count, "segment event",
                  "segment events");
    print_matched(c->segment_matched, c->segment_count, "segment at the end",
                  "segments at the end");
    print_matched(c->block_matched, c->block_count, "block at the end",
                  "blocks at the end");
    if (c->has_mismatch)
        print_mismatch(&c->first_mismatch);
    print_notes(c);
}

/* Return the recorded options of the place that recorded. */
static const char *
get_recorded_conf(const struct dry_replay_recorded *rec)
{
    return strcmp(rec->place, "paged") == 0 ? rec->place_conf : rec->conf;
}

/* Point out other devices with events, which are not replayed. */
static void
print_other_devices(const struct replay_report *r)
{
    int32_t replayed = dry_replay_get_recorded(r->replay)->device;
    size_t count = 0;
    for (size_t i = 0; i < r->view->device_count; i++) {
        const struct dry_trace_device *d = &r->view->devices[i];
        count +=
            d->device != replayed && d->device != DRY_DEVICE_HOST && d->event_count > 0;
    }
    if (count == 0)
        return;
    printf("            ");
    print_count(count, "other device");
    printf(" with events: choose by --device N\n");
}

/* Print the recorded settings. The place is named unless it is PyTorch. */
static void
print_recorded_settings(const struct dry_replay_recorded *rec)
{
    bool is_torch = strcmp(rec->place, "torch") == 0;
    const char *conf = get_recorded_conf(rec);
    printf("            settings: ");
    term_print_text(stdout, conf, strlen(conf));
    printf("%s", conf[0] ? "" : rec->place[0] ? "default" : "not known");
    if (!is_torch)
        printf(",\n            of %s", rec->place[0] ? "Drystone's placement paged"
                                                     : "a placement that is not known");
    printf("\n");
    if (!rec->conf_problem)
        return;
    char problem[256];
    term_make_printable(problem, sizeof problem, rec->conf_problem,
                        strlen(rec->conf_problem));
    printf("            not read whole: ");
    term_print_wrapped(stdout, problem, 28, 80);
    printf("            replayed with %s\n",
           is_torch ? "the values the file has beside them" : "the defaults");
}

static void
print_recorded(const struct replay_report *r)
{
    const struct dry_replay_recorded *rec = dry_replay_get_recorded(r->replay);
    if (rec->reserved_peak_bytes == 0)
        return; /* no record of this device, or an inconsistent one */
    char peak[TERM_NUMBER_BYTES], end[TERM_NUMBER_BYTES];
    printf("recorded    reserved %s at the peak, %s at the end\n",
           term_format_bytes(rec->reserved_peak_bytes, peak),
           term_format_bytes(rec->reserved_end_bytes, end));
    print_recorded_settings(rec);
    if (!rec->oom && rec->capacity_high_bytes > 0)
        printf("            near the limit: room for PyTorch was %s or more,\n"
               "            and less than %s\n",
               term_format_bytes(rec->capacity_low_bytes, peak),
               term_format_bytes(rec->capacity_high_bytes, end));
    if (!rec->oom)
        return;
    printf("            out of memory at event %zu", rec->oom_event);
    if (rec->capacity_bytes)
        printf("; room for PyTorch then: %s",
               term_format_bytes(rec->capacity_bytes, peak));
    printf("\n");
}

static void
add_verdict(struct table *t, const struct replay_report *r, const struct dry_run *run)
{
    char text[TERM_NUMBER_BYTES];
    if (r->finds_capacity)
        table_add(t, run->capacity_bytes ? term_format_bytes(run->capacity_bytes, text)
                                         : "none");
    else
        table_add(t, run->oom ? "OOM" : "fits");
}

static void
add_row(struct table *t, const struct replay_report *r, const struct replay_row *row)
{
    const struct dry_run *run = &row->run;
    char text[TERM_NUMBER_BYTES];
    table_add(t, row->label);
    table_add(t, term_format_bytes(run->reserved_peak_bytes, text));
    table_add(t, term_format_bytes(run->reserved_end_bytes, text));
    table_add(t, term_format_count(
                     (uint64_t)(run->stats.num_device_alloc + run->stats.num_device_free),
                     text));
    table_add(t, term_format_count((uint64_t)run->stats.num_alloc_retries, text));
    table_add(t, term_format_time(run->driver_time_ns / 1000, text));
    add_verdict(t, r, run);
}

/* Add a row that compares places: peak, its ratio to live bytes, the driver's work. */
static void
add_place_row(struct table *t, const struct replay_report *r,
              const struct replay_row *row)
{
    const struct dry_run *run = &row->run;
    uint64_t live = dry_replay_get_recorded(r->replay)->live_peak_bytes;
    char text[TERM_NUMBER_BYTES];
    table_add(t, row->label);
    table_add(t, run->place);
    table_add(t, term_format_bytes(run->reserved_peak_bytes, text));
    snprintf(text, sizeof text, "%.3f",
             live ? (double)run->reserved_peak_bytes / (double)live : 0.0);
    table_add(t, live ? text : "-");
    table_add(t, term_format_count(run->driver_calls, text));
    table_add(t, term_format_count(run->pages_remapped, text));
    table_add(t, term_format_time(run->driver_time_ns / 1000, text));
    add_verdict(t, r, run);
}

static const char *
get_columns(const struct replay_report *r)
{
    if (r->has_places)
        return r->finds_capacity
                   ? "=settings <place >peak >x_live >calls >remaps >driver >runs_on"
                   : "=settings <place >peak >x_live >calls >remaps >driver >result";
    if (r->across)
        return r->finds_capacity ? "=release >peak >end >calls >retries >driver >runs_on"
                                 : "=release >peak >end >calls >retries >driver >result";
    return r->finds_capacity ? "=settings >peak >end >calls >retries >driver >runs_on"
                             : "=settings >peak >end >calls >retries >driver >result";
}

static bool
print_table(const struct replay_report *r, const struct term *term)
{
    struct table t;
    table_init(&t, get_columns(r));
    t.is_bounded = true;
    for (size_t i = 0; i < r->row_count; i++) {
        if (r->has_places)
            add_place_row(&t, r, &r->rows[i]);
        else
            add_row(&t, r, &r->rows[i]);
    }
    return table_print(&t, term);
}

static void
print_packed(size_t row, const struct dry_run *run)
{
    char text[TERM_NUMBER_BYTES];
    double above = run->floor_bytes
                       ? 100.0 * (double)(run->packed_bytes - run->floor_bytes) /
                             (double)run->floor_bytes
                       : 0.0;
    printf("  row %zu: packed into %s (%s), ", row,
           term_format_bytes(run->packed_bytes, text), run->method);
    if (run->packed_bytes == run->floor_bytes)
        printf("no less is possible\n");
    else
        printf("%.2f %% above the floor%s\n", above,
               run->is_optimal ? ", no less is possible" : "");
}

static void
print_steady(size_t row, const struct dry_run *run)
{
    if (!run->has_steady) {
        printf("  row %zu: no steady part: %s\n", row,
               run->as_recorded ? "the recording itself is not measured, give --place"
               : run->method    ? "a packing has no course"
                                : "the run ended before it");
        return;
    }
    char reserved[TERM_NUMBER_BYTES], calls[TERM_NUMBER_BYTES], moved[TERM_NUMBER_BYTES];
    printf("  row %zu: steady part: reserved %s, %s driver %s, %s %s moved\n", row,
           term_format_bytes(run->steady_reserved_peak_bytes, reserved),
           term_format_count(run->steady_driver_calls, calls),
           run->steady_driver_calls == 1 ? "call" : "calls",
           term_format_count(run->steady_pages_remapped, moved),
           run->steady_pages_remapped == 1 ? "page" : "pages");
}

/* Print the cost of the second half, when the program is warm. Usually there is none. */
static void
print_second_half(size_t row, const struct dry_run *run)
{
    if (run->steady_driver_calls == 0 && run->steady_pages_remapped == 0)
        return;
    char time[TERM_NUMBER_BYTES];
    printf("  row %zu: second half: ", row);
    print_count(run->steady_driver_calls, "driver call");
    printf(", %s, ", term_format_time(run->steady_driver_time_ns / 1000, time));
    print_count(run->steady_pages_remapped, "page");
    printf(" moved\n");
}

/* Print advice if pages move in the steady part of some run. */
static void
print_advice(const struct replay_report *r)
{
    bool pays_moves = false;
    for (size_t i = 0; i < r->row_count; i++)
        pays_moves |= r->rows[i].run.steady_pages_remapped > 0;
    if (pays_moves)
        printf("  advice: pages still move there: try a larger budget, as in\n"
               "    -p paged:budget:1.25, or a larger device\n");
}

static void
print_order(size_t row, const struct dry_run *run)
{
    char text[TERM_NUMBER_BYTES], safe[sizeof run->first_order_fault];
    if (run->order_fault_count == 0) {
        printf("  row %zu: nothing was reused before its last use was over\n", row);
        return;
    }
    const char *first = run->first_order_fault;
    term_make_printable(safe, sizeof safe, first, strlen(first));
    printf("  row %zu: %s out of order, the first:\n    ", row,
           term_format_count(run->order_fault_count, text));
    term_print_wrapped(stdout, safe, 4, 80);
}

/* Print an OOM with its device: the column may show another, the smallest possible. */
static void
print_oom(const struct replay_report *r, size_t row, const struct dry_run *run)
{
    char text[TERM_NUMBER_BYTES];
    uint64_t capacity = r->capacity_bytes;
    if (capacity == 0)
        capacity = dry_replay_get_recorded(r->replay)->capacity_bytes;
    printf("  row %zu: ", row);
    if (capacity > 0)
        printf("on %s ", term_format_bytes(capacity, text));
    printf("out of memory at event %zu, asked for %s\n", run->oom_event,
           term_format_bytes(run->oom_size, text));
}

/* Print the details of each row that have no space in the table. */
static void
print_rows_in_full(const struct replay_report *r)
{
    for (size_t i = 0; i < r->row_count; i++) {
        const struct replay_row *row = &r->rows[i];
        if (row->run.oom)
            print_oom(r, i + 1, &row->run);
        if (row->run.method)
            print_packed(i + 1, &row->run);
        if (r->wants_steady)
            print_steady(i + 1, &row->run);
        else if (row->run.has_steady)
            print_second_half(i + 1, &row->run);
        if (row->run.has_order)
            print_order(i + 1, &row->run);
    }
    print_advice(r);
}

bool
replay_report_print(const struct replay_report *r)
{
    struct term term;
    term_init(&term, stdout);
    const struct dry_replay_check *check = dry_replay_get_check(r->replay);
    const struct dry_replay_recorded *rec = dry_replay_get_recorded(r->replay);
    char count[TERM_NUMBER_BYTES];
    term_print_subject(&term, r->file, TERM_BOLD, "device %" PRId32 ", %s event%s",
                       rec->device, term_format_count(check->event_count, count),
                       check->event_count == 1 ? "" : "s");
    print_check(&term, r->view, check);
    print_recorded(r);
    print_other_devices(r);
    printf("\n");
    if (!print_table(r, &term))
        return false;
    print_rows_in_full(r);
    if (r->across)
        across_print(r->across);
    return true;
}

/* --- JSON --------------------------------------------------------------------------------- */

static json_t *
make_event(size_t event)
{
    return event == SIZE_MAX ? json_null() : json_out_number(event);
}

static json_t *
make_check(const struct dry_replay_check *c)
{
    json_t *mismatch = json_null();
    if (c->has_mismatch)
        mismatch = json_pack("{s:o, s:o}", "event", make_event(c->first_mismatch.event),
                             "what", json_out_string(c->first_mismatch.what));
    return fields_add_json(json_pack("{s:o}", "first_mismatch", mismatch),
                           dry_replay_check_get_fields(), c);
}

static json_t *
make_recorded(const struct dry_replay_recorded *rec)
{
    json_t *made = json_pack("{s:o, s:o}", "place", json_out_filled(rec->place), "conf",
                             json_out_string(get_recorded_conf(rec)));
    return fields_add_json(made, dry_replay_recorded_get_fields(), rec);
}

static void
add_stat(void *self, const char *key, int64_t value)
{
    json_object_set_new(self, key, json_integer(value));
}

/* Add a statistic of a packing, but none of pools, splits and retries, which do not apply. */
static void
add_packed_stat(void *self, const char *key, int64_t value)
{
    static const char *const meant[] = {"allocation.all.", "allocated_bytes.all.",
                                        "requested_bytes.all.", "reserved_bytes.all.",
                                        "segment.all."};
    for (size_t i = 0; i < sizeof meant / sizeof *meant; i++) {
        if (strncmp(key, meant[i], strlen(meant[i])) == 0)
            add_stat(self, key, value);
    }
}

static const char *
get_conf(const struct replay_report *r, const struct replay_row *row)
{
    if (row->conf)
        return row->conf;
    const struct dry_replay_recorded *rec = dry_replay_get_recorded(r->replay);
    return strcmp(row->run.place, rec->place) == 0 ? get_recorded_conf(rec) : "";
}

static json_t *
make_part(const struct dry_run *run, bool has_part, enum dry_run_part part)
{
    if (!has_part)
        return json_null();
    return fields_add_json(json_object(), dry_run_get_fields(part), run);
}

static json_t *
make_run(const struct replay_report *r, const struct replay_row *row)
{
    const struct dry_run *run = &row->run;
    json_t *stats = json_object();
    if (!stats)
        return NULL;
    dry_stats_visit(&run->stats, run->method ? add_packed_stat : add_stat, stats);
    json_t *made =
        fields_add_json(json_pack("{s:o}", "conf", json_out_string(get_conf(r, row))),
                        dry_run_get_fields(DRY_RUN_WHOLE), run);
    json_t *rest =
        json_pack("{s:o, s:o, s:o, s:o, s:o}", "packed",
                  make_part(run, run->method != NULL, DRY_RUN_PACKED), "steady",
                  make_part(run, run->has_steady, DRY_RUN_STEADY), "order",
                  make_part(run, run->has_order, DRY_RUN_ORDER), "release",
                  r->across ? json_out_string(row->label) : json_null(), "stats", stats);
    if (json_object_update(made, rest) != 0) {
        json_decref(made);
        made = NULL;
    }
    json_decref(rest);
    return made;
}

int
replay_report_print_json(const char *command, const struct replay_report *r)
{
    const struct dry_replay_check *check = dry_replay_get_check(r->replay);
    const struct dry_replay_recorded *rec = dry_replay_get_recorded(r->replay);
    json_t *runs = json_array();
    for (size_t i = 0; runs && i < r->row_count; i++) {
        json_t *run = make_run(r, &r->rows[i]);
        if (!run || json_array_append_new(runs, run) != 0) {
            json_decref(runs);
            runs = NULL;
        }
    }
    json_t *root = NULL;
    if (runs)
        root = json_pack("{s:s, s:o, s:i, s:o, s:o, s:o, s:o, s:o}", "schema",
                         "drystone.replay/1", "file", json_out_string(r->file), "device",
                         (int)rec->device, "events", json_out_number(check->event_count),
                         "self_check", make_check(check), "recorded", make_recorded(rec),
                         "runs", runs, "across",
                         r->across ? across_make_json(r->across) : json_null());
    return json_out_print(command, root);
}

int
replay_report_exit_code(const struct replay_report *r)
{
    const struct dry_replay_check *check = dry_replay_get_check(r->replay);
    if (check->possible && !check->exact)
        return EXIT_FOUND;
    for (size_t i = 0; i < r->row_count; i++) {
        if (r->rows[i].run.oom || r->rows[i].run.order_fault_count > 0)
            return EXIT_FOUND;
    }
    return EXIT_FINE;
}
