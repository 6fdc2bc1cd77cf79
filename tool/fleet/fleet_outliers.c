/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Find ranks that differ from their group, line by line, and groups that differ from
 * others. A group has thousands of lines, so chance outliers are likely. A line must
 * therefore be farther out than a single number would have to be (LINE_FACTOR). It must
 * also matter: differ by 1/MATTERS of the median rank's peak. Cost: O(ranks * lines * log
 * ranks) a group.
 */
#include <stdlib.h>
#include <string.h>

#include "fleet/fleet_inside.h"

#define LINE_FACTOR 6.0 /* deviations, for a line */
#define LINE_PERCENT 10
#define PEAK_FACTOR 5.0 /* deviations, for a peak */
#define PEAK_PERCENT 5
#define MATTERS 50            /* a line must differ by 1/50 of the median peak */
#define LINES_A_RANK 3        /* findings kept for a rank */
#define GROUP_FACTOR 3.5      /* deviations, for the few groups */
#define GROUP_PERCENT 25      /* off the median; FLEET_GROUP_MIN groups or more */
#define FEW_GROUPS_PERCENT 50 /* the same, of three or four groups */
#define FEW_GROUPS_MIN 3
#define SURE_PERCENT 50 /* confidence that memory grows */

/* A walk over the lines of a group's ranks by place, with the findings so far. */
struct scan {
    struct fleet_judgement *j;
    const struct fleet_group *group;
    size_t number;
    size_t *at;       /* index of each member's next held place */
    uint64_t *values; /* bytes at the place, overwritten by robust_find() */
    uint64_t *kept;   /* a copy of `values` in the order of members */
    struct fleet_finding (*findings)[LINES_A_RANK];
    unsigned char *finding_counts;
};

/* --- lines -------------------------------------------------------------------------------- */

static uint64_t
get_weight(const struct fleet_finding *f)
{
    return robust_distance(f->bytes, f->usual);
}

/* Keep the LINES_A_RANK findings of a rank that differ by the most bytes. */
static void
keep_finding(struct scan *s, size_t member, const struct fleet_finding *finding)
{
    struct fleet_finding *findings = s->findings[member];
    size_t count = s->finding_counts[member], at = count;
    while (at > 0 && get_weight(&findings[at - 1]) < get_weight(finding))
        at--;
    if (at == LINES_A_RANK)
        return;
    count += count < LINES_A_RANK;
    for (size_t i = count - 1; i > at; i--)
        findings[i] = findings[i - 1];
    findings[at] = *finding;
    s->finding_counts[member] = (unsigned char)count;
}

static void
compare_place(struct scan *s, uint32_t place)
{
    const struct fleet_group *g = s->group;
    uint64_t least = g->active.median / MATTERS;
    memcpy(s->kept, s->values, g->count * sizeof *s->kept);
    struct robust r = robust_find(s->values, g->count);
    for (size_t i = 0; i < g->count; i++) {
        size_t file = g->members[i];
        if (!robust_is_far(&r, s->kept[i], LINE_FACTOR, LINE_PERCENT, least))
            continue;
        bool is_more = s->kept[i] > r.median;
        if (!is_more && s->j->ranks[file].row->oom.is_there)
            continue; /* a failed rank had not allocated everything */
        struct fleet_finding finding = {.kind = is_more ? FLEET_FINDING_MORE
                                                        : FLEET_FINDING_LESS,
                                        .file = file,
                                        .group = s->number,
                                        .bytes = s->kept[i],
                                        .usual = r.median,
                                        .line = s->j->lines.names[place]};
        keep_finding(s, i, &finding);
    }
}

/* Return the lowest place that some member has not passed; UINT32_MAX at the end. */
static uint32_t
next_place(const struct scan *s)
{
    uint32_t place = UINT32_MAX;
    for (size_t i = 0; i < s->group->count; i++) {
        size_t count;
        const struct fleet_held *held =
            fleet_lines_get(&s->j->lines, s->group->members[i], &count);
        if (s->at[i] < count && held[s->at[i]].place < place)
            place = held[s->at[i]].place;
    }
    return place;
}

static void
scan_lines(struct scan *s)
{
    for (uint32_t place = next_place(s); place != UINT32_MAX; place = next_place(s)) {
        for (size_t i = 0; i < s->group->count; i++) {
            size_t count;
            const struct fleet_held *held =
                fleet_lines_get(&s->j->lines, s->group->members[i], &count);
            bool is_there = s->at[i] < count && held[s->at[i]].place == place;
            s->values[i] = is_there ? held[s->at[i]].bytes : 0;
            s->at[i] += is_there;
        }
        compare_place(s, place);
    }
}

/* --- a group ------------------------------------------------------------------------------ */

static bool
add_line_findings(struct scan *s)
{
    for (size_t i = 0; i < s->group->count; i++) {
        for (size_t k = 0; k < s->finding_counts[i]; k++) {
            if (!fleet_judge_add(s->j, &s->findings[i][k]))
                return false;
        }
    }
    return true;
}

/* Report ranks whose peak is far out, if no line explains it. */
static bool
add_peaks(struct scan *s)
{
    const struct fleet_group *g = s->group;
    for (size_t i = 0; i < g->count; i++) {
        const struct fleet_row *row = s->j->ranks[g->members[i]].row;
        struct fleet_finding finding = {.kind = FLEET_FINDING_PEAK,
                                        .file = g->members[i],
                                        .group = s->number,
                                        .bytes = row->active_peak,
                                        .usual = g->active.median,
                                        .line = ""};
        if (s->finding_counts[i] == 0 && !row->oom.is_there &&
            robust_is_far(&g->active, row->active_peak, PEAK_FACTOR, PEAK_PERCENT, 0) &&
            !fleet_judge_add(s->j, &finding))
            return false;
    }
    return true;
}

static bool
scan_group(struct fleet_judgement *j, size_t number)
{
    const struct fleet_group *g = &j->groups[number];
    struct scan s = {.j = j, .group = g, .number = number};
    if (g->count < FLEET_GROUP_MIN)
        return true;
    s.at = calloc(g->count, sizeof *s.at);
    s.values = calloc(g->count, sizeof *s.values);
    s.kept = calloc(g->count, sizeof *s.kept);
    s.findings = calloc(g->count, sizeof *s.findings);
    s.finding_counts = calloc(g->count, 1);
    bool done = s.at && s.values && s.kept && s.findings && s.finding_counts;
    if (done) {
        scan_lines(&s);
        done = add_line_findings(&s) && add_peaks(&s);
    }
    free(s.at);
    free(s.values);
    free(s.kept);
    free(s.findings);
    free(s.finding_counts);
    return done;
}

/* --- growth ------------------------------------------------------------------------------- */

static bool
grows(const struct fleet_row *row)
{
    return row->growth.bytes_per_step > 0 && row->growth.percent >= SURE_PERCENT;
}

/* Report growth. If most ranks of a group grow, the cause is the program: one finding. */
static bool
add_growth(struct fleet_judgement *j, size_t number)
{
    const struct fleet_group *g = &j->groups[number];
    size_t count = 0, most = FLEET_NONE;
    for (size_t i = 0; i < g->count; i++) {
        const struct fleet_row *row = j->ranks[g->members[i]].row;
        count += grows(row);
        if (grows(row) &&
            (most == FLEET_NONE ||
             row->growth.bytes_per_step > j->ranks[most].row->growth.bytes_per_step))
            most = g->members[i];
    }
    bool is_usual = g->count > 1 && count * 2 > g->count;
    for (size_t i = 0; i < g->count; i++) {
        size_t file = g->members[i];
        const struct fleet_growth *growth = &j->ranks[file].row->growth;
        struct fleet_finding finding = {.kind = is_usual ? FLEET_FINDING_GROWS
                                                         : FLEET_FINDING_LEAK,
                                        .file = is_usual ? FLEET_NONE : file,
                                        .group = number,
                                        .bytes = growth->bytes_per_step,
                                        .line = growth->line};
        bool is_one = is_usual ? file == most : grows(j->ranks[file].row);
        if (is_one && !fleet_judge_add(j, &finding))
            return false;
    }
    return true;
}

/* --- single ranks and groups -------------------------------------------------------------- */

static bool
add_events(struct fleet_judgement *j)
{
    for (size_t i = 0; i < j->count; i++) {
        const struct fleet_row *row = j->ranks[i].row;
        struct fleet_finding finding = {
            .file = i, .group = j->members[i].group, .line = ""};
        if (j->members[i].use != FLEET_USED)
            continue;
        if (row->oom.is_there) {
            finding.kind = FLEET_FINDING_OOM;
            finding.bytes = row->oom.request_bytes;
            finding.line = row->oom.line;
        } else if (row->retries > 0) {
            finding.kind = FLEET_FINDING_RETRIES;
            finding.bytes = row->retries;
        } else {
            continue;
        }
        if (!fleet_judge_add(j, &finding))
            return false;
    }
    return true;
}

/* Report ranks that form their own group while another group is large enough. */
static bool
add_alone(struct fleet_judgement *j)
{
    size_t largest = 0;
    for (size_t g = 0; g < j->group_count; g++)
        largest = j->groups[g].count > largest ? j->groups[g].count : largest;
    for (size_t g = 0; g < j->group_count && largest >= FLEET_GROUP_MIN; g++) {
        const struct fleet_group *group = &j->groups[g];
        struct fleet_finding finding = {.kind = FLEET_FINDING_ALONE,
                                        .file = group->members[0],
                                        .group = g,
                                        .bytes = group->active.median,
                                        .line = ""};
        if (group->count == 1 && !fleet_judge_add(j, &finding))
            return false;
    }
    return true;
}

/* Compare groups by median peak, but not groups of one: any outlier forms one. */
static bool
add_groups(struct fleet_judgement *j)
{
    size_t count = 0;
    uint64_t *values = calloc(j->group_count + 1, sizeof *values);
    if (!values)
        return false;
    for (size_t g = 0; g < j->group_count; g++) {
        if (j->groups[g].count > 1)
            values[count++] = j->groups[g].reserved.median;
    }
    struct robust r = robust_find(values, count);
    free(values);
    bool is_many = count >= FLEET_GROUP_MIN;
    for (size_t g = 0; g < j->group_count && count >= FEW_GROUPS_MIN; g++) {
        struct fleet_finding finding = {.kind = FLEET_FINDING_GROUP,
                                        .file = FLEET_NONE,
                                        .group = g,
                                        .bytes = j->groups[g].reserved.median,
                                        .usual = r.median,
                                        .line = ""};
        bool is_far = robust_is_far(&r, finding.bytes, is_many ? GROUP_FACTOR : 0,
                                    is_many ? GROUP_PERCENT : FEW_GROUPS_PERCENT, 0);
        if (j->groups[g].count > 1 && is_far && finding.bytes > r.median &&
            !fleet_judge_add(j, &finding))
            return false;
    }
    return true;
}

bool
fleet_judge_outliers(struct fleet_judgement *j)
{
    bool done = add_events(j);
    for (size_t g = 0; done && g < j->group_count; g++)
        done = scan_group(j, g) && add_growth(j, g);
    return done && add_alone(j) && add_groups(j);
}
