/* SPDX-License-Identifier: Apache-2.0 */
/* See steps_report.h. */
#include "explain/steps_report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/command.h"
#include "base/fields.h"
#include "base/json_out.h"
#include "base/table.h"
#include "base/term.h"

#define NAME_BYTES 256

/* --- figures ------------------------------------------------------------------------------ */

static int
compare_u64(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* Find the median of each number of the whole steps after the first, which fills caches.
   Returns false if memory ran out. */
static bool
find_median(const struct dry_step *steps, uint32_t count, struct dry_step *median)
{
    struct dry_fields fields = dry_step_get_fields(DRY_STEP_WHOLE);
    uint64_t *scratch = calloc((size_t)count + 1, sizeof *scratch);
    if (!scratch)
        return false;
    for (size_t k = 0; k < fields.count; k++) {
        uint32_t n = 0;
        bool is_first = true;
        struct dry_field_value value;
        for (uint32_t i = 0; i < count; i++) {
            if (!steps[i].is_partial && !is_first &&
                dry_field_get(&fields.list[k], &steps[i], &value))
                scratch[n++] = value.number;
            is_first &= steps[i].is_partial;
        }
        qsort(scratch, n, sizeof *scratch, compare_u64);
        if (n > 0)
            dry_field_set(&fields.list[k], median, scratch[(n - 1) / 2]);
    }
    free(scratch);
    return true;
}

/* clang-format off */
#define TOTAL(name, kind, unit, ...)                                                     \
    DRY_FIELD_OF(struct steps_totals, #name, kind, unit, name, __VA_ARGS__)
#define ALWAYS DRY_KNOWN_ALWAYS, 0
#define IF_HAS_END DRY_KNOWN_IF, offsetof(struct steps_totals, has_end)
#define IF_CAPACITY DRY_KNOWN_IF_ABOVE_0, offsetof(struct steps_totals, capacity_bytes)

static const struct dry_field totals_rows[] = {
    TOTAL(confidence, REAL, SHARE, ALWAYS, false, "the share of a step's allocations that the next one makes, too"),
    TOTAL(whole_steps, U64, COUNT, ALWAYS, false, "how many steps are whole"),
    TOTAL(suspects, U64, COUNT, ALWAYS, true, "code that grows in half of the steps or more"),
    TOTAL(growth_bytes_per_step, U64, BYTES, ALWAYS, true, "the slope of what is in use at their ends; 0: none"),
    TOTAL(capacity_bytes, U64, BYTES, IF_CAPACITY, false, "what the device has for PyTorch; null: not known"),
    TOTAL(steps_until_full, U64, COUNT, IF_HAS_END, false, "how many more steps it will take; null: not known, or it ran out in this file"),
};
/* clang-format on */

struct dry_fields
steps_totals_get_fields(void)
{
    return DRY_FIELDS_OF(totals_rows);
}

struct steps_totals
steps_report_sum(const struct steps_report *r)
{
    uint32_t count;
    size_t growth_count;
    const struct dry_step *steps = dry_steps_get(r->steps, &count);
    const struct dry_growth *growth = dry_steps_get_growth(r->steps, &growth_count);
    struct steps_totals t = {.confidence = dry_steps_get_confidence(r->steps),
                             .growth_bytes_per_step = dry_steps_growth_per_step(r->steps),
                             .capacity_bytes = r->capacity};
    for (size_t i = 0; i < growth_count; i++)
        t.suspects += growth[i].confidence >= 0.5;
    uint64_t peak = 0; /* the last whole step's */
    for (uint32_t i = 0; i < count; i++) {
        t.whole_steps += !steps[i].is_partial;
        peak = steps[i].is_partial ? peak : steps[i].peak.bytes;
    }
    t.has_end = dry_timeline_get_view(r->timeline)->oom_count == 0 && r->capacity > 0 &&
                t.growth_bytes_per_step > 0 && t.whole_steps > 0;
    if (t.has_end && r->capacity > peak)
        t.steps_until_full = (r->capacity - peak) / t.growth_bytes_per_step;
    return t;
}

/* Name an allocation by its innermost frame, or by its size if no stack was recorded. The
   name is printable. */
static const char *
get_name(const struct steps_report *r, uint32_t allocation, char text[NAME_BYTES])
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
    enum dry_steps_source source = dry_steps_get_source(r->steps);
    if (source == DRY_STEPS_PERIODICITY) {
        printf("told apart by periodicity: each begins at\n            ");
        term_print_name(stdout, get_name(r, dry_steps_get_anchor(r->steps), name), 12,
                        term->width);
        return;
    }
    printf("told apart by %s:\n            ",
           source == DRY_STEPS_METADATA ? "user_metadata" : "annotations");
    term_print_text(stdout, marker, length < 60 ? length : 60);
    printf("\n");
}

static void
print_header(const struct steps_report *r, const struct steps_totals *totals,
             const struct term *term)
{
    const struct dry_timeline_view *v = dry_timeline_get_view(r->timeline);
    char number[TERM_NUMBER_BYTES];
    term_print_subject(term, r->file, TERM_PLAIN, "device %d, %s %sevent%s",
                       (int)v->device, term_format_count(v->event_count, number),
                       r->is_simulated ? "simulated " : "",
                       v->event_count == 1 ? "" : "s");
    if (dry_steps_get_source(r->steps) == DRY_STEPS_NONE) {
        printf("no steps could be told apart:\n  %s\n", dry_steps_get_reason(r->steps));
        return;
    }
    uint32_t count;
    dry_steps_get(r->steps, &count);
    printf("steps       %s", term_format_count(totals->whole_steps, number));
    if (count > totals->whole_steps)
        printf(" and %" PRIu64 " partial", count - totals->whole_steps);
    printf(", ");
    print_source(r, term);
    if (totals->confidence > 0.0)
        printf("            %.0f %% of a step's allocations are made again in the next\n",
               totals->confidence * 100.0);
}

/* --- text: the table of steps ------------------------------------------------------------- */

static void
add_step(struct table *t, const struct dry_step *s, const char *name)
{
    table_add(t, name);
    fields_add_cells(t, dry_step_get_fields(DRY_STEP_WHOLE), s);
}

/* Return the first step with the highest peak. */
static uint32_t
find_highest(const struct dry_step *steps, uint32_t count)
{
    uint32_t highest = 0;
    for (uint32_t i = 1; i < count; i++)
        highest = steps[i].peak.bytes > steps[highest].peak.bytes ? i : highest;
    return highest;
}

/* Print the table of steps and, if there is one, their median. If there are too many rows,
   the middle is cut, but for the highest step: the first and the last steps show most. */
static bool
print_steps(const struct steps_report *r, const struct dry_step *median,
            const struct term *term)
{
    uint32_t count;
    const struct dry_step *steps = dry_steps_get(r->steps, &count);
    size_t front = r->row_max / 2 > 0 ? r->row_max / 2 : 1;
    size_t back = r->row_max > front ? r->row_max - front : 0;
    uint32_t left_out = 0, highest = find_highest(steps, count);
    bool is_cut = count > r->row_max;
    struct dry_fields fields = dry_step_get_fields(DRY_STEP_WHOLE);
    struct table t;
    fields_init_table(&t, ">step", fields, "");
    bool has_partial = false, has_temporaries = false;
    char name[TERM_NUMBER_BYTES];
    for (uint32_t i = 0; i < count; i++) {
        if (is_cut && i >= front && i < count - back && i != highest) {
            left_out++;
            continue;
        }
        snprintf(name, sizeof name, "%" PRIu32 "%s", i, steps[i].is_partial ? "*" : " ");
        add_step(&t, &steps[i], name);
        has_partial |= steps[i].is_partial;
        has_temporaries |= steps[i].temporary_bytes > 0;
    }
    if (median)
        add_step(&t, median, "median");
    printf("\n");
    bool is_done = table_print(&t, term);
    if (left_out > 0)
        printf("  (%" PRIu32 " step%s between them %s left out: --rows)\n", left_out,
               left_out == 1 ? "" : "s", left_out == 1 ? "is" : "are");
    if (has_partial && dry_steps_get_source(r->steps) != DRY_STEPS_NONE)
        printf("  * cut off by the window or by an OOM\n");
    if (has_temporaries)
        printf("  temp.: %s\n", dry_fields_find(&fields, "temporary_bytes")->meaning);
    return is_done;
}

static void
print_growth_line(const struct steps_report *r, const struct steps_totals *totals,
                  const struct term *term)
{
    uint64_t growth = totals->growth_bytes_per_step, left = totals->steps_until_full;
    const struct dry_timeline_view *v = dry_timeline_get_view(r->timeline);
    size_t suspects;
    dry_steps_get_growth(r->steps, &suspects);
    char a[TERM_NUMBER_BYTES], b[TERM_NUMBER_BYTES];
    if (growth == 0) {
        printf("\ngrowth      %snone%s: what is in use does not grow from step to step\n",
               term_style(term, TERM_GREEN), term_style(term, TERM_PLAIN));
        return;
    }
    printf("\ngrowth      %s%s a step%s", term_style(term, TERM_RED),
           term_format_bytes(growth, a), term_style(term, TERM_PLAIN));
    if (v->oom_count > 0)
        printf("; the device ran out of memory at event %zu",
               v->first_event + v->oom_event);
    else if (left > 0)
        printf("; %s full after %s more step%s", term_format_bytes(r->capacity, a),
               term_format_count(left, b), left == 1 ? "" : "s");
    else if (totals->has_end)
        printf("; one more step does not fit into %s", term_format_bytes(r->capacity, a));
    printf("\n%s",
           suspects ? "" : "            no line of code leaves it behind regularly\n");
}

static bool
print_suspects(const struct steps_report *r, const struct term *term)
{
    size_t count;
    const struct dry_growth *rows = dry_steps_get_growth(r->steps, &count);
    char name[NAME_BYTES];
    if (count == 0)
        return true;
    struct table t;
    fields_init_table(&t, "", dry_growth_get_fields(), "<left_behind_by");
    t.is_bounded = true;
    for (size_t i = 0; i < count && i < r->row_max; i++) {
        fields_add_cells(&t, dry_growth_get_fields(), &rows[i]);
        table_add(&t, get_name(r, rows[i].allocation, name));
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
    struct steps_totals totals = steps_report_sum(report);
    struct dry_step median = {0};
    if (!find_median(steps, count, &median))
        return false;
    term_init(&term, stdout);
    print_header(report, &totals, &term);
    bool is_done = print_steps(report, totals.whole_steps > 1 ? &median : NULL, &term);
    if (totals.whole_steps > 3)
        print_growth_line(report, &totals, &term);
    return print_suspects(report, &term) && is_done;
}

/* --- JSON --------------------------------------------------------------------------------- */

static json_t *
make_steps(const struct steps_report *r)
{
    uint32_t count;
    const struct dry_step *steps = dry_steps_get(r->steps, &count);
    json_t *list = json_array();
    for (uint32_t i = 0; list && i < count; i++)
        list = json_out_append(list, fields_add_json(json_object(),
                                                     dry_step_get_fields(DRY_STEP_WHOLE),
                                                     &steps[i]));
    return list;
}

static json_t *
make_name(const struct steps_report *r, uint32_t allocation)
{
    char name[NAME_BYTES];
    get_name(r, allocation, name);
    return json_out_string(name);
}

static json_t *
make_suspects(const struct steps_report *r)
{
    size_t count;
    const struct dry_growth *rows = dry_steps_get_growth(r->steps, &count);
    json_t *list = json_array();
    for (size_t i = 0; list && i < count; i++) {
        json_t *row = json_pack("{s:o}", "owner", make_name(r, rows[i].allocation));
        list = json_out_append(list,
                               fields_add_json(row, dry_growth_get_fields(), &rows[i]));
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
    struct steps_totals totals = steps_report_sum(r);
    json_t *root =
        json_pack("{s:s, s:o, s:i, s:o, s:b, s:s, s:o, s:o, s:o, s:o, s:o}", "schema",
                  "drystone.steps/1", "file", json_out_string(r->file), "device",
                  (int)v->device, "events", json_out_number(v->event_count), "simulated",
                  r->is_simulated, "source", dry_steps_source_name(source), "reason",
                  reason[0] ? json_string(reason) : json_null(), "marker",
                  length > 0 ? json_out_text(marker, length) : json_null(), "anchor",
                  anchor != DRY_NONE ? make_name(r, anchor) : json_null(), "steps",
                  make_steps(r), "growth", make_suspects(r));
    root = fields_add_json(root, steps_totals_get_fields(), &totals);
    return json_out_print(command, root);
}
