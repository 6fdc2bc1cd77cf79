/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_JUDGE_H
#define TOOL_FLEET_JUDGE_H

/*
 * Rows judged together: groups, ranks that differ and by which lines, the timeline, the
 * first failure. The judge is a pure function of rows and looks at no file.
 *
 * A group is ranks that hold alike: by line, the same number of allocations or the same
 * bytes, for most of the bytes. A rank that is like no other, but holds what a group holds,
 * belongs to that group as an outlier. Statistics need FLEET_GROUP_MIN ranks of a group;
 * docs and sources: doc/design/fleet.md, robust.h.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "fleet/fleet_lines.h"
#include "fleet/fleet_row.h"
#include "fleet/robust.h"

#define FLEET_GROUP_MIN 5
#define FLEET_NONE SIZE_MAX

/* A file with its rank and its row. */
struct fleet_rank {
    const char *path;
    uint32_t rank; /* RANK_UNKNOWN */
    const struct fleet_row *row;
};

enum fleet_use {
    FLEET_USED,
    FLEET_BROKEN,       /* its row says why */
    FLEET_HOLDS_NONE,   /* no device's memory */
    FLEET_SAME_CONTENT, /* as file `other` */
    FLEET_SAME_RANK, /* as file `other`, which ran out of memory or holds more events */
};

struct fleet_member {
    enum fleet_use use;
    size_t other; /* FLEET_NONE */
    size_t group; /* FLEET_NONE: not used */
    bool differs; /* a finding is about it */
};

/* How the ranks of a group lie. */
enum fleet_layout {
    FLEET_LAYOUT_ONE,   /* a single rank */
    FLEET_LAYOUT_RUN,   /* no rank of another group in between */
    FLEET_LAYOUT_EVERY, /* every `stride`-th rank */
    FLEET_LAYOUT_MIXED,
    FLEET_LAYOUT_UNKNOWN, /* the ranks are not known */
};

struct fleet_group {
    size_t *members; /* files, by rank */
    size_t count;
    struct robust active, reserved; /* of the peaks */
    size_t largest;                 /* the file with the largest reserved peak */
    enum fleet_layout layout;
    uint32_t stride;
    uint32_t top_place; /* where the median rank holds most; UINT32_MAX: nowhere */
    uint64_t top_bytes;
};

enum fleet_finding_kind {
    FLEET_FINDING_OOM,    /* it ran out of memory: bytes asked for */
    FLEET_FINDING_LEAK,   /* it grows by bytes a step, most of its group does not */
    FLEET_FINDING_MORE,   /* it holds `bytes` at a line, the group `usual` */
    FLEET_FINDING_LESS,   /* likewise, but less */
    FLEET_FINDING_PEAK,   /* its peak is far from the group's, by no one line */
    FLEET_FINDING_ALONE,  /* it is like no group, though there are groups */
    FLEET_FINDING_DEVICE, /* it was recorded on another device than its rank tells */
    FLEET_FINDING_OTHER_DEVICE, /* it holds bytes on a second device, most do not */
    FLEET_FINDING_RETRIES,      /* requests were served on a retry alone */
    FLEET_FINDING_GROUP,        /* a group's peak is far above the other groups' */
    FLEET_FINDING_GROWS,        /* most ranks of a group grow by bytes a step */
};
#define FLEET_FINDING_COUNT 11

struct fleet_finding {
    enum fleet_finding_kind kind;
    size_t file;  /* FLEET_NONE: about a group */
    size_t group; /* FLEET_NONE */
    uint64_t bytes, usual;
    const char *line; /* "": none; a row's */
};

/* A step over all ranks that have it. */
struct fleet_step {
    int64_t step; /* from the first on; from the last on, 0, -1 ... */
    size_t rank_count;
    uint64_t min, median, max;
    size_t max_file;
};

/* Ranks without a file, both ends included. */
struct fleet_gap {
    uint32_t from, to;
};

struct fleet_judgement {
    size_t count; /* of files */
    const struct fleet_rank *ranks;
    struct fleet_member *members;
    size_t used_count;
    struct fleet_lines lines;   /* a row a file */
    struct fleet_group *groups; /* by their first rank */
    size_t group_count;
    struct fleet_finding *findings; /* by kind, the most bytes first */
    size_t finding_count, finding_capacity;
    struct fleet_step *steps;
    size_t step_count;
    bool is_from_end; /* steps are aligned by the last one */
    struct fleet_gap *gaps;
    size_t gap_count;
    size_t first_failure;    /* a file; FLEET_NONE */
    bool is_first_by_clock;  /* by the hosts' clocks; false: the lowest rank of them */
    uint32_t devices_a_host; /* rank r is on device r modulo this; 0: all on one */
    bool has_device_rule;
};

/*
 * Judge `count` files, ordered by rank and path. False: no memory. The judgement points
 * into `ranks` and rows. fleet_judge_finish() is due in any case.
 */
bool fleet_judge(struct fleet_judgement *judgement, const struct fleet_rank *ranks,
                 size_t count);
void fleet_judge_finish(struct fleet_judgement *judgement);

/* Tell whether a group has the ranks that a comparison takes. */
bool fleet_judge_compares(const struct fleet_judgement *judgement);

/* "used", "broken", "empty", "same-content", "same-rank". */
const char *fleet_use_name(enum fleet_use use);
/* "oom", "leak", "more", "less", "peak", "alone", "device" ... */
const char *fleet_finding_name(enum fleet_finding_kind kind);
/* "one", "run", "every", "mixed", "unknown". */
const char *fleet_layout_name(enum fleet_layout layout);

#endif
