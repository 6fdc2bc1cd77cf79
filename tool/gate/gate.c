/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The idea is in gate.h. Conditions are parsed twice: before the work to check them, and
 * afterwards to judge.
 */
#include "gate/gate.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/json_out.h"
#include "base/report.h"
#include "base/term.h"
#include "gate/gate_file.h"
#include "gate/gate_note.h"

/* The increase over a baseline that each watched figure may have by default: 1 %. */
#define TOLERANCE_HUNDREDTHS 100u

struct judge {
    const struct gate *gate;
    struct gate_baseline baseline;
    enum gate_forge forge;
    json_t *report; /* for GitLab; else NULL */
    int code;
};

static bool
is_gate(const struct gate_values *values)
{
    return values->fail_if.count > 0 || values->baseline;
}

int
gate_check(const struct gate *gate, bool prints_json)
{
    const struct gate_values *v = gate->values;
    enum gate_forge forge = gate_forge_find(v->annotate);
    char why[CONDITION_WHY_BYTES];
    for (size_t i = 0; i < v->fail_if.count; i++) {
        struct condition c;
        const char *text = v->fail_if.values[i];
        if (!condition_parse(text, &gate->figures, &c, why))
            return report_usage(gate->command, "--fail-if '%s': %s", text, why);
        if (c.is_of_baseline && !v->baseline)
            return report_usage(gate->command, "--fail-if '%s': no --baseline is given",
                                text);
    }
    if (forge == GATE_FORGE_BAD)
        return report_usage(gate->command, "--annotate %s: expected github or gitlab",
                            v->annotate);
    if (forge == GATE_FORGE_GITLAB && prints_json)
        return report_usage(gate->command,
                            "--annotate gitlab is another form of output than --json");
    struct gate_baseline baseline;
    int code = gate_baseline_open(gate, &baseline);
    gate_baseline_close(&baseline);
    return code;
}

bool
gate_takes_output(const struct gate_values *values)
{
    return gate_forge_find(values->annotate) == GATE_FORGE_GITLAB;
}

/* --- findings ----------------------------------------------------------------------------- */

#define VALUE_BYTES 64
#define TEXT_BYTES 512

/* Write a value as "71.20 GiB (76450000000 bytes)", or as a count. */
static const char *
write_value(enum dry_field_unit unit, uint64_t value, char text[VALUE_BYTES])
{
    char number[TERM_NUMBER_BYTES];
    if (unit != DRY_UNIT_BYTES)
        snprintf(text, VALUE_BYTES, "%" PRIu64, value);
    else
        snprintf(text, VALUE_BYTES, "%s (%" PRIu64 " bytes)",
                 term_format_bytes(value, number), value);
    return text;
}

/* Report to standard error, and to the forge, that a condition holds. */
static void
add_finding(struct judge *j, const char *figure, const char *of, const char *text)
{
    const struct gate *gate = j->gate;
    report_failure(gate->command, gate->file, EXIT_FOUND, "%s", text);
    if (j->code == EXIT_FINE)
        j->code = EXIT_FOUND;
    if (j->forge == GATE_FORGE_GITHUB)
        gate_note_github(gate, text);
    if (j->forge == GATE_FORGE_GITLAB &&
        (!j->report || !gate_note_gitlab(gate, j->report, figure, of, text)))
        j->code = report_failure(gate->command, gate->file, EXIT_MACHINE,
                                 "no memory for the annotations");
}

/* Judge a condition on one row. `given` is its text, NULL for --baseline's default. */
static void
judge_row(struct judge *j, const struct condition *c, const char *given,
          const struct gate_row *row)
{
    const struct gate *gate = j->gate;
    enum dry_field_unit unit = c->figure.field->unit;
    uint64_t value = figure_get(&c->figure, row->objects[c->figure.table]), baseline = 0;
    char text[TEXT_BYTES], a[VALUE_BYTES], b[VALUE_BYTES], name[FIGURE_NAME_BYTES];
    figure_write_name(&c->figure, name);
    const char *quote = row->of ? "'" : "", *of = row->of ? row->of : "";
    if (c->is_of_baseline)
        baseline = gate_baseline_get(&j->baseline, row->of, name);
    bool has_both = value != FIGURE_UNKNOWN && baseline != FIGURE_UNKNOWN;
    if (!has_both && !given)
        return; /* not named in a condition: ignore it */
    if (!has_both) {
        j->code = report_failure(
            gate->command, value == FIGURE_UNKNOWN ? gate->file : gate->values->baseline,
            EXIT_INPUT, "%s%s%s%s%s is not known, and --fail-if '%s' needs it", name,
            row->of ? " of " : "", quote, of, quote, given);
        return;
    }
    if (!condition_holds(c, value, baseline))
        return;
    int used =
        snprintf(text, sizeof text, "%s%s%s%s%s is %s: ", name, row->of ? " of " : "",
                 quote, of, quote, write_value(unit, value, a));
    size_t at = used < TEXT_BYTES ? (size_t)used : TEXT_BYTES - 1;
    if (given)
        snprintf(text + at, sizeof text - at, "--fail-if '%s'%s%s", given,
                 c->is_of_baseline ? ", the baseline is " : "",
                 c->is_of_baseline ? write_value(unit, baseline, b) : "");
    else
        snprintf(text + at, sizeof text - at, "over 1 %% more than the baseline, %s",
                 write_value(unit, baseline, b));
    add_finding(j, name, row->of, text);
}

static void
judge_condition(struct judge *j, const struct condition *c, const char *given,
                const struct gate_row *rows, size_t row_count)
{
    if (c->is_of_baseline && j->baseline.is_new)
        return;
    for (size_t i = 0; i < row_count; i++)
        judge_row(j, c, given, &rows[i]);
}

static void
judge_all(struct judge *j, const struct gate_row *rows, size_t row_count)
{
    const struct gate *gate = j->gate;
    const struct gate_values *v = gate->values;
    bool has_own = false;
    for (size_t i = 0; i < v->fail_if.count; i++) {
        struct condition c;
        char why[CONDITION_WHY_BYTES];
        const char *text = v->fail_if.values[i];
        if (!condition_parse(text, &gate->figures, &c, why))
            continue; /* gate_check() refused it */
        has_own |= c.is_of_baseline;
        judge_condition(j, &c, text, rows, row_count);
    }
    for (struct figure f = {0};
         v->baseline && !has_own && figures_next(&gate->figures, &f);) {
        struct condition c = {.figure = f,
                              .relation = RELATION_ABOVE,
                              .is_of_baseline = true,
                              .percent_hundredths = TOLERANCE_HUNDREDTHS};
        if (f.field->is_worse_above)
            judge_condition(j, &c, NULL, rows, row_count);
    }
}

int
gate_judge(const struct gate *gate, const struct gate_row *rows, size_t row_count,
           int code)
{
    if (!is_gate(gate->values) || (code != EXIT_FINE && code != EXIT_FOUND))
        return code;
    struct judge j = {.gate = gate, .forge = gate_forge_find(gate->values->annotate)};
    code = gate_baseline_open(gate, &j.baseline);
    if (code != EXIT_FINE)
        return code;
    if (j.forge == GATE_FORGE_GITLAB)
        j.report = json_array();
    judge_all(&j, rows, row_count);
    gate_baseline_close(&j.baseline);
    if (j.forge == GATE_FORGE_GITLAB) {
        code = json_out_print(gate->command, j.report);
        j.code = code == EXIT_FINE ? j.code : code;
    }
    if (j.code == EXIT_FINE && j.baseline.is_new)
        j.code = gate_baseline_write(gate, rows, row_count);
    return j.code;
}
