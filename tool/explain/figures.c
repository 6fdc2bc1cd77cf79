/* SPDX-License-Identifier: Apache-2.0 */
/* The idea stands in figures.h. A row's values are in the order of the command's kinds. */
#include "explain/figures.h"

#include <string.h>

#include <drystone/timeline.h>

#include "base/command.h"
#include "base/term.h"

static const struct figure_kind explain_kinds[] = {
    {"reserved_peak", FIGURE_BYTES, true}, {"active_peak", FIGURE_BYTES, true},
    {"reserved", FIGURE_BYTES, false},     {"active", FIGURE_BYTES, false},
    {"allocated", FIGURE_BYTES, false},    {"requested", FIGURE_BYTES, false},
    {"rounding", FIGURE_BYTES, false},     {"pending", FIGURE_BYTES, false},
    {"stranded", FIGURE_BYTES, true},      {"releasable", FIGURE_BYTES, false},
    {"private_free", FIGURE_BYTES, false}, {"short", FIGURE_BYTES, true},
    {"ooms", FIGURE_COUNT, true},
};
static const struct figure_kind steps_kinds[] = {
    {"peak", FIGURE_BYTES, true},     {"kept", FIGURE_BYTES, true},
    {"churn", FIGURE_BYTES, true},    {"growth", FIGURE_BYTES, true},
    {"suspects", FIGURE_COUNT, true}, {"steps", FIGURE_COUNT, false},
};
static const struct figure_kind diff_kinds[] = {
    {"spread", FIGURE_BYTES, true},       {"total_spread", FIGURE_BYTES, true},
    {"growth", FIGURE_BYTES, true},       {"owner_growth", FIGURE_BYTES, true},
    {"first_active", FIGURE_BYTES, true}, {"last_active", FIGURE_BYTES, true},
};
#define COUNT_OF(kinds) (sizeof(kinds) / sizeof *(kinds))
_Static_assert(COUNT_OF(explain_kinds) <= GATE_FIGURES_MAX, "a row has room for all");

static struct gate
make_gate(const char *command, const char *file, const struct gate_values *values)
{
    struct gate gate = {.command = command, .file = file, .values = values};
    if (strcmp(command, "explain") == 0) {
        gate.kinds = explain_kinds;
        gate.kind_count = COUNT_OF(explain_kinds);
    } else if (strcmp(command, "steps") == 0) {
        gate.kinds = steps_kinds;
        gate.kind_count = COUNT_OF(steps_kinds);
    } else {
        gate.kinds = diff_kinds;
        gate.kind_count = COUNT_OF(diff_kinds);
    }
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

/* Point at the line of source that holds most, as far as its frame is known. */
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
    const struct dry_state *s = r->view->state;
    const struct dry_peak *peaks = dry_timeline_get_view(r->timeline)->peaks;
    struct gate_row row = {
        .values = {peaks[DRY_CURVE_RESERVED].bytes, peaks[DRY_CURVE_ACTIVE].bytes,
                   s->reserved, s->active, s->allocated, s->requested, s->rounding,
                   s->pending, s->stranded, s->releasable, s->private_free,
                   r->view->short_bytes, r->view->oom_count}};
    char source[SOURCE_BYTES];
    struct gate gate = make_gate("explain", r->file, values);
    find_source(r, &gate, source);
    return gate_judge(&gate, &row, 1, code);
}

/* --- steps -------------------------------------------------------------------------------- */

static uint64_t
larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Count the owners that grow regularly; of them the command's exit code speaks, too. */
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
    uint64_t peak = 0, kept = 0, churn = 0, whole = 0;
    const struct dry_step *steps = dry_steps_get(r->steps, &count);
    for (uint32_t i = 0; i < count; i++) {
        peak = larger(peak, steps[i].peak.bytes);
        if (steps[i].is_partial)
            continue;
        whole++;
        kept = larger(kept, steps[i].kept_bytes);
        churn = larger(churn, steps[i].alloc_bytes);
    }
    struct gate_row row = {.values = {peak, kept, churn,
                                      dry_steps_growth_per_step(r->steps),
                                      count_suspects(r), whole}};
    struct gate gate = make_gate("steps", r->file, values);
    return gate_judge(&gate, &row, 1, code);
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
    struct gate_row row = {.values = {diff_report_spread(r), high - low,
                                      growth_of(totals[0], totals[last]), owner_growth,
                                      totals[0], totals[last]}};
    struct gate gate =
        make_gate("diff", r->subjects[r->subject_count - 1].study->path, values);
    return gate_judge(&gate, &row, 1, code);
}
