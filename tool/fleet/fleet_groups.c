/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group the ranks. Each rank joins the first group whose leader holds nearly the same, or
 * leads a new one. Then single ranks that hold most of what a larger group holds join
 * that group as its outliers. Cost: O(ranks * groups * lines), with at most GROUPS_MAX
 * leaders.
 */
#include <stdlib.h>
#include <string.h>

#include "fleet/fleet_inside.h"
#include "fleet/rank_name.h"

#define GROUPS_MAX 256      /* leaders that a rank is compared with */
#define ALIKE_SHARE 0.85    /* share of two ranks' bytes that must be alike to join */
#define COVERED_SHARE 0.6   /* share of a group's bytes that a single rank must hold */
#define CONTAINED_SHARE 0.8 /* the same, of a rank's bytes, if it ran out of memory */
#define JOINED_MIN 8        /* members of a group that single ranks may join */

/* --- comparing two ranks ------------------------------------------------------------------ */

/*
 * Return true if two ranks hold nearly the same at a line: bytes within 1/8, or counts
 * within 1/20 and bytes within a factor of 4.
 */
static bool
is_alike(const struct fleet_held *a, const struct fleet_held *b)
{
    uint64_t bytes = a->bytes > b->bytes ? a->bytes : b->bytes;
    uint64_t less = a->bytes < b->bytes ? a->bytes : b->bytes;
    uint64_t count = a->count > b->count ? a->count : b->count;
    return bytes - less <= bytes / 8 ||
           (robust_distance(a->count, b->count) <= count / 20 && less >= bytes / 4);
}

/* Two ranks compared line by line. Sums are doubles: hostile numbers cannot overflow. */
struct comparison {
    double alike, all;     /* larger bytes of each line */
    double covered, first; /* rank 1's bytes at alike lines, and all */
    double shared, second; /* rank 2's bytes at lines of both, and all */
};

static struct comparison
compare(const struct fleet_held *a, size_t a_count, const struct fleet_held *b,
        size_t b_count)
{
    struct comparison c = {0};
    for (size_t i = 0, k = 0; i < a_count || k < b_count;) {
        bool takes_a = i < a_count && (k == b_count || a[i].place <= b[k].place);
        bool takes_b = k < b_count && (i == a_count || b[k].place <= a[i].place);
        double x = takes_a ? (double)a[i].bytes : 0, y = takes_b ? (double)b[k].bytes : 0;
        bool alike = takes_a && takes_b && is_alike(&a[i], &b[k]);
        double larger = x > y ? x : y;
        c.all += larger;
        c.alike += alike ? larger : 0;
        c.first += x;
        c.covered += alike ? x : 0;
        c.second += y;
        c.shared += takes_a ? y : 0;
        i += takes_a;
        k += takes_b;
    }
    return c;
}

static struct comparison
compare_files(const struct fleet_judgement *j, size_t a, size_t b)
{
    size_t a_count, b_count;
    const struct fleet_held *x = fleet_lines_get(&j->lines, a, &a_count);
    const struct fleet_held *y = fleet_lines_get(&j->lines, b, &b_count);
    return compare(x, a_count, y, b_count);
}

static bool
hold_alike(const struct fleet_judgement *j, size_t a, size_t b)
{
    struct comparison c = compare_files(j, a, b);
    return c.alike >= ALIKE_SHARE * c.all;
}

/* --- the first groups --------------------------------------------------------------------- */

/* Let each rank join a group or lead a new one. leaders[g] is the first file of g. */
static void
lead_or_follow(struct fleet_judgement *j, size_t *leaders)
{
    for (size_t i = 0; i < j->count; i++) {
        struct fleet_member *m = &j->members[i];
        if (m->use != FLEET_USED)
            continue;
        for (size_t g = 0; g < j->group_count && g < GROUPS_MAX && m->group == FLEET_NONE;
             g++) {
            if (hold_alike(j, leaders[g], i))
                m->group = g;
        }
        if (m->group == FLEET_NONE) {
            leaders[j->group_count] = i;
            m->group = j->group_count++;
        }
    }
}

/* --- single ranks ------------------------------------------------------------------------- */

static uint32_t
distance_of_ranks(const struct fleet_judgement *j, size_t a, size_t b)
{
    uint32_t x = j->ranks[a].rank, y = j->ranks[b].rank;
    return x > y ? x - y : y - x;
}

/*
 * Return how well the single rank `file` fits the group of `leader`, from 0 to 1. A rank
 * that ran out of memory had not allocated everything, so it fits if the group has most
 * of its bytes.
 */
static double
fit(const struct fleet_judgement *j, size_t leader, size_t file)
{
    struct comparison c = compare_files(j, leader, file);
    double covered = c.first > 0 ? c.covered / c.first : 0;
    double contained = c.second > 0 ? c.shared / c.second : 0;
    if (covered >= COVERED_SHARE)
        return covered;
    bool is_cut = j->ranks[file].row->oom.is_there && contained >= CONTAINED_SHARE;
    return is_cut ? COVERED_SHARE * contained : 0;
}

/* Find the group that fits best; among equals, that of the nearest rank number. */
static size_t
find_home(const struct fleet_judgement *j, const size_t *leaders, const size_t *sizes,
          size_t file)
{
    double fits[GROUPS_MAX], best_fit = 0;
    size_t best = FLEET_NONE,
           count = j->group_count < GROUPS_MAX ? j->group_count : GROUPS_MAX;
    uint32_t best_distance = UINT32_MAX;
    for (size_t g = 0; g < count; g++) {
        fits[g] = sizes[g] >= JOINED_MIN ? fit(j, leaders[g], file) : 0;
        best_fit = fits[g] > best_fit ? fits[g] : best_fit;
    }
    for (size_t i = 0; i < j->count && best_fit > 0; i++) {
        size_t g = j->members[i].group;
        uint32_t distance = distance_of_ranks(j, i, file);
        if (g < count && fits[g] >= best_fit &&
            (best == FLEET_NONE || distance < best_distance)) {
            best = g;
            best_distance = distance;
        }
    }
    return best;
}

static bool
take_singles_in(struct fleet_judgement *j, const size_t *leaders)
{
    size_t *sizes = calloc(j->group_count + 1, sizeof *sizes);
    size_t *homes = calloc(j->count + 1, sizeof *homes);
    bool done = sizes && homes;
    for (size_t i = 0; done && i < j->count; i++) {
        if (j->members[i].group != FLEET_NONE)
            sizes[j->members[i].group]++;
    }
    for (size_t i = 0; done && i < j->count; i++) {
        size_t g = j->members[i].group;
        homes[i] = g;
        if (g != FLEET_NONE && sizes[g] == 1) {
            size_t home = find_home(j, leaders, sizes, i);
            homes[i] = home != FLEET_NONE ? home : g;
        }
    }
    for (size_t i = 0; done && i < j->count; i++)
        j->members[i].group = homes[i];
    free(sizes);
    free(homes);
    return done;
}

/* --- the groups' figures ------------------------------------------------------------------ */

/* Renumber the remaining groups by their first file, and list their members. */
static bool
list_members(struct fleet_judgement *j)
{
    size_t *numbers = malloc((j->group_count + 1) * sizeof *numbers);
    size_t old_count = j->group_count;
    j->groups = calloc(old_count + 1, sizeof *j->groups);
    if (!numbers || !j->groups) {
        free(numbers);
        j->group_count = 0;
        return false;
    }
    memset(numbers, 0xff, (old_count + 1) * sizeof *numbers);
    j->group_count = 0;
    for (size_t i = 0; i < j->count; i++) {
        struct fleet_member *m = &j->members[i];
        if (m->group == FLEET_NONE)
            continue;
        if (numbers[m->group] == SIZE_MAX)
            numbers[m->group] = j->group_count++;
        m->group = numbers[m->group];
        j->groups[m->group].count++;
    }
    free(numbers);
    for (size_t g = 0; g < j->group_count; g++) {
        j->groups[g].members = calloc(j->groups[g].count, sizeof(size_t));
        if (!j->groups[g].members)
            return false;
        j->groups[g].count = 0;
    }
    for (size_t i = 0; i < j->count; i++) {
        if (j->members[i].group != FLEET_NONE) {
            struct fleet_group *group = &j->groups[j->members[i].group];
            group->members[group->count++] = i;
        }
    }
    return true;
}

static void
find_figures(struct fleet_judgement *j, struct fleet_group *g, uint64_t *values)
{
    for (size_t i = 0; i < g->count; i++)
        values[i] = j->ranks[g->members[i]].row->active_peak;
    g->active = robust_find(values, g->count);
    g->largest = g->members[0];
    for (size_t i = 0; i < g->count; i++) {
        values[i] = j->ranks[g->members[i]].row->reserved_peak;
        if (values[i] > j->ranks[g->largest].row->reserved_peak)
            g->largest = g->members[i];
    }
    g->reserved = robust_find(values, g->count);
}

static uint32_t
find_common_divisor(uint32_t a, uint32_t b)
{
    while (b) {
        uint32_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* Count the used ranks from `first` to `last` in steps of `stride`. */
static size_t
count_between(const struct fleet_judgement *j, uint32_t first, uint32_t last,
              uint32_t stride)
{
    size_t count = 0;
    for (size_t i = 0; i < j->count; i++) {
        uint32_t rank = j->ranks[i].rank;
        count += j->members[i].use == FLEET_USED && rank >= first && rank <= last &&
                 (rank - first) % stride == 0;
    }
    return count;
}

static void
find_layout(const struct fleet_judgement *j, struct fleet_group *g)
{
    uint32_t first = j->ranks[g->members[0]].rank;
    uint32_t last = j->ranks[g->members[g->count - 1]].rank;
    g->stride = 0;
    for (size_t i = 1; i < g->count; i++)
        g->stride = find_common_divisor(j->ranks[g->members[i]].rank - first, g->stride);
    if (last == RANK_UNKNOWN)
        g->layout = FLEET_LAYOUT_UNKNOWN;
    else if (g->count == 1)
        g->layout = FLEET_LAYOUT_ONE;
    else if (count_between(j, first, last, 1) == g->count)
        g->layout = FLEET_LAYOUT_RUN;
    else if (count_between(j, 0, RANK_UNKNOWN - 1, 1) > g->count && g->stride > 1 &&
             count_between(j, first, last, g->stride) == g->count)
        g->layout = FLEET_LAYOUT_EVERY;
    else
        g->layout = FLEET_LAYOUT_MIXED;
}

/* Find the line at which the group holds most, from the member with the median peak. */
static void
find_top(const struct fleet_judgement *j, struct fleet_group *g)
{
    g->top_place = UINT32_MAX;
    for (size_t i = 0; i < g->count && g->top_place == UINT32_MAX; i++) {
        size_t count;
        const struct fleet_held *held = fleet_lines_get(&j->lines, g->members[i], &count);
        if (j->ranks[g->members[i]].row->active_peak != g->active.median)
            continue;
        for (size_t k = 0; k < count; k++) {
            if (g->top_place == UINT32_MAX || held[k].bytes > g->top_bytes) {
                g->top_place = held[k].place;
                g->top_bytes = held[k].bytes;
            }
        }
        break;
    }
}

bool
fleet_judge_groups(struct fleet_judgement *j)
{
    size_t *leaders = calloc(j->count + 1, sizeof *leaders);
    uint64_t *values = calloc(j->count + 1, sizeof *values);
    bool done = leaders && values;
    if (done) {
        lead_or_follow(j, leaders);
        done = take_singles_in(j, leaders);
    }
    if (!done)
        j->group_count = 0; /* so that no group is listed */
    done = done && list_members(j);
    for (size_t g = 0; done && g < j->group_count; g++) {
        find_figures(j, &j->groups[g], values);
        find_layout(j, &j->groups[g]);
        find_top(j, &j->groups[g]);
    }
    free(leaders);
    free(values);
    return done;
}
