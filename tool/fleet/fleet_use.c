/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Choose the files that count. If the bytes of files are equal, the first counts. If a
 * rank has several files, the first that ran out of memory counts, else the one with most
 * events, else the last by name.
 */
#include <stdlib.h>

#include "fleet/fleet_inside.h"
#include "fleet/rank_name.h"

static void
judge_states(struct fleet_judgement *j)
{
    for (size_t i = 0; i < j->count; i++) {
        enum fleet_row_state state = j->ranks[i].row->state;
        if (state == FLEET_ROW_UNREADABLE)
            j->members[i].use = FLEET_BROKEN;
        else if (state == FLEET_ROW_EMPTY)
            j->members[i].use = FLEET_HOLDS_NONE;
    }
}

/* --- equal bytes -------------------------------------------------------------------------- */

struct content {
    uint64_t hash, bytes;
    size_t file;
};

static int
compare_contents(const void *a, const void *b)
{
    const struct content *x = a, *y = b;
    if (x->hash != y->hash)
        return x->hash < y->hash ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->file > y->file) - (x->file < y->file);
}

static bool
judge_contents(struct fleet_judgement *j)
{
    size_t count = 0, first = 0;
    struct content *contents = calloc(j->count + 1, sizeof *contents);
    if (!contents)
        return false;
    for (size_t i = 0; i < j->count; i++) {
        if (j->members[i].use == FLEET_USED)
            contents[count++] =
                (struct content){j->ranks[i].row->hash, j->ranks[i].row->file_bytes, i};
    }
    qsort(contents, count, sizeof *contents, compare_contents);
    for (size_t i = 1; i < count; i++) {
        if (contents[i].hash != contents[first].hash ||
            contents[i].bytes != contents[first].bytes) {
            first = i;
            continue;
        }
        j->members[contents[i].file].use = FLEET_SAME_CONTENT;
        j->members[contents[i].file].other = contents[first].file;
    }
    free(contents);
    return true;
}

/* --- one rank ----------------------------------------------------------------------------- */

/* Return true if `b`, later by name, should count instead of `a`. */
static bool
is_better(const struct fleet_row *a, const struct fleet_row *b)
{
    if (a->oom.is_there != b->oom.is_there)
        return b->oom.is_there;
    if (a->oom.is_there)
        return a->oom.has_time && b->oom.has_time && b->oom.time_us < a->oom.time_us;
    return b->event_count >= a->event_count;
}

static void
choose_of_rank(struct fleet_judgement *j, size_t begin, size_t end)
{
    size_t best = FLEET_NONE;
    for (size_t i = begin; i < end; i++) {
        if (j->members[i].use == FLEET_USED &&
            (best == FLEET_NONE || is_better(j->ranks[best].row, j->ranks[i].row)))
            best = i;
    }
    for (size_t i = begin; i < end; i++) {
        if (j->members[i].use == FLEET_USED && i != best) {
            j->members[i].use = FLEET_SAME_RANK;
            j->members[i].other = best;
        }
    }
}

static void
judge_ranks(struct fleet_judgement *j)
{
    for (size_t i = 0, end; i < j->count; i = end) {
        for (end = i + 1; end < j->count && j->ranks[end].rank == j->ranks[i].rank; end++)
            continue;
        if (j->ranks[i].rank != RANK_UNKNOWN)
            choose_of_rank(j, i, end);
    }
}

/* --- gaps --------------------------------------------------------------------------------- */

/* Find ranges of ranks without a file. A broken file counts: its rank is there. */
static bool
find_gaps(struct fleet_judgement *j)
{
    uint32_t next = 0;
    j->gaps = calloc(j->count + 1, sizeof *j->gaps);
    if (!j->gaps)
        return false;
    for (size_t i = 0; i < j->count && j->ranks[i].rank != RANK_UNKNOWN; i++) {
        uint32_t rank = j->ranks[i].rank;
        if (rank > next)
            j->gaps[j->gap_count++] = (struct fleet_gap){next, rank - 1};
        if (rank >= next)
            next = rank + 1;
    }
    return true;
}

bool
fleet_judge_use(struct fleet_judgement *j)
{
    judge_states(j);
    if (!judge_contents(j) || !find_gaps(j))
        return false;
    judge_ranks(j);
    for (size_t i = 0; i < j->count; i++)
        j->used_count += j->members[i].use == FLEET_USED;
    return true;
}
