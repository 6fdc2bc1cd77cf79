/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_ROW_H
#define TOOL_FLEET_ROW_H

/*
 * A row: the summary of a rank's file, a few kB of JSON whatever the file's size. Judging
 * uses rows alone, so a row may be stored, and made on another machine.
 *
 *     char *text = fleet_row_make(path, memory_bytes_max);
 *     struct fleet_row row;
 *     if (fleet_row_read(text, strlen(text), &row, &err) == DRY_OK)
 *         use(&row);
 *     fleet_row_finish(&row);
 *
 * A row that is read back is hostile input: fleet_row_read() checks every value. Its
 * schema, FLEET_ROW_SCHEMA, is in doc/design/fleet.md.
 *
 * The moment of a row is the first out-of-memory, else the peak of active bytes, as in
 * `drystone explain`.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/cause.h>
#include <drystone/explanation.h>
#include <drystone/field.h>
#include <drystone/state.h>
#include <drystone/status.h>

#define FLEET_ROW_SCHEMA "drystone.fleet.row/2"
#define FLEET_LINES_MAX 64 /* lines of a row */
#define FLEET_STEPS_MAX 256
#define FLEET_OTHERS_MAX 16

enum fleet_row_state {
    FLEET_ROW_FINE,
    FLEET_ROW_UNREADABLE, /* the file cannot be read; `why` tells the reason */
    FLEET_ROW_EMPTY,      /* no memory of a device in the file */
};

/* A line of source, and what its allocations hold at the moment of the row. */
struct fleet_line {
    const char *name;     /* "models.py:174 update_nodes" */
    const char *function; /* "models.py update_nodes"; `name` if line is 0 */
    uint32_t line;        /* 0 if the owner is not a line */
    uint64_t bytes, count;
};

/* Another device in the same file. */
struct fleet_other {
    uint32_t device;
    uint64_t reserved_bytes; /* at the end of the recording */
};

/* The line whose memory grows most from step to step. */
struct fleet_growth {
    const char *line;
    uint64_t bytes_per_step;
    uint32_t percent; /* confidence, in percent */
};

/* The first out-of-memory. */
struct fleet_oom {
    bool is_there, has_time;
    uint64_t time_us; /* the host's clock, in microseconds */
    uint64_t request_bytes, device_free_bytes, short_bytes;
    const char *line; /* the line that requested; "" if unknown */
    enum dry_pass pass;
    uint64_t step; /* complete steps before the failure */
};

struct fleet_row {
    enum fleet_row_state state;
    const char *why; /* reason of a state other than FINE */
    uint64_t file_bytes, hash;
    uint32_t device;
    bool is_simulated;
    bool begins_cold; /* nothing was allocated before the recording */
    uint64_t event_count;
    bool has_time;
    uint64_t first_us, last_us;

    uint64_t reserved_peak, active_peak, allocated_peak;
    struct dry_state at; /* the moment; its sums alone */
    uint64_t retries, oom_count;
    struct fleet_oom oom;
    enum dry_cause cause;
    uint32_t confidence; /* in percent */
    enum dry_trust trust;
    bool is_checked, is_exact; /* results of the self-check */
    const char *conf;          /* PYTORCH_CUDA_ALLOC_CONF */

    uint64_t step_count; /* complete steps, plus one that ran out of memory */
    uint64_t first_peak; /* number of the step of peaks[0] */
    size_t peak_count;
    uint64_t *peaks; /* active bytes of each step */
    uint64_t growth_per_step;
    struct fleet_growth growth; /* bytes_per_step is 0 if nothing grows */

    size_t line_count;
    struct fleet_line *lines; /* largest first */
    uint64_t rest_bytes;      /* bytes of lines that are not listed */
    uint64_t category_bytes[DRY_CATEGORY_COUNT];
    size_t other_count;
    struct fleet_other *others; /* at most FLEET_OTHERS_MAX */

    char *texts; /* owns the texts of the row */
};

/* The members of struct fleet_row: the head of every row, and the figures of a fine one; the
   members of its parts. Rows are written and read by these, reports written. */
extern const struct dry_fields fleet_head_fields, fleet_row_fields, fleet_oom_fields,
    fleet_growth_fields, fleet_line_fields, fleet_other_fields;

/*
 * Read the file at `path` and make its row; if the file is faulty, the row tells why. The
 * caller frees the text. Returns NULL if memory ran out. Thread-safe: many rows may be
 * made at once. Each uses at most `memory_bytes_max` for its trace.
 */
char *fleet_row_make(const char *path, uint64_t memory_bytes_max);

/* Make the row of a file that cannot be read because of `why`. NULL: memory ran out. */
char *fleet_row_make_unreadable(const char *why);

/* Read a row. Returns FORMAT if it is invalid. Call fleet_row_finish() in any case. */
enum dry_status fleet_row_read(const char *text, size_t length, struct fleet_row *row,
                               struct dry_error *err);
void fleet_row_finish(struct fleet_row *row);

#endif
