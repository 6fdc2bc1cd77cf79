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
struct steps_figures {
    uint64_t peak_bytes, kept_bytes, churn_bytes, growth_bytes, suspects, steps;
};
struct diff_figures {
    uint64_t spread_bytes, total_spread_bytes, growth_bytes, owner_growth_bytes;
    uint64_t first_active_bytes, last_active_bytes;
};

#define FIGURE(type, name, unit, is_worse, meaning)                                      \
    DRY_FIELD_OF(type, #name, U64, unit, name, DRY_KNOWN_ALWAYS, 0, is_worse, meaning)
#define EXPLAIN(...) FIGURE(struct explain_figures, __VA_ARGS__)
#define STEPS(...) FIGURE(struct steps_figures, __VA_ARGS__)
#define DIFF(...) FIGURE(struct diff_figures, __VA_ARGS__)

static const struct dry_field explain_rows[] = {
    EXPLAIN(reserved_peak_bytes, BYTES, true, "reserved at the peak of the record"),
    EXPLAIN(active_peak_bytes, BYTES, true, "active at the peak of the record"),
    EXPLAIN(short_bytes, BYTES, true, "what the device lacks for the request alone"),
    EXPLAIN(ooms, COUNT, true, "out-of-memory errors of the device"),
};
static const struct dry_field steps_rows[] = {
    STEPS(peak_bytes, BYTES, true, "the highest peak of a step"),
    STEPS(kept_bytes, BYTES, true, "the most that a whole step keeps"),
    STEPS(churn_bytes, BYTES, true, "the most that a whole step allocates"),
    STEPS(growth_bytes, BYTES, true, "growth a step"),
    STEPS(suspects, COUNT, true, "owners that grow regularly"),
    STEPS(steps, COUNT, false, "whole steps"),
};
static const struct dry_field diff_rows[] = {
    DIFF(spread_bytes, BYTES, true, "the largest difference of totals or of an owner"),
    DIFF(total_spread_bytes, BYTES, true, "the largest difference of totals"),
    DIFF(growth_bytes, BYTES, true, "what the last has more than the first"),
    DIFF(owner_growth_bytes, BYTES, true, "the largest growth of an owner"),
    DIFF(first_active_bytes, BYTES, true, "active bytes of the first"),
    DIFF(last_active_bytes, BYTES, true, "active bytes of the last"),
};

/* `tables` has the command's own table already and lives as long as the gate. */
static struct gate
make_gate(const char *command, const char *file, const struct gate_values *values,
          struct dry_fields tables[GATE_TABLES_MAX])
{
    struct gate gate = {
        .command = command, .file = file, .figures = {tables, 1}, .values = values};
    if (strcmp(command, "explain") == 0) {
        tables[0] = DRY_FIELDS_OF(explain_rows);
        tables[1] = dry_state_get_fields();
        gate.figures.table_count = 2;
    } else if (strcmp(command, "steps") == 0) {
        tables[0] = DRY_FIELDS_OF(steps_rows);
    } else {
        tables[0] = DRY_FIELDS_OF(diff_rows);
    }
    return gate;
}

int
figures_check(const char *command, const struct gate_values *values, bool prints_json)
{
    struct dry_fields tables[GATE_TABLES_MAX];
    struct gate gate = make_gate(command, NULL, values, tables);
    return gate_check(&gate, prints_json);
}

/* Judge one object of the command's own table, and `state`, explain's. */
static int
judge(struct gate *gate, const void *own, const struct dry_state *state, int code)
{
    struct gate_row row = {.objects = {own, state}};
    return gate_judge(gate, &row, 1, code);
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
    struct dry_fields tables[GATE_TABLES_MAX];
    struct gate gate = make_gate("explain", r->file, values, tables);
    find_source(r, &gate, source);
    return judge(&gate, &figures, r->view->state, code);
}

/* --- steps -------------------------------------------------------------------------------- */

static uint64_t
larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Count the owners that grow regularly, by the threshold of the command's exit code. */
static uint64_t
count_suspects(const struct steps_report *r)
{
    size_t count;
    uint64_t regular = 0;
    const struct dry_growth *rows = dry_steps_get_growth(r->steps, &count);
    for (size_t i = 0; i < count; i++)
        regular += rows[i].confidence >= 0.5;
    return regular;
}

int
figures_judge_steps(const struct steps_report *r, const struct gate_values *values,
                    int code)
{
    uint32_t count;
    struct steps_figures f = {.growth_bytes = dry_steps_growth_per_step(r->steps),
                              .suspects = count_suspects(r)};
    const struct dry_step *steps = dry_steps_get(r->steps, &count);
    for (uint32_t i = 0; i < count; i++) {
        f.peak_bytes = larger(f.peak_bytes, steps[i].peak.bytes);
        if (steps[i].is_partial)
            continue;
        f.steps++;
        f.kept_bytes = larger(f.kept_bytes, steps[i].kept_bytes);
        f.churn_bytes = larger(f.churn_bytes, steps[i].alloc_bytes);
    }
    struct dry_fields tables[GATE_TABLES_MAX];
    struct gate gate = make_gate("steps", r->file, values, tables);
    return judge(&gate, &f, NULL, code);
}

/* --- diff --------------------------------------------------------------------------------- */

static uint64_t
growth_of(uint64_t first, uint64_t last)
{
    return last > first ? last - first : 0;
}

int
figures_judge_diff(const struct diff_report *r, const struct gate_values *values,
                   int code)
{
    size_t count, row_count;
    uint64_t low = UINT64_MAX, high = 0, owner_growth = 0;
    const uint64_t *totals = dry_diff_get_totals(r->diff, &count);
    const struct dry_diff_row *rows = dry_diff_get_rows(r->diff, &row_count);
    uint32_t last = (uint32_t)count - 1;
    for (size_t i = 0; i < count; i++) {
        low = totals[i] < low ? totals[i] : low;
        high = larger(high, totals[i]);
    }
    for (size_t i = 0; i < row_count; i++)
        owner_growth = larger(owner_growth, growth_of(dry_diff_bytes(&rows[i], 0),
                                                      dry_diff_bytes(&rows[i], last)));
    struct diff_figures figures = {
        diff_report_spread(r), high - low, growth_of(totals[0], totals[last]),
        owner_growth,          totals[0],  totals[last]};
    struct dry_fields tables[GATE_TABLES_MAX];
    struct gate gate =
        make_gate("diff", r->subjects[r->subject_count - 1].study->path, values, tables);
    return judge(&gate, &figures, NULL, code);
}
