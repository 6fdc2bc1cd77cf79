/* SPDX-License-Identifier: Apache-2.0 */
/* See figures.h. */
#include "explain/figures.h"

#include <string.h>

#include <drystone/timeline.h>

#include "base/command.h"
#include "base/term.h"

struct explain_figures {
    uint64_t reserved_peak_bytes, active_peak_bytes, short_bytes, ooms;
};
struct diff_figures {
    uint64_t total_spread_bytes, growth_bytes, owner_growth_bytes;
    uint64_t first_active_bytes, last_active_bytes;
};

#define FIGURE(type, name, unit, is_worse, meaning)                                      \
    DRY_FIELD_OF(type, #name, U64, unit, name, DRY_KNOWN_ALWAYS, 0, is_worse, meaning)
#define EXPLAIN(...) FIGURE(struct explain_figures, __VA_ARGS__)
#define DIFF(...) FIGURE(struct diff_figures, __VA_ARGS__)

static const struct dry_field explain_rows[] = {
    EXPLAIN(reserved_peak_bytes, BYTES, true, "reserved at the peak of the recording"),
    EXPLAIN(active_peak_bytes, BYTES, true, "active at the peak of the recording"),
    EXPLAIN(short_bytes, BYTES, true, "what the device lacks for the request alone"),
    EXPLAIN(ooms, COUNT, true, "OOMs of the device"),
};
static const struct dry_field diff_rows[] = {
    DIFF(total_spread_bytes, BYTES, true, "the largest difference of totals"),
    DIFF(growth_bytes, BYTES, true, "what the last has more than the first"),
    DIFF(owner_growth_bytes, BYTES, true, "the largest growth of an owner"),
    DIFF(first_active_bytes, BYTES, true, "active bytes of the first"),
    DIFF(last_active_bytes, BYTES, true, "active bytes of the last"),
};

static struct gate
make_gate(const char *command, const char *file, const struct gate_values *values)
{
    struct gate gate = {.command = command, .file = file, .values = values};
    if (strcmp(command, "steps") == 0)
        gate.figures = (struct figures){{dry_step_get_fields(DRY_STEP_HEIGHTS),
                                         dry_step_get_fields(DRY_STEP_SUMS),
                                         steps_totals_get_fields()},
                                        3};
    else if (strcmp(command, "diff") == 0)
        gate.figures = (struct figures){
            {DRY_FIELDS_OF(diff_rows), dry_diff_get_fields(DRY_DIFF_ROW)}, 2};
    else
        gate.figures =
            (struct figures){{DRY_FIELDS_OF(explain_rows), dry_state_get_fields()}, 2};
    return gate;
}

int
figures_check(const char *command, const struct gate_values *values, bool prints_json)
{
    struct gate gate = make_gate(command, NULL, values);
    return gate_check(&gate, prints_json);
}

/* --- explain ------------------------------------------------------------------------------ */

#define SOURCE_BYTES 512

/* Point the gate's message at the source line that holds most, if its frame is known. */
static void
find_source(const struct explain_report *r, struct gate *gate, char text[SOURCE_BYTES])
{
    size_t count, length;
    const struct dry_owner *owners = dry_owners_get(r->view->owners, &count);
    if (count == 0 || owners[0].frame == DRY_NONE)
        return;
    const struct dry_frame *f = &dry_trace_get_view(r->trace)->frames[owners[0].frame];
    const char *file = dry_trace_string(r->trace, f->file, &length);
    if (!file || length == 0)
        return;
    term_make_printable(text, SOURCE_BYTES, file, length);
    gate->source = text;
    gate->line = f->line;
}

int
figures_judge_explain(const struct explain_report *r, const struct gate_values *values,
                      int code)
{
    const struct dry_peak *peaks = dry_timeline_get_view(r->timeline)->peaks;
    struct explain_figures figures = {peaks[DRY_CURVE_RESERVED].bytes,
                                      peaks[DRY_CURVE_ACTIVE].bytes, r->view->short_bytes,
                                      r->view->oom_count};
    char source[SOURCE_BYTES];
    struct gate gate = make_gate("explain", r->file, values);
    find_source(r, &gate, source);
    struct gate_row row = {.objects = {&figures, r->view->state}};
    return gate_judge(&gate, &row, 1, code);
}

/* --- steps -------------------------------------------------------------------------------- */

/* Raise the numbers of `most` to those of `object`. */
static void
take_most(struct dry_fields fields, const void *object, void *most)
{
    struct dry_field_value value, before;
    for (size_t i = 0; i < fields.count; i++) {
        if (dry_field_get(&fields.list[i], object, &value) &&
            (!dry_field_get(&fields.list[i], most, &before) ||
             value.number > before.number))
            dry_field_set(&fields.list[i], most, value.number);
    }
}

int
figures_judge_steps(const struct steps_report *r, const struct gate_values *values,
                    int code)
{
    uint32_t count;
    const struct dry_step *steps = dry_steps_get(r->steps, &count);
    struct dry_step most = {0};
    struct steps_totals totals = steps_report_sum(r);
    struct gate gate = make_gate("steps", r->file, values);
    for (uint32_t i = 0; i < count; i++) {
        take_most(gate.figures.tables[0], &steps[i], &most);
        if (!steps[i].is_partial)
            take_most(gate.figures.tables[1], &steps[i], &most);
    }
    struct gate_row row = {.objects = {&most, &most, &totals}};
    return gate_judge(&gate, &row, 1, code);
}

/* --- diff --------------------------------------------------------------------------------- */

static uint64_t
get_growth(const struct dry_diff_row *row, uint32_t last)
{
    uint64_t before = dry_diff_bytes(row, 0), after = dry_diff_bytes(row, last);
    return after > before ? after - before : 0;
}

int
figures_judge_diff(const struct diff_report *r, const struct gate_values *values,
                   int code)
{
    size_t count;
    const struct dry_diff_row *rows = dry_diff_get_rows(r->diff, &count);
    const struct dry_diff_row *total = dry_diff_get_total(r->diff);
    struct gate gate =
        make_gate("diff", r->subjects[r->subject_count - 1].study->path, values);
    struct dry_diff_row most = *total;
    uint32_t last = (uint32_t)total->cell_count - 1;
    struct diff_figures figures = {.total_spread_bytes = total->spread,
                                   .growth_bytes = get_growth(total, last),
                                   .first_active_bytes = total->cells[0].bytes,
                                   .last_active_bytes = total->cells[last].bytes};
    for (size_t i = 0; i < count; i++) {
        take_most(gate.figures.tables[1], &rows[i], &most);
        uint64_t growth = get_growth(&rows[i], last);
        if (growth > figures.owner_growth_bytes)
            figures.owner_growth_bytes = growth;
    }
    struct gate_row row = {.objects = {&figures, &most}};
    return gate_judge(&gate, &row, 1, code);
}
