/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TOOL_FLEET_JUDGE_H
#define TOOL_FLEET_JUDGE_H

/*
 * Judge the rows of a job together: groups, ranks that differ and at which lines, the
 * timeline, the first failure. The judgement is a pure function of the rows and reads no
 * file.
 *
 * The ranks of a group hold nearly the same: at lines with most of the bytes, they have
 * the same number of allocations or the same bytes. A rank that matches no other, but
 * holds what a group holds, belongs to that group as an outlier. Statistics need at least
 * FLEET_GROUP_MIN ranks in a group. Design and sources: doc/design/fleet.md, robust.h.
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
    uint32_t rank; /* or RANK_UNKNOWN */
    const struct fleet_row *row;
};

enum fleet_use {
    FLEET_USED,
    FLEET_BROKEN,       /* unreadable; its row has the reason */
    FLEET_HOLDS_NONE,   /* no memory of a device */
    FLEET_SAME_CONTENT, /* same bytes as file `other` */
    FLEET_SAME_RANK,    /* `other` of its rank failed or has more events */
};

struct fleet_member {
    enum fleet_use use;
    size_t other; /* file, or FLEET_NONE */
    size_t group; /* FLEET_NONE if not used */
    bool differs; /* some finding is about this file */
};

/* How the rank numbers of a group are distributed. */
enum fleet_layout {
    FLEET_LAYOUT_ONE,   /* a single rank */
    FLEET_LAYOUT_RUN,   /* consecutive among the used ranks */
    FLEET_LAYOUT_EVERY, /* every `stride`-th rank */
    FLEET_LAYOUT_MIXED,
    FLEET_LAYOUT_UNKNOWN, /* some rank is unknown */
};

struct fleet_group {
    size_t *members; /* files, ordered by rank */
    size_t count;
    struct robust active, reserved; /* statistics of the members' peaks */
    size_t largest;                 /* file with the largest reserved peak */
    enum fleet_layout layout;
    uint32_t stride;
    uint32_t top_place; /* line at which the median rank holds most; UINT32_MAX: none */
    uint64_t top_bytes;
};

enum fleet_finding_kind {
    FLEET_FINDING_OOM,          /* ran out of memory; `bytes` were requested */
    FLEET_FINDING_LEAK,         /* grows by `bytes` a step, unlike most of its group */
    FLEET_FINDING_MORE,         /* holds `bytes` at a line, its group `usual` */
    FLEET_FINDING_LESS,         /* the same, but less */
    FLEET_FINDING_PEAK,         /* peak far from its group's, not due to a single line */
    FLEET_FINDING_ALONE,        /* resembles no group, though there are groups */
    FLEET_FINDING_DEVICE,       /* recorded on another device than its rank implies */
    FLEET_FINDING_OTHER_DEVICE, /* holds `bytes` on a second device, unlike most */
    FLEET_FINDING_RETRIES,      /* requests succeeded only on a retry */
    FLEET_FINDING_GROUP,        /* a group's peak is far above those of other groups */
    FLEET_FINDING_GROWS,        /* most ranks of a group grow by `bytes` a step */
};
#define FLEET_FINDING_COUNT 11

struct fleet_finding {
    enum fleet_finding_kind kind;
    size_t file;  /* FLEET_NONE if about a group */
    size_t group; /* group number, or FLEET_NONE */
    uint64_t bytes, usual;
    const char *line; /* owned by a row; "" if none */
};

/* A step, over all ranks that have it. */
struct fleet_step {
    int64_t step; /* 0, 1 ... counted from the first; 0, -1 ... from the last */
    size_t rank_count;
    uint64_t min, median, max;
    size_t max_file;
};

/* A range of ranks without a file, both ends included. */
struct fleet_gap {
    uint32_t from, to;
};

struct fleet_judgement {
    size_t count; /* number of files */
    const struct fleet_rank *ranks;
    struct fleet_member *members;
    size_t used_count;
    struct fleet_lines lines;   /* has a row for each file */
    struct fleet_group *groups; /* ordered by their first rank */
    size_t group_count;
    struct fleet_finding *findings; /* ordered by kind, then by bytes, descending */
    size_t finding_count, finding_capacity;
    struct fleet_step *steps;
    size_t step_count;
    bool is_from_end; /* steps are aligned at the last one */
    struct fleet_gap *gaps;
    size_t gap_count;
    size_t first_failure;    /* file, or FLEET_NONE */
    bool is_first_by_clock;  /* the hosts' clocks tell; false: the lowest failed rank */
    uint32_t devices_a_host; /* rank r is on device r modulo this; 0: all on one */
    bool has_device_rule;
};

/*
 * Judge `count` files, ordered by rank and path. Returns false if memory ran out. The
 * judgement points into `ranks` and their rows. Call fleet_judge_finish() in any case.
 */
bool fleet_judge(struct fleet_judgement *judgement, const struct fleet_rank *ranks,
                 size_t count);
void fleet_judge_finish(struct fleet_judgement *judgement);

/* Return true if some group has enough ranks to compare. */
bool fleet_judge_compares(const struct fleet_judgement *judgement);

/* Return "used", "broken", "empty", "same-content" or "same-rank". */
const char *fleet_use_name(enum fleet_use use);
/* Return "oom", "leak", "more", "less", "peak", "alone", "device" ... */
const char *fleet_finding_name(enum fleet_finding_kind kind);
/* Return "one", "run", "every", "mixed" or "unknown". */
const char *fleet_layout_name(enum fleet_layout layout);

#endif
