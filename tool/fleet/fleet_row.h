/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_ROW_H
#define TOOL_FLEET_ROW_H

/*
 * A row: what is kept of a rank's file, a few kB of JSON, whatever the file's size. All
 * judging is made of rows alone, so a row may be stored, and made elsewhere.
 *
 *     char *text = fleet_row_make(path, memory_bytes_max);
 *     struct fleet_row row;
 *     if (fleet_row_read(text, strlen(text), &row, &err) == DRY_OK)
 *         use(&row);
 *     fleet_row_finish(&row);
 *
 * A row that is read back is hostile input: fleet_row_read() checks every value. The schema,
 * drystone.fleet.row/1, stands in doc/design/fleet.md.
 *
 * The moment of a row is the first out-of-memory, else the peak of the active curve, as
 * `drystone explain` has it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <drystone/cause.h>
#include <drystone/explanation.h>
#include <drystone/status.h>

#define FLEET_LINES_MAX 64 /* of a row */
#define FLEET_STEPS_MAX 256
#define FLEET_OTHERS_MAX 16

enum fleet_row_state {
    FLEET_ROW_FINE,
    FLEET_ROW_UNREADABLE, /* the file cannot be read, see `why` */
    FLEET_ROW_EMPTY,      /* it was read, and holds no device's memory */
};

/* A line of source and what it holds at the moment. */
struct fleet_line {
    const char *name;     /* "models.py:174 update_nodes" */
    const char *function; /* "models.py update_nodes"; without a line, the name */
    uint32_t line;        /* 0: the owner is no line */
    uint64_t bytes, count;
};

/* Another device of the same file. */
struct fleet_other {
    uint32_t device;
    uint64_t reserved_bytes; /* at the end */
};

/* The largest growth from step to step. */
struct fleet_growth {
    const char *line;
    uint64_t bytes_per_step;
    uint32_t percent; /* how sure that is */
};

/* The first out-of-memory. */
struct fleet_oom {
    bool is_there, has_time;
    uint64_t time_us; /* by the clock of the host */
    uint64_t request_bytes, device_free_bytes, short_bytes;
    const char *line; /* that asked; "": unknown */
    enum dry_pass pass;
    uint64_t step; /* whole steps done before it */
};

struct fleet_row {
    enum fleet_row_state state;
    const char *why; /* of a state other than FINE */
    uint64_t file_bytes, hash;
    uint32_t device;
    bool is_simulated;
    bool begins_cold; /* nothing was alive before the recording */
    uint64_t event_count;
    bool has_time;
    uint64_t first_us, last_us;

    uint64_t reserved_peak, active_peak, allocated_peak;
    /* At the moment; as struct dry_state has them. */
    uint64_t reserved, active, allocated, rounding, pending, releasable, stranded;
    uint64_t private_free;
    uint64_t retries, oom_count;
    struct fleet_oom oom;
    enum dry_cause cause;
    uint32_t confidence; /* percent */
    enum dry_trust trust;
    bool is_checked, is_exact; /* the self-check */
    const char *conf;          /* PYTORCH_CUDA_ALLOC_CONF */

    uint64_t step_count; /* whole steps, and a last one that ran out of memory */
    uint64_t first_peak; /* the step of peaks[0] */
    size_t peak_count;
    uint64_t *peaks; /* active bytes */
    uint64_t growth_per_step;
    struct fleet_growth growth; /* bytes_per_step 0: none */

    size_t line_count;
    struct fleet_line *lines; /* the largest first */
    uint64_t rest_bytes;      /* of lines that are not listed */
    uint64_t category_bytes[DRY_CATEGORY_COUNT];
    size_t other_count;
    struct fleet_other others[FLEET_OTHERS_MAX];

    char *texts; /* where the texts lie */
};

/*
 * Read the file at `path` and make its row; what is wrong with the file stands in the row.
 * NULL: no memory. The text is the caller's to free. Any number may be made at once; each
 * takes `memory_bytes_max` at most for its trace.
 */
char *fleet_row_make(const char *path, uint64_t memory_bytes_max);

/* Make the row of a file that cannot be read, because of `why`. NULL: no memory. */
char *fleet_row_make_unreadable(const char *why);

/* Read a row. FORMAT: it is none. `row` is there to be finished in any case. */
enum dry_status fleet_row_read(const char *text, size_t length, struct fleet_row *row,
                               struct dry_error *err);
void fleet_row_finish(struct fleet_row *row);

/* "fine", "unreadable", "empty". */
const char *fleet_row_state_name(enum fleet_row_state state);

#endif
