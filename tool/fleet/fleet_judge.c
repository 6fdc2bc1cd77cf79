/* SPDX-License-Identifier: Apache-2.0 */
/* The idea is in fleet_judge.h. Each step has a file of its own, see fleet_inside.h. */
#include "fleet/fleet_judge.h"

#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "fleet/fleet_inside.h"

const char *
fleet_use_name(enum fleet_use use)
{
    static const char *const names[] = {"used", "broken", "empty", "same-content",
                                        "same-rank"};
    return names[use];
}

const char *
fleet_finding_name(enum fleet_finding_kind kind)
{
    static const char *const names[] = {"oom",     "leak",  "more",   "less",
                                        "peak",    "alone", "device", "other-device",
                                        "retries", "group", "grows"};
    _Static_assert(sizeof names / sizeof(const char *) == FLEET_FINDING_COUNT,
                   "a name for each");
    return names[kind];
}

const char *
fleet_layout_name(enum fleet_layout layout)
{
    static const char *const names[] = {"one", "run", "every", "mixed", "unknown"};
    return names[layout];
}

bool
fleet_judge_add(struct fleet_judgement *j, const struct fleet_finding *finding)
{
    struct fleet_finding *more =
        grow(j->findings, j->finding_count, &j->finding_capacity, sizeof *more);
    if (!more)
        return false;
    j->findings = more;
    j->findings[j->finding_count++] = *finding;
    if (finding->file != FLEET_NONE)
        j->members[finding->file].differs = true;
    return true;
}

static bool
match_lines(struct fleet_judgement *j)
{
    const struct fleet_row **rows = calloc(j->count + 1, sizeof *rows);
    for (size_t i = 0; rows && i < j->count; i++)
        rows[i] = j->members[i].use == FLEET_USED ? j->ranks[i].row : NULL;
    bool done = rows && fleet_lines_match(&j->lines, rows, j->count);
    free(rows);
    return done;
}

static uint64_t
get_weight(const struct fleet_finding *f)
{
    return robust_distance(f->bytes, f->usual);
}

static int
compare_findings(const void *a, const void *b)
{
    const struct fleet_finding *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    if (get_weight(x) != get_weight(y))
        return get_weight(x) > get_weight(y) ? -1 : 1;
    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return strcmp(x->line, y->line);
}

bool
fleet_judge(struct fleet_judgement *j, const struct fleet_rank *ranks, size_t count)
{
    *j = (struct fleet_judgement){
        .count = count, .ranks = ranks, .first_failure = FLEET_NONE};
    j->members = calloc(count + 1, sizeof *j->members);
    if (!j->members)
        return false;
    for (size_t i = 0; i < count; i++)
        j->members[i] = (struct fleet_member){.other = FLEET_NONE, .group = FLEET_NONE};
    bool done = fleet_judge_use(j) && match_lines(j) && fleet_judge_groups(j) &&
                fleet_judge_outliers(j) && fleet_judge_steps(j) && fleet_judge_devices(j);
    if (done && j->finding_count > 1)
        qsort(j->findings, j->finding_count, sizeof *j->findings, compare_findings);
    return done;
}

void
fleet_judge_finish(struct fleet_judgement *j)
{
    for (size_t i = 0; i < j->group_count; i++)
        free(j->groups[i].members);
    free(j->groups);
    free(j->members);
    free(j->findings);
    free(j->steps);
    free(j->gaps);
    fleet_lines_finish(&j->lines);
    *j = (struct fleet_judgement){0};
}

bool
fleet_judge_compares(const struct fleet_judgement *j)
{
    for (size_t g = 0; g < j->group_count; g++) {
        if (j->groups[g].count >= FLEET_GROUP_MIN)
            return true;
    }
    return false;
}
