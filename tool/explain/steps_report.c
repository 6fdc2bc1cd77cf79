/* SPDX-License-Identifier: Apache-2.0 */
/* See steps_report.h. */
#include "explain/steps_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/command.h"
#include "base/json_out.h"
#include "base/table.h"
#include "base/term.h"

#define NAME_BYTES 256

/* --- figures ------------------------------------------------------------------------------ */

/* Medians over the whole steps after the first, which the report shows separately. */
struct steady {
    uint32_t count;
    uint64_t peak, churn, kept, time_us;
    double temporary; /* share of allocations freed within their step */
};

/* Return the time from this step's beginning to the next one's; 0 if the clock jumped. */
static uint64_t
duration_of(const struct dry_step *steps, uint32_t count, uint32_t i)
{
    int64_t begin = steps[i].begin_us;
    int64_t end = i + 1 < count ? steps[i + 1].begin_us : steps[i].end_us;
    return end > begin ? (uint64_t)end - (uint64_t)begin : 0;
}

/* Count a step's events. The last step's end is one moment after the last event. */
static uint32_t
count_events(const struct steps_report *r, const struct dry_step *s)
{
    size_t all = dry_timeline_get_view(r->timeline)->event_count;
    return (s->end < all ? s->end : (uint32_t)all) - s->begin;
}

static double
temporary_share(const struct dry_step *s)
{
    return s->alloc_count ? (double)s->temporary_count / s->alloc_count : 0.0;
}

static int
compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

enum figure { FIGURE_PEAK, FIGURE_CHURN, FIGURE_KEPT, FIGURE_TIME };

static uint64_t
find_median(const struct dry_step *steps, uint32_t count, uint32_t first,
            enum figure figure, uint64_t *scratch)
{
    uint32_t n = 0;
    for (uint32_t i = first + 1; i < count; i++) {
        const struct dry_step *s = &steps[i];
        if (s->is_partial)
            continue;
        scratch[n++] = figure == FIGURE_PEAK    ? s->peak.bytes
                       : figure == FIGURE_CHURN ? s->alloc_bytes
                       : figure == FIGURE_KEPT  ? s->kept_bytes
                                                : duration_of(steps, count, i);
    }
    qsort(scratch, n, sizeof *scratch, compare_u64);
    return n > 0 ? scratch[(n - 1) / 2] : 0;
}

/* Return the first step that is not partial; `count` if all are. */
static uint32_t
find_first(const struct dry_step *steps, uint32_t count)
{
    uint32_t first = 0;
    while (first < count && steps[first].is_partial)
        first++;
    return first;
}

static bool
measure_steady(const struct dry_step *steps, uint32_t count, struct steady *steady)
{
    uint32_t first = find_first(steps, count);
    uint64_t allocs = 0, temporaries = 0;
    *steady = (struct steady){0};
    for (uint32_t i = first + 1; i < count; i++) {
        if (steps[i].is_partial)
            continue;
        steady->count++;
        allocs += steps[i].alloc_count;
        temporaries += steps[i].temporary_count;
    }
    if (steady->count == 0)
        return true;
    uint64_t *scratch = calloc(steady->count, sizeof *scratch);
    if (!scratch)
        return false;
    steady->peak = find_median(steps, count, first, FIGURE_PEAK, scratch);
    steady->churn = find_median(steps, count, first, FIGURE_CHURN, scratch);
    steady->kept = find_median(steps, count, first, FIGURE_KEPT, scratch);
    steady->time_us = find_median(steps, count, first, FIGURE_TIME, scratch);
    steady->temporary = allocs ? (double)temporaries / (double)allocs : 0.0;
    free(scratch);
    return true;
}

/* Compute after how many steps a typical step's peak no longer fits the device. False:
   unknown, or memory does not grow. */
static bool
count_steps_left(const struct steps_report *r, uint64_t *left)
{
    uint32_t count;
    const struct dry_step *steps = dry_steps_get(r->steps, &count);
    uint64_t growth = dry_steps_growth_per_step(r->steps);
    uint32_t last = count;
    while (last > 0 && steps[last - 1].is_partial)
        last--;
    if (r->capacity == 0 || growth == 0 || last == 0)
        return false;
    uint64_t peak = steps[last - 1].peak.bytes;
    *left = r->capacity > peak ? (r->capacity - peak) / growth : 0;
    return true;
}

/* Name an allocation by its innermost frame, or by its size if no stack was recorded. The
   name is printable. */
static const char *
name_of(const struct steps_report *r, uint32_t allocation, char text[NAME_BYTES])
{
    const struct dry_timeline_view *v = dry_timeline_get_view(r->timeline);
    const struct dry_allocation *a = &v->allocations[allocation];
    char line[NAME_BYTES], number[TERM_NUMBER_BYTES];
    size_t count = 0;
    if (a->stack != DRY_NONE)
        dry_trace_stack(v->trace, a->stack, &count);
    if (count > 0)
        term_make_printable(
            text, NAME_BYTES, line,
            dry_owners_write_line(r->owners, a->stack, line, sizeof line));
    else
        snprintf(text, NAME_BYTES, "(no stack, %s)",
                 term_format_bytes(a->requested, number));
    return text;
}

/* --- text: how the steps were told apart -------------------------------------------------- */

static void
print_source(const struct steps_report *r, const struct term *term)
{
    char name[NAME_BYTES];
    size_t length;
    const char *marker = dry_steps_get_marker(r->steps, &length);
    uint32_t anchor = dry_steps_get_anchor(r->steps);
    switch (dry_steps_get_source(r->steps)) {
    case DRY_STEPS_ANNOTATIONS:
    case DRY_STEPS_METADATA:
        printf("told apart by %s:\n            ",
               dry_steps_get_source(r->steps) == DRY_STEPS_METADATA ? "user_metadata"
                                                                    : "annotations");
        term_print_text(stdout, marker, length < 60 ? length : 60);
        break;
    case DRY_STEPS_PERIODICITY:
        printf("told apart by periodicity: each begins at\n            ");
        term_print_name(stdout, name_of(r, anchor, name), 12, term->width);
        return;
    case DRY_STEPS_NONE:
        break;
    }
    printf("\n");
}

static void
print_header(const struct steps_report *r, const struct term *term)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(r->timeline);
    uint32_t count, partial = 0;
    const struct dry_step *steps = dry_steps_get(r->steps, &count);
    char number[TERM_NUMBER_BYTES];
    term_print_subject(term, r->file, TERM_PLAIN, "device %d, %s %sevent%s",
                       (int)v->device, term_format_count(v->event_count, number),
                       r->is_simulated ? "simulated " : "",
                       v->event_count == 1 ? "" : "s");
    if (dry_steps_get_source(r->steps) == DRY_STEPS_NONE) {
        printf("no steps could be told apart:\n  %s\n", dry_steps_get_reason(r->steps));
        return;
    }
    for (uint32_t i = 0; i < count; i++)
        partial += steps[i].is_partial;
    printf("steps       %s", term_format_count(count - partial, number));
    if (partial > 0)
        printf(" and %" PRIu32 " partial", partial);
    printf(", ");
    print_source(r, term);
    double confidence = dry_steps_get_confidence(r->steps);
    if (confidence > 0.0)
        printf("            %.0f %% of a step's allocations are made again in the next\n",
               confidence * 100.0);
}

/* --- text: the table of steps ------------------------------------------------------------- */

static void
add_step(struct table *t, const struct steps_report *r, uint32_t i)
{
    uint32_t count;
    const struct dry_step *steps = dry_steps_get(r->steps, &count), *s = &steps[i];
    char text[TERM_NUMBER_BYTES];
    snprintf(text, sizeof text, "%" PRIu32 "%s", i, s->is_partial ? "*" : " ");
    table_add(t, text);
    table_add(t, term_format_count(count_events(r, s), text));
    uint64_t time_us = duration_of(steps, count, i);
    table_add(t, time_us ? term_format_time(time_us, text) : "-");
    table_add(t, term_format_bytes(s->peak.bytes, text));
    table_add(t, term_format_bytes(s->active_end, text));
    table_add(t, term_format_bytes(s->kept_bytes, text));
    table_add(t, term_format_bytes(s->alloc_bytes, text));
    snprintf(text, sizeof text, "%.0f %%", temporary_share(s) * 100.0);
    table_add(t, text);
}

/* Print the table of steps. If there are too many rows, the middle is cut: the first and
   the last steps show most. */
static bool
print_steps(const struct steps_report *r, const struct term *term)
{
    uint32_t count;
    const struct dry_step *steps = dry_steps_get(r->steps, &count);
    size_t front = r->row_max / 2 > 0 ? r->row_max / 2 : 1;
    size_t back = r->row_max > front ? r->row_max - front : 0;
    bool is_cut = count > r->row_max;
    struct table t;
    table_init(&t, ">step >events >time >peak >at_end >kept >churn >temp.");
    bool has_partial = false;
    for (uint32_t i = 0; i < count; i++) {
        if (is_cut && i >= front && i < count - back)
            continue;
        add_step(&t, r, i);
        has_partial |= steps[i].is_partial;
    }
    printf("\n");
    bool is_done = table_print(&t, term);
    if (is_cut)
        printf("  (%zu step%s between them %s left out: --rows)\n", count - front - back,
               count - front - back == 1 ? "" : "s",
               count - front - back == 1 ? "is" : "are");
    if (has_partial && dry_steps_get_source(r->steps) != DRY_STEPS_NONE)
        printf("  * cut off by the window or by an out-of-memory\n");
    return is_done;
}

/* --- text: sums --------------------------------------------------------------------------- */

static void
print_steady(const struct steps_report *r, const struct steady *steady)
{
    uint32_t count;
    const struct dry_step *steps = dry_steps_get(r->steps, &count);
    uint32_t first = find_first(steps, count);
    char a[TERM_NUMBER_BYTES], b[TERM_NUMBER_BYTES], c[TERM_NUMBER_BYTES];
    if (steady->count == 0)
        return;
    printf("\nfirst step  peak %s, kept %s\n",
           term_format_bytes(steps[first].peak.bytes, a),
           term_format_bytes(steps[first].kept_bytes, b));
    printf("then        peak %s, kept %s (median of %s)\n",
           term_format_bytes(steady->peak, a), term_format_bytes(steady->kept, b),
           term_format_count(steady->count, c));
    printf("churn       %s a step, %.1f times its peak; %.0f %% of the allocations are\n"
           "            temporary: freed before 8 others were made\n",
           term_format_bytes(steady->churn, a),
           steady->peak ? (double)steady->churn / (double)steady->peak : 0.0,
           steady->temporary * 100.0);
}

static void
print_growth_line(const struct steps_report *r, const struct term *term)
{
    uint64_t growth = dry_steps_growth_per_step(r->steps), left;
    size_t suspects;
    dry_steps_get_growth(r->steps, &suspects);
    char a[TERM_NUMBER_BYTES], b[TERM_NUMBER_BYTES];
    if (growth == 0) {
        printf("growth      %snone%s: what is in use does not grow from step to step\n",
               term_style(term, TERM_GREEN), term_style(term, TERM_PLAIN));
        return;
    }
    printf("growth      %s%s a step%s", term_style(term, TERM_RED),
           term_format_bytes(growth, a), term_style(term, TERM_PLAIN));
    bool is_known = count_steps_left(r, &left);
    if (is_known && left > 0)
        printf("; %s full after %s more step%s", term_format_bytes(r->capacity, a),
               term_format_count(left, b), left == 1 ? "" : "s");
    else if (is_known)
        printf("; one more step does not fit into %s", term_format_bytes(r->capacity, a));
    printf("\n%s",
           suspects ? "" : "            no line of code leaves it behind regularly\n");
}

static bool
print_suspects(const struct steps_report *r, const struct term *term)
{
    size_t count;
    const struct dry_growth *rows = dry_steps_get_growth(r->steps, &count);
    char text[TERM_NUMBER_BYTES], name[NAME_BYTES];
    if (count == 0)
        return true;
    struct table t;
    table_init(&t, ">a_step >blocks >alive >steps >regular <left_behind_by");
    t.is_bounded = true;
    for (size_t i = 0; i < count && i < r->row_max; i++) {
        const struct dry_growth *g = &rows[i];
        table_add(&t, term_format_bytes(g->bytes_per_step, text));
        if (g->count_per_step)
            term_format_count(g->count_per_step, text);
        else
            snprintf(text, sizeof text, "< 1");
        table_add(&t, text);
        table_add(&t, term_format_bytes(g->bytes, text));
        table_add(&t, term_format_count(g->step_count, text));
        snprintf(text, sizeof text, "%.0f %%", g->confidence * 100.0);
        table_add(&t, text);
        table_add(&t, name_of(r, g->allocation, name));
    }
    printf("\n");
    bool is_done = table_print(&t, term);
    if (count > r->row_max)
        printf("  (%zu more suspect%s: --rows)\n", count - r->row_max,
               count - r->row_max == 1 ? "" : "s");
    return is_done;
}

bool
steps_report_print(const struct steps_report *report)
{
    uint32_t count;
    const struct dry_step *steps = dry_steps_get(report->steps, &count);
    struct term term;
    struct steady steady;
    term_init(&term, stdout);
    if (!measure_steady(steps, count, &steady))
        return false;
    print_header(report, &term);
    bool is_done = print_steps(report, &term);
    print_steady(report, &steady);
    if (steady.count >= 3)
        print_growth_line(report, &term);
    return print_suspects(report, &term) && is_done;
}

/* --- JSON --------------------------------------------------------------------------------- */

static json_t *
make_step(const struct steps_report *r, const struct dry_step *s)
{
    size_t first = dry_timeline_get_view(r->timeline)->first_event;
    return json_pack(
        "{s:b, s:o, s:o, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:I}",
        "partial", s->is_partial, "first_event", json_out_number(first + s->begin),
        "events", json_out_number(count_events(r, s)), "begin_us",
        (json_int_t)s->begin_us, "end_us", (json_int_t)s->end_us, "peak_bytes",
        json_out_number(s->peak.bytes), "peak_event",
        json_out_known(s->peak.moment > s->begin, first + s->peak.moment - 1),
        "active_end_bytes", json_out_number(s->active_end), "reserved_end_bytes",
        json_out_number(s->reserved_end), "kept_bytes", json_out_number(s->kept_bytes),
        "alloc_bytes", json_out_number(s->alloc_bytes), "allocs",
        (json_int_t)s->alloc_count, "temporary_bytes",
        json_out_number(s->temporary_bytes), "temporaries",
        (json_int_t)s->temporary_count);
}

static json_t *
make_steps(const struct steps_report *r)
{
    uint32_t count;
    const struct dry_step *steps = dry_steps_get(r->steps, &count);
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < count; i++)
        list = json_out_append(list, make_step(r, &steps[i]));
    return list;
}

static json_t *
make_name(const struct steps_report *r, uint32_t allocation)
{
    char name[NAME_BYTES];
    name_of(r, allocation, name);
    return json_out_string(name);
}

static json_t *
make_suspects(const struct steps_report *r)
{
    size_t count;
    const struct dry_growth *rows = dry_steps_get_growth(r->steps, &count);
    const struct dry_timeline_view *v = dry_timeline_get_view(r->timeline);
    json_t *list = json_array();
    for (size_t i = 0; list && i < count; i++) {
        const struct dry_growth *g = &rows[i];
        json_t *row = json_pack(
            "{s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:f}", "owner",
            make_name(r, g->allocation), "requested_bytes",
            json_out_number(v->allocations[g->allocation].requested), "bytes_per_step",
            json_out_number(g->bytes_per_step), "blocks_per_step",
            json_out_number(g->count_per_step), "bytes", json_out_number(g->bytes),
            "steps", (json_int_t)g->step_count, "last_event",
            json_out_number(v->first_event + v->allocations[g->allocation].begin - 1),
            "confidence", g->confidence);
        list = json_out_append(list, row);
    }
    return list;
}

int
steps_report_print_json(const char *command, const struct steps_report *r)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(r->timeline);
    enum dry_steps_source source = dry_steps_get_source(r->steps);
    uint32_t anchor = dry_steps_get_anchor(r->steps);
    const char *reason = dry_steps_get_reason(r->steps);
    size_t length;
    const char *marker = dry_steps_get_marker(r->steps, &length);
    uint64_t left;
    json_t *root = json_pack(
        "{s:s, s:o, s:i, s:o, s:b, s:s, s:o, s:o, s:o, s:f, s:o, s:o, s:o, s:o, s:o}",
        "schema", "drystone.steps/1", "file", json_out_string(r->file), "device",
        (int)v->device, "events", json_out_number(v->event_count), "simulated",
        r->is_simulated, "source", dry_steps_source_name(source), "reason",
        reason[0] ? json_string(reason) : json_null(), "marker",
        length > 0 ? json_out_text(marker, length) : json_null(), "anchor",
        anchor != DRY_NONE ? make_name(r, anchor) : json_null(), "confidence",
        dry_steps_get_confidence(r->steps), "steps", make_steps(r),
        "growth_bytes_per_step", json_out_number(dry_steps_growth_per_step(r->steps)),
        "capacity_bytes", json_out_known(r->capacity, r->capacity), "steps_until_full",
        count_steps_left(r, &left) ? json_out_number(left) : json_null(), "growth",
        make_suspects(r));
    return json_out_print(command, root);
}

int
steps_report_exit_code(const struct steps_report *r)
{
    size_t count;
    const struct dry_growth *rows = dry_steps_get_growth(r->steps, &count);
    bool is_found = false;
    for (size_t i = 0; i < count && dry_steps_growth_per_step(r->steps) > 0; i++)
        is_found |= rows[i].confidence >= 0.5;
    return is_found ? EXIT_FOUND : EXIT_FINE;
}
