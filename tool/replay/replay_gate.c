/* SPDX-License-Identifier: Apache-2.0 */
/* The figures as a table, filled from the rows of a report, see replay_gate.h. */
#include "replay/replay_gate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "base/report.h"

struct own_figures {
    bool is_checked;
    uint64_t mismatches;
};
static const struct dry_field own_rows[] = {
    DRY_FIELD_OF(struct own_figures, "mismatches", U64, COUNT, mismatches, DRY_KNOWN_IF,
                 offsetof(struct own_figures, is_checked), true,
                 "what the self-check found otherwise than recorded"),
};

#define NAME_BYTES 256

static struct gate
make_gate(const char *file, const struct gate_values *values)
{
    return (struct gate){
        .command = "replay",
        .file = file,
        .figures = {{dry_run_get_fields(DRY_RUN_WHOLE), DRY_FIELDS_OF(own_rows)}, 2},
        .values = values};
}

int
replay_gate_check(const struct gate_values *values, bool prints_json)
{
    struct gate gate = make_gate(NULL, values);
    return gate_check(&gate, prints_json);
}

/* Count what the replay of the record did differently from the record. */
static struct own_figures
count_mismatches(const struct dry_replay_check *c)
{
    uint64_t count = (c->alloc_count - c->alloc_matched) +
                     (c->segment_event_count - c->segment_event_matched) +
                     (c->segment_count - c->segment_matched) +
                     (c->block_count - c->block_matched);
    return (struct own_figures){c->possible, count};
}

int
replay_gate_judge(const struct replay_report *r, const struct gate_values *values,
                  int code)
{
    struct gate gate = make_gate(r->file, values);
    struct own_figures own = count_mismatches(dry_replay_get_check(r->replay));
    struct gate_row *rows = calloc(r->row_count + 1, sizeof *rows);
    char(*names)[NAME_BYTES] = calloc(r->row_count + 1, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; rows && names && i < r->row_count; i++) {
        if (r->rows[i].is_extra)
            continue;
        snprintf(names[count], NAME_BYTES, "%s%s%s",
                 r->has_places ? r->rows[i].run.place : "", r->has_places ? ": " : "",
                 r->rows[i].label);
        rows[count] = (struct gate_row){names[count], {&r->rows[i].run, &own}};
        count++;
    }
    if (rows && names)
        code = gate_judge(&gate, rows, count, code);
    else
        code = report_memory("replay", r->file);
    free(rows);
    free(names);
    return code;
}
