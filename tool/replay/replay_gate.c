/* SPDX-License-Identifier: Apache-2.0 */
/* The idea stands in replay_gate.h. */
#include "replay/replay_gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"

static const struct figure_kind kinds[] = {
    {"reserved_peak", FIGURE_BYTES, true},  {"reserved_end", FIGURE_BYTES, true},
    {"allocated_peak", FIGURE_BYTES, true}, {"requested_peak", FIGURE_BYTES, true},
    {"capacity", FIGURE_BYTES, true},       {"driver_calls", FIGURE_COUNT, true},
    {"retries", FIGURE_COUNT, true},        {"ooms", FIGURE_COUNT, true},
    {"mismatches", FIGURE_COUNT, true},
};
#define KIND_COUNT (sizeof kinds / sizeof *kinds)
_Static_assert(KIND_COUNT <= GATE_FIGURES_MAX, "a row has room for all");

#define NAME_BYTES 256

static struct gate
make_gate(const char *file, const struct gate_values *values)
{
    return (struct gate){.command = "replay",
                         .file = file,
                         .kinds = kinds,
                         .kind_count = KIND_COUNT,
                         .values = values};
}

int
replay_gate_check(const struct gate_values *values, bool prints_json)
{
    struct gate gate = make_gate(NULL, values);
    return gate_check(&gate, prints_json);
}

/* What the replay of the record did otherwise than the record. */
static uint64_t
count_mismatches(const struct dry_replay_check *c)
{
    if (!c->possible)
        return FIGURE_UNKNOWN;
    return (c->alloc_count - c->alloc_matched) +
           (c->segment_event_count - c->segment_event_matched) +
           (c->segment_count - c->segment_matched) + (c->block_count - c->block_matched);
}

static void
fill_row(const struct replay_report *r, const struct replay_row *from,
         struct gate_row *row)
{
    const struct dry_run *run = &from->run;
    bool has_capacity = r->finds_capacity && run->capacity_bytes > 0;
    const uint64_t values[KIND_COUNT] = {
        run->reserved_peak_bytes,
        run->reserved_end_bytes,
        run->allocated_peak_bytes,
        run->requested_peak_bytes,
        has_capacity ? run->capacity_bytes : FIGURE_UNKNOWN,
        run->driver_calls,
        (uint64_t)run->stats.num_alloc_retries,
        run->oom || run->stats.num_ooms > 0,
        count_mismatches(dry_replay_get_check(r->replay)),
    };
    memcpy(row->values, values, sizeof values);
}

int
replay_gate_judge(const struct replay_report *r, const struct gate_values *values,
                  int code)
{
    struct gate gate = make_gate(r->file, values);
    struct gate_row *rows = calloc(r->row_count + 1, sizeof *rows);
    char(*names)[NAME_BYTES] = calloc(r->row_count + 1, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; rows && names && i < r->row_count; i++) {
        if (r->rows[i].is_extra)
            continue;
        snprintf(names[count], NAME_BYTES, "%s%s%s",
                 r->has_places ? r->rows[i].run.place : "", r->has_places ? ": " : "",
                 r->rows[i].label);
        fill_row(r, &r->rows[i], &rows[count]);
        rows[count].of = names[count];
        count++;
    }
    if (rows && names)
        code = gate_judge(&gate, rows, count, code);
    else
        code = report_failure("replay", r->file, EXIT_MACHINE, "no memory");
    free(rows);
    free(names);
    return code;
}
