/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job's timeline: the peaks of each step over all ranks that have the step.
 * Recordings that begin at program start are aligned at the first step. Others are
 * aligned at the last step, assuming that the job dumped them at one time.
 */
#include <stdlib.h>

#include "fleet/fleet_inside.h"

#define STEP_RANKS_MIN 2

/* The peak of a rank at a step of the job. */
struct peak {
    int64_t step;
    uint64_t bytes;
    size_t file;
};

static int
compare_peaks(const void *a, const void *b)
{
    const struct peak *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    return (x->file < y->file) - (x->file > y->file);
}

static bool
has_steps(const struct fleet_judgement *j, size_t file)
{
    return j->members[file].use == FLEET_USED && j->ranks[file].row->peak_count > 0;
}

/* Count the peaks, and decide at which end the steps are aligned. */
static size_t
count_peaks(struct fleet_judgement *j)
{
    size_t count = 0, cold = 0, with_steps = 0;
    for (size_t i = 0; i < j->count; i++) {
        if (!has_steps(j, i))
            continue;
        count += j->ranks[i].row->peak_count;
        cold += j->ranks[i].row->begins_cold;
        with_steps++;
    }
    j->is_from_end = cold * 2 <= with_steps;
    return count;
}

/* Collect all peaks. A row's steps end below 2^63 (fleet_row.c), so nothing overflows. */
static void
collect(const struct fleet_judgement *j, struct peak *peaks)
{
    size_t used = 0;
    for (size_t i = 0; i < j->count; i++) {
        const struct fleet_row *row = j->ranks[i].row;
        int64_t first =
            j->is_from_end ? 1 - (int64_t)row->peak_count : (int64_t)row->first_peak;
        for (size_t k = 0; has_steps(j, i) && k < row->peak_count; k++)
            peaks[used++] = (struct peak){first + (int64_t)k, row->peaks[k], i};
    }
}

bool
fleet_judge_steps(struct fleet_judgement *j)
{
    size_t count = count_peaks(j);
    struct peak *peaks = calloc(count + 1, sizeof *peaks);
    j->steps = calloc(count + 1, sizeof *j->steps);
    bool done = peaks && j->steps;
    if (done) {
        collect(j, peaks);
        qsort(peaks, count, sizeof *peaks, compare_peaks);
    }
    for (size_t i = 0, end; done && i < count; i = end) {
        for (end = i + 1; end < count && peaks[end].step == peaks[i].step; end++)
            continue;
        if (end - i >= STEP_RANKS_MIN)
            j->steps[j->step_count++] =
                (struct fleet_step){.step = peaks[i].step,
                                    .rank_count = end - i,
                                    .min = peaks[i].bytes,
                                    .median = peaks[i + (end - i - 1) / 2].bytes,
                                    .max = peaks[end - 1].bytes,
                                    .max_file = peaks[end - 1].file};
    }
    free(peaks);
    return done;
}
