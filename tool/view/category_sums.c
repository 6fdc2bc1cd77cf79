/* SPDX-License-Identifier: Apache-2.0 */
/* See category_sums.h. */
#include "view/category_sums.h"

#include <stdlib.h>
#include <string.h>

#define STRIDE 256u

_Static_assert(DRY_CATEGORY_COUNT <= CATEGORY_SUMS_MAX, "every category has a row");

struct end {
    uint32_t moment, number;
};

static int
by_moment(const void *a, const void *b)
{
    const struct end *x = a, *y = b;
    return (x->moment > y->moment) - (x->moment < y->moment);
}

static bool
sort_ends(struct category_sums *s)
{
    uint32_t count = s->v->allocation_count;
    struct end *ends = malloc((count + (size_t)1) * sizeof *ends);
    for (uint32_t i = 0; ends && i < count; i++)
        if (s->v->allocations[i].end != DRY_MOMENT_NEVER)
            ends[s->end_count++] = (struct end){s->v->allocations[i].end, i};
    if (ends)
        qsort(ends, s->end_count, sizeof *ends, by_moment);
    s->by_end = malloc((s->end_count + (size_t)1) * sizeof *s->by_end);
    for (uint32_t i = 0; ends && s->by_end && i < s->end_count; i++)
        s->by_end[i] = ends[i].number;
    free(ends);
    return ends && s->by_end;
}

static void
add(const struct category_sums *s, uint32_t number, uint64_t bytes[CATEGORY_SUMS_MAX])
{
    bytes[s->guesses[number].category] += s->v->allocations[number].size;
}

/* Build prefix sums over `count` allocations in the order `order` (NULL: 0, 1, ...), with
   a row before every STRIDE-th. */
static uint64_t *
sum_up(const struct category_sums *s, const uint32_t *order, uint32_t count)
{
    uint64_t sums[CATEGORY_SUMS_MAX] = {0};
    uint64_t *rows = malloc((count / STRIDE + (size_t)1) * sizeof sums);
    for (uint32_t i = 0; rows && i < count; i++) {
        if (i % STRIDE == 0)
            memcpy(rows + (size_t)i / STRIDE * CATEGORY_SUMS_MAX, sums, sizeof sums);
        add(s, order ? order[i] : i, sums);
    }
    if (rows && count % STRIDE == 0)
        memcpy(rows + (size_t)count / STRIDE * CATEGORY_SUMS_MAX, sums, sizeof sums);
    return rows;
}

bool
category_sums_init(struct category_sums *s, const struct dry_timeline_view *v,
                   const struct dry_category_guess *guesses)
{
    *s = (struct category_sums){.v = v,
                                .guesses = guesses,
                                .birth_count =
                                    v->allocation_count - v->carried_over_count};
    for (uint32_t i = s->birth_count; i < v->allocation_count; i++)
        add(s, i, s->carried);
    if (!sort_ends(s))
        return false;
    s->born = sum_up(s, NULL, s->birth_count);
    s->ended = sum_up(s, s->by_end, s->end_count);
    return s->born && s->ended;
}

void
category_sums_finish(struct category_sums *s)
{
    free(s->by_end);
    free(s->born);
    free(s->ended);
    *s = (struct category_sums){0};
}

/* Count the allocations that begin (with `order`: end) at `moment` or earlier. */
static uint32_t
count_until(const struct category_sums *s, const uint32_t *order, uint32_t count,
            uint32_t moment)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct dry_allocation *a =
            &s->v->allocations[order ? order[middle] : middle];
        if ((order ? a->end : a->begin) <= moment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void
prefix(const struct category_sums *s, const uint32_t *order, const uint64_t *rows,
       uint32_t count, uint64_t bytes[CATEGORY_SUMS_MAX])
{
    memcpy(bytes, rows + (size_t)count / STRIDE * CATEGORY_SUMS_MAX,
           CATEGORY_SUMS_MAX * sizeof *bytes);
    for (uint32_t i = count / STRIDE * STRIDE; i < count; i++)
        add(s, order ? order[i] : i, bytes);
}

void
category_sums_at(const struct category_sums *s, uint32_t moment,
                 uint64_t bytes[CATEGORY_SUMS_MAX])
{
    uint64_t ended[CATEGORY_SUMS_MAX];
    prefix(s, NULL, s->born, count_until(s, NULL, s->birth_count, moment), bytes);
    prefix(s, s->by_end, s->ended, count_until(s, s->by_end, s->end_count, moment),
           ended);
    for (unsigned c = 0; c < CATEGORY_SUMS_MAX; c++)
        bytes[c] += s->carried[c] - ended[c];
}
