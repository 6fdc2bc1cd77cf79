/* SPDX-License-Identifier: Apache-2.0 */
/* See sweep_rank.h. */
#include "sweep/sweep_rank.h"

#include <stdlib.h>

static int
compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int
compare_figures(const struct sweep_figures *a, const struct sweep_figures *b)
{
    int order = b->fits - a->fits;
    if (order == 0)
        order = compare_numbers(a->device_bytes, b->device_bytes);
    if (order == 0)
        order = compare_numbers(a->reserved_bytes, b->reserved_bytes);
    return order != 0 ? order : compare_numbers(a->driver_time_ns, b->driver_time_ns);
}

static uint64_t
larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void
sweep_row_conclude(struct sweep_row *row, size_t file_count)
{
    struct sweep_figures all = row->files[0];
    row->worst_file = 0;
    for (size_t i = 1; i < file_count; i++) {
        const struct sweep_figures *f = &row->files[i];
        if (compare_figures(f, &row->files[row->worst_file]) > 0)
            row->worst_file = i;
        all.fits = all.fits && f->fits;
        all.device_bytes = larger(all.device_bytes, f->device_bytes);
        all.reserved_bytes = larger(all.reserved_bytes, f->reserved_bytes);
        all.driver_time_ns = larger(all.driver_time_ns, f->driver_time_ns);
        all.driver_calls = larger(all.driver_calls, f->driver_calls);
        all.retries = larger(all.retries, f->retries);
    }
    row->all = all;
}

/* Return the class of a row: 0 if it ran in full, else larger the earlier it was pruned;
   refused rows have the largest. */
static unsigned
get_class(const struct sweep_row *row)
{
    if (row->refused)
        return SWEEP_ROUNDS_MAX + 2;
    return row->pruned ? SWEEP_ROUNDS_MAX + 1 - row->pruned : 0;
}

static int
compare_rows(const void *left, const void *right)
{
    const struct sweep_row *a = left, *b = right;
    int order = compare_numbers(get_class(a), get_class(b));
    if (order == 0 && !a->refused)
        order = compare_figures(&a->all, &b->all);
    /* Wraps SWEEP_RECORDED to 0, so the recorded settings win ties. */
    return order != 0 ? order : compare_numbers(a->combination + 1, b->combination + 1);
}

void
sweep_rank(struct sweep_row *rows, size_t count)
{
    if (count > 1)
        qsort(rows, count, sizeof *rows, compare_rows);
}

static bool
dominates(const struct sweep_figures *a, const struct sweep_figures *b)
{
    return a->device_bytes <= b->device_bytes && a->reserved_bytes <= b->reserved_bytes &&
           a->driver_time_ns <= b->driver_time_ns && compare_figures(a, b) != 0;
}

/* Rows are ranked, so only an earlier row can dominate a row, and if one does, a row on
   the front does as well. */
void
sweep_mark_front(struct sweep_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct sweep_row *row = &rows[i];
        row->is_front = !row->refused && !row->pruned && row->all.fits;
        for (size_t j = 0; j < i && row->is_front; j++)
            row->is_front = !rows[j].is_front || !dominates(&rows[j].all, &row->all);
    }
}

size_t
sweep_count_rounds(size_t count, size_t budget)
{
    size_t rounds = 0;
    for (; budget > 0 && count > budget && rounds < SWEEP_ROUNDS_MAX; rounds++)
        count = (count + 1) / 2;
    return rounds;
}
