/* SPDX-License-Identifier: Apache-2.0 */
/* Rows judged together: beside a naive model, and by cases of which the truth is known. */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet/fleet_judge.h"
#include "fleet/fleet_settings.h"
#include "fleet/rank_name.h"
#include "support/random.h"

#define MIB (UINT64_C(1) << 20)
#define RANKS_MAX 96
#define LINES 6

/* A job in memory. The names of lines are static texts. */
struct job {
    size_t count;
    struct fleet_rank ranks[RANKS_MAX];
    struct fleet_row rows[RANKS_MAX];
    struct fleet_line lines[RANKS_MAX][LINES + 2];
    uint64_t peaks[RANKS_MAX][4];
    struct fleet_judgement j;
};

static const char *const names[LINES] = {"a.py:10 f", "a.py:20 f", "b.py:5 g",
                                         "c.py:7 h",  "d.py:1 i",  "(no stack)"};
static const char *const functions[LINES] = {"a.py f", "a.py f", "b.py g",
                                             "c.py h", "d.py i", "(no stack)"};
static const uint32_t numbers[LINES] = {10, 20, 5, 7, 1, 0};

static void
add_line(struct job *job, size_t rank, const char *name, const char *function,
         uint32_t line, uint64_t bytes)
{
    struct fleet_row *row = &job->rows[rank];
    row->lines[row->line_count++] =
        (struct fleet_line){name, function, line, bytes, bytes / (25 * MIB)};
    row->active_peak += bytes;
    row->reserved_peak += bytes;
}

/* `stages` runs of ranks, of which each holds more at one line than the one before. */
static struct job *
make_job(size_t count, size_t stages, unsigned jitter, uint64_t seed)
{
    struct job *job = calloc(1, sizeof *job);
    struct random random;
    random_init(&random, seed);
    assert_non_null(job);
    job->count = count;
    for (size_t i = 0; i < count; i++) {
        struct fleet_row *row = &job->rows[i];
        *row = (struct fleet_row){.why = "",
                                  .conf = "",
                                  .oom.line = "",
                                  .growth.line = "",
                                  .file_bytes = 1000,
                                  .hash = i,
                                  .event_count = 100,
                                  .lines = job->lines[i],
                                  .peaks = job->peaks[i]};
        job->ranks[i] = (struct fleet_rank){"x.pickle", (uint32_t)i, row};
        for (size_t k = 0; k < LINES; k++) {
            uint64_t bytes = (k + 1) * 100 * MIB;
            if (k == 0)
                bytes <<= 2 * (i / (count / stages));
            bytes += jitter ? random_below(&random, bytes * jitter / 100) : 0;
            add_line(job, i, names[k], functions[k], numbers[k], bytes);
        }
    }
    return job;
}

static void
judge(struct job *job)
{
    assert_true(fleet_judge(&job->j, job->ranks, job->count));
}

static void
end(struct job *job)
{
    fleet_judge_finish(&job->j);
    free(job);
}

static size_t
count_findings(const struct job *job, enum fleet_finding_kind kind)
{
    size_t count = 0;
    for (size_t i = 0; i < job->j.finding_count; i++)
        count += job->j.findings[i].kind == kind;
    return count;
}

/* --- the middle --------------------------------------------------------------------------- */

/* The number that as many are below as above, found by counting. */
static uint64_t
naive_median(const uint64_t *values, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t less = 0, equal = 0;
        for (size_t k = 0; k < count; k++) {
            less += values[k] < values[i];
            equal += values[k] == values[i];
        }
        if (less <= (count - 1) / 2 && less + equal > (count - 1) / 2)
            return values[i];
    }
    return 0;
}

static void
the_middle_is_that_of_a_naive_model(void **state)
{
    (void)state;
    struct random random;
    random_init(&random, 3);
    for (size_t round = 0; round < 300; round++) {
        uint64_t values[40], distances[40];
        size_t count = 1 + random_below(&random, 40);
        for (size_t i = 0; i < count; i++)
            values[i] = round % 7 == 0 ? UINT64_MAX - random_below(&random, 3)
                                       : random_below(&random, 20);
        uint64_t median = naive_median(values, count);
        for (size_t i = 0; i < count; i++)
            distances[i] = values[i] > median ? values[i] - median : median - values[i];
        uint64_t mad = naive_median(distances, count);
        struct robust r = robust_find(values, count);
        assert_true(r.median == median && r.mad == mad);
    }
    struct robust none = robust_find(NULL, 0);
    assert_true(none.median == 0 && none.mad == 0);
}

/* --- groups ------------------------------------------------------------------------------- */

static void
healthy_jobs_are_left_alone(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct job *job =
            make_job(64, 1 + seed % 4 * (seed % 4 != 2), seed % 2 * 10, seed);
        judge(job);
        assert_int_equal(job->j.finding_count, count_findings(job, FLEET_FINDING_GROUP));
        assert_int_equal(job->j.used_count, 64);
        end(job);
    }
}

static void
stages_are_runs(void **state)
{
    (void)state;
    struct job *job = make_job(64, 4, 0, 1);
    judge(job);
    assert_int_equal(job->j.group_count, 4);
    for (size_t g = 0; g < 4; g++) {
        assert_int_equal(job->j.groups[g].count, 16);
        assert_int_equal(job->j.groups[g].layout, FLEET_LAYOUT_RUN);
        for (size_t i = 0; i < 16; i++)
            assert_int_equal(job->j.groups[g].members[i], g * 16 + i);
    }
    assert_int_equal(count_findings(job, FLEET_FINDING_GROUP), 1); /* the last has most */
    end(job);
}

static void
every_other_rank_is_a_stride(void **state)
{
    (void)state;
    struct job *job = make_job(16, 1, 0, 1);
    for (size_t i = 1; i < 16; i += 2)
        job->lines[i][5].bytes *= 5;
    judge(job);
    assert_int_equal(job->j.group_count, 2);
    assert_int_equal(job->j.groups[1].layout, FLEET_LAYOUT_EVERY);
    assert_int_equal(job->j.groups[1].stride, 2);
    end(job);
}

static void
few_ranks_have_no_outliers(void **state)
{
    (void)state;
    struct job *job = make_job(4, 1, 0, 1);
    job->lines[3][1].bytes += 20 * MIB;
    judge(job);
    assert_int_equal(job->j.finding_count, 0);
    end(job);
}

/* --- outliers ----------------------------------------------------------------------------- */

static void
one_line_of_one_rank_is_found(void **state)
{
    (void)state;
    for (size_t sick = 0; sick < 32; sick += 5) {
        struct job *job = make_job(32, 1, 4, sick);
        add_line(job, sick, "e.py:9 keep", "e.py keep", 9, 900 * MIB);
        judge(job);
        assert_int_equal(job->j.group_count, 1);
        assert_int_equal(job->j.finding_count, 1);
        const struct fleet_finding *f = job->j.findings;
        assert_int_equal(f->kind, FLEET_FINDING_MORE);
        assert_int_equal(f->file, sick);
        assert_true(f->bytes == 900 * MIB && f->usual == 0);
        assert_string_equal(f->line, "e.py:9 keep");
        end(job);
    }
}

/* Recompute each line's median and MAD from the rows, by name. */
static bool
naive_is_far(const struct job *job, size_t rank, size_t line, bool *is_more)
{
    uint64_t values[RANKS_MAX] = {0}, peaks[RANKS_MAX] = {0}, distances[RANKS_MAX] = {0};
    for (size_t i = 0; i < job->count; i++) {
        values[i] = job->lines[i][line].bytes;
        peaks[i] = job->rows[i].active_peak;
    }
    uint64_t median = naive_median(values, job->count);
    for (size_t i = 0; i < job->count; i++)
        distances[i] = robust_distance(values[i], median);
    double mad = (double)naive_median(distances, job->count);
    double distance = (double)robust_distance(values[rank], median);
    uint64_t matters = naive_median(peaks, job->count) / 50;
    *is_more = values[rank] > median;
    return distance > 6 * 1.4826 * mad && distance * 10 > (double)median &&
           distance > (double)matters;
}

static void
outliers_are_those_of_a_naive_model(void **state)
{
    (void)state;
    size_t found = 0;
    for (uint64_t seed = 0; seed < 60; seed++) {
        struct job *job = make_job(24, 1, 6, seed);
        struct random random;
        random_init(&random, seed + 1000);
        for (size_t k = 0; k < 4; k++) { /* one line a rank: three would be listed */
            struct fleet_line *line = &job->lines[k * 5 + random_below(&random, 5)]
                                                 [random_below(&random, LINES)];
            line->bytes = line->bytes * (85 + random_below(&random, 60)) / 100;
        }
        judge(job);
        assert_int_equal(job->j.group_count, 1);
        size_t expected = 0;
        for (size_t i = 0; i < job->count; i++) {
            for (size_t k = 0; k < LINES; k++) {
                bool is_more;
                if (!naive_is_far(job, i, k, &is_more))
                    continue;
                bool is_there = false;
                for (size_t f = 0; f < job->j.finding_count; f++)
                    is_there |= job->j.findings[f].file == i &&
                                strcmp(job->j.findings[f].line, names[k]) == 0 &&
                                job->j.findings[f].kind ==
                                    (is_more ? FLEET_FINDING_MORE : FLEET_FINDING_LESS);
                assert_true(is_there);
                expected++;
            }
        }
        assert_int_equal(expected, count_findings(job, FLEET_FINDING_MORE) +
                                       count_findings(job, FLEET_FINDING_LESS));
        found += expected;
        end(job);
    }
    assert_true(found > 20);
}

static void
a_leak_is_one_ranks_or_the_programs(void **state)
{
    (void)state;
    struct job *job = make_job(16, 1, 0, 1);
    job->rows[5].growth = (struct fleet_growth){"t.py:3 log", 3 * MIB, 90};
    job->rows[6].growth = (struct fleet_growth){"t.py:3 log", 3 * MIB, 20};
    judge(job);
    assert_int_equal(job->j.finding_count, 1);
    assert_int_equal(job->j.findings[0].kind, FLEET_FINDING_LEAK);
    assert_int_equal(job->j.findings[0].file, 5);
    end(job);
    job = make_job(16, 1, 0, 1);
    for (size_t i = 0; i < 12; i++)
        job->rows[i].growth = (struct fleet_growth){"t.py:3 log", (i + 1) * MIB, 90};
    judge(job);
    assert_int_equal(job->j.finding_count, 1);
    assert_int_equal(job->j.findings[0].kind, FLEET_FINDING_GROWS);
    assert_true(job->j.findings[0].bytes == 12 * MIB);
    end(job);
}

/* --- lines -------------------------------------------------------------------------------- */

static void
paths_and_edited_lines_do_not_matter(void **state)
{
    (void)state;
    struct job *job = make_job(16, 1, 0, 1);
    for (size_t i = 8; i < 16; i++) {
        job->lines[i][0].name = "proj/a.py:13 f";
        job->lines[i][0].function = job->lines[i][1].function = "proj/a.py f";
        job->lines[i][0].line = 13;
        job->lines[i][1].name = "proj/a.py:23 f";
        job->lines[i][1].line = 23;
    }
    judge(job);
    assert_int_equal(job->j.lines.place_count, LINES);
    assert_int_equal(job->j.group_count, 1);
    assert_int_equal(job->j.finding_count, 0);
    end(job);
}

static void
a_path_that_two_longer_ones_end_in_stays_apart(void **state)
{
    (void)state;
    struct job *job = make_job(3, 1, 0, 1);
    job->lines[1][2].function = "x/b.py g";
    job->lines[2][2].function = "y/b.py g";
    judge(job);
    assert_int_equal(job->j.lines.place_count, LINES + 2);
    end(job);
}

/* --- files, devices, failures, steps ------------------------------------------------------ */

static void
files_that_do_not_count_are_told_apart(void **state)
{
    (void)state;
    struct job *job = make_job(10, 1, 0, 1);
    job->rows[1].state = FLEET_ROW_UNREADABLE;
    job->rows[2].state = FLEET_ROW_EMPTY;
    job->rows[4].hash = job->rows[3].hash;
    job->ranks[6].rank = 5; /* two of rank 5, none of 6 */
    job->rows[6].event_count = 500;
    job->ranks[9].rank = RANK_UNKNOWN;
    judge(job);
    static const enum fleet_use uses[] = {
        FLEET_USED,      FLEET_BROKEN, FLEET_HOLDS_NONE, FLEET_USED, FLEET_SAME_CONTENT,
        FLEET_SAME_RANK, FLEET_USED,   FLEET_USED,       FLEET_USED, FLEET_USED};
    for (size_t i = 0; i < 10; i++)
        assert_int_equal(job->j.members[i].use, uses[i]);
    assert_int_equal(job->j.members[4].other, 3);
    assert_int_equal(job->j.members[5].other, 6);
    assert_int_equal(job->j.used_count, 6);
    assert_int_equal(job->j.gap_count, 1);
    assert_int_equal(job->j.gaps[0].from, 6);
    assert_int_equal(job->j.gaps[0].to, 6);
    end(job);
}

/* "oom-3-2.pickle" stands before "oom-3.pickle", which is older. */
static void
the_first_failure_of_a_rank_counts(void **state)
{
    (void)state;
    struct job *job = make_job(3, 1, 0, 1);
    for (size_t i = 0; i < 3; i++) {
        job->ranks[i].rank = 3;
        job->rows[i].oom = (struct fleet_oom){
            .is_there = true, .has_time = true, .time_us = 9 - 3 * (i % 2), .line = ""};
    }
    judge(job);
    assert_int_equal(job->j.members[0].use, FLEET_SAME_RANK);
    assert_int_equal(job->j.members[1].use, FLEET_USED);
    assert_int_equal(job->j.members[2].use, FLEET_SAME_RANK);
    assert_int_equal(job->j.members[2].other, 1);
    end(job);
}

static void
devices_follow_a_rule(void **state)
{
    (void)state;
    struct job *job = make_job(32, 1, 0, 1);
    for (size_t i = 0; i < 32; i++)
        job->rows[i].device = i % 8;
    job->rows[11].device = 0;
    job->rows[12].other_count = 1;
    job->rows[12].others = &(struct fleet_other){0, 500 * MIB};
    judge(job);
    assert_int_equal(job->j.devices_a_host, 8);
    assert_int_equal(job->j.finding_count, 2);
    assert_int_equal(job->j.findings[0].kind, FLEET_FINDING_DEVICE);
    assert_int_equal(job->j.findings[0].file, 11);
    assert_int_equal(job->j.findings[0].usual, 3);
    assert_int_equal(job->j.findings[1].kind, FLEET_FINDING_OTHER_DEVICE);
    assert_int_equal(job->j.findings[1].file, 12);
    end(job);
}

static void
the_first_failure_is_by_the_clock_if_all_have_one(void **state)
{
    (void)state;
    uint64_t now = UINT64_C(1760000000000000);
    struct job *job = make_job(16, 1, 0, 1);
    for (size_t i = 3; i < 6; i++)
        job->rows[i].oom = (struct fleet_oom){
            .is_there = true, .has_time = true, .time_us = now + 100 - i, .line = ""};
    judge(job);
    assert_int_equal(job->j.first_failure, 5);
    assert_true(job->j.is_first_by_clock);
    fleet_judge_finish(&job->j);
    job->rows[4].oom.has_time = false;
    judge(job);
    assert_int_equal(job->j.first_failure, 3);
    assert_false(job->j.is_first_by_clock);
    end(job);
}

static void
steps_are_aligned_where_recordings_are(void **state)
{
    (void)state;
    for (int cold = 0; cold < 2; cold++) {
        struct job *job = make_job(8, 1, 0, 1);
        for (size_t i = 0; i < 8; i++) {
            struct fleet_row *row = &job->rows[i];
            row->begins_cold = cold;
            row->peak_count = row->step_count = i == 7 ? 2 : 4;
            for (size_t k = 0; k < row->peak_count; k++)
                row->peaks[k] = 100 * (k + 1) + i;
        }
        judge(job);
        assert_int_equal(job->j.is_from_end, !cold);
        assert_int_equal(job->j.step_count, 4);
        const struct fleet_step *s = job->j.steps;
        assert_int_equal(s[0].step, cold ? 0 : -3);
        assert_int_equal(s[0].rank_count, cold ? 8 : 7);
        assert_int_equal(s[3].step, cold ? 3 : 0);
        assert_int_equal(s[3].max, 406);
        assert_int_equal(s[3].max_file, 6);
        assert_int_equal(s[3].min, cold ? 400 : 207);
        end(job);
    }
}

static void
an_empty_job_is_judged(void **state)
{
    (void)state;
    struct job *job = make_job(2, 1, 0, 1);
    job->rows[0].state = job->rows[1].state = FLEET_ROW_UNREADABLE;
    judge(job);
    assert_int_equal(job->j.used_count, 0);
    assert_int_equal(job->j.group_count, 0);
    size_t files[FLEET_DECIDERS_MAX];
    assert_int_equal(fleet_settings_choose(&job->j, files), 0);
    end(job);
}

/* --- settings ----------------------------------------------------------------------------- */

static void
a_setting_must_harm_no_rank(void **state)
{
    (void)state;
    struct dry_candidate a[] = {
        {.label = "x",
         .verdict = DRY_VERDICT_BEST,
         .is_allowed = true,
         .has_gain = true,
         .gain_bytes = 5 * MIB},
        {.label = "y", .verdict = DRY_VERDICT_GOOD, .is_allowed = true}};
    struct dry_candidate b[] = {
        {.label = "x", .verdict = DRY_VERDICT_NO_GAIN, .is_allowed = true},
        {.label = "y", .verdict = DRY_VERDICT_WORSE, .is_allowed = true}};
    struct fleet_search s[] = {{.is_there = true,
                                .outcome = DRY_OUTCOME_CHANGE,
                                .candidate_count = 2,
                                .candidates = a},
                               {.is_there = true,
                                .outcome = DRY_OUTCOME_KEEP,
                                .candidate_count = 2,
                                .candidates = b}};
    struct fleet_decision d;
    fleet_settings_decide(s, 2, &d);
    assert_int_equal(d.kind, FLEET_DECISION_CHANGE);
    assert_ptr_equal(d.candidate, &a[0]);
    assert_true(d.helped_count == 1 && d.judged_count == 2 && d.gain_max == 5 * MIB);
    b[0].verdict = DRY_VERDICT_FAILS;
    fleet_settings_decide(s, 2, &d);
    assert_int_equal(d.kind, FLEET_DECISION_DISAGREE);
    s[1].candidate_count = 0; /* not tried there */
    fleet_settings_decide(s, 2, &d);
    assert_int_equal(d.kind, FLEET_DECISION_DISAGREE);
    const struct dry_candidate *proposals[FLEET_PROPOSALS_MAX];
    assert_int_equal(fleet_settings_propose(s, 2, proposals), 2);
    s[0].outcome = DRY_OUTCOME_CAPACITY;
    fleet_settings_decide(s, 1, &d);
    assert_int_equal(d.kind, FLEET_DECISION_CAPACITY);
    fleet_settings_decide(s, 0, &d);
    assert_int_equal(d.kind, FLEET_DECISION_NO_EVIDENCE);
}

static void
the_failed_and_the_largest_decide(void **state)
{
    (void)state;
    size_t files[FLEET_DECIDERS_MAX];
    struct job *job = make_job(64, 4, 0, 1);
    for (size_t i = 20; i < 27; i++)
        job->rows[i].oom = (struct fleet_oom){.is_there = true, .line = ""};
    job->rows[3].reserved_peak += MIB;
    judge(job);
    assert_int_equal(fleet_settings_choose(&job->j, files), 8);
    static const size_t expected[] = {20, 21, 22, 23, 48, 32, 16, 3};
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(files[i], expected[i]);
    end(job);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_middle_is_that_of_a_naive_model),
        cmocka_unit_test(healthy_jobs_are_left_alone),
        cmocka_unit_test(stages_are_runs),
        cmocka_unit_test(every_other_rank_is_a_stride),
        cmocka_unit_test(few_ranks_have_no_outliers),
        cmocka_unit_test(one_line_of_one_rank_is_found),
        cmocka_unit_test(outliers_are_those_of_a_naive_model),
        cmocka_unit_test(a_leak_is_one_ranks_or_the_programs),
        cmocka_unit_test(paths_and_edited_lines_do_not_matter),
        cmocka_unit_test(a_path_that_two_longer_ones_end_in_stays_apart),
        cmocka_unit_test(files_that_do_not_count_are_told_apart),
        cmocka_unit_test(the_first_failure_of_a_rank_counts),
        cmocka_unit_test(devices_follow_a_rule),
        cmocka_unit_test(the_first_failure_is_by_the_clock_if_all_have_one),
        cmocka_unit_test(steps_are_aligned_where_recordings_are),
        cmocka_unit_test(an_empty_job_is_judged),
        cmocka_unit_test(a_setting_must_harm_no_rank),
        cmocka_unit_test(the_failed_and_the_largest_decide),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
