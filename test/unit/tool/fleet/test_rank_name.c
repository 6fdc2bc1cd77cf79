/* SPDX-License-Identifier: Apache-2.0 */
/* Ranks in the names that trainers write, in none, and in hostile ones. */
#include "support/cmocka.h"

#include <string.h>

#include "fleet/rank_name.h"

static void
trainers_names_tell_the_rank(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        uint32_t rank;
    } names[] = {
        {"iteration_10/rank3_memory_snapshot.pickle", 3},
        {"iteration_10_exit/rank63_memory_snapshot.pickle", 63},
        {"run-7_rank12_memory_snapshot.pickle", 12},
        {"oom_rank-3_snapshot.pickle", 3},
        {"memory_snapshot_rank5_t1760000000.5.pickle", 5},
        {"memory_snapshot_rank5_step200.pkl", 5},
        {"step_3_rank17_pid4711_20260102.pickle.gz", 17},
        {"rank4.ba10.memory_snapshot.pickle", 4},
        {"memory_snapshot_rank_6.pt", 6},
        {"job/rank_8/snapshot.pickle", 8},
        {"job/rank-8/snapshot_2.pickle", 8},
        {"rank_1/rank2.pickle", 2},
        {"RANK=9.pickle", 9},
        {"snapshot_31.pickle", 31},
        {"snapshot_2026-01-02-10-33_5.pickle", 5},
        {"gpu3.pickle", 3},
        {"7.pickle.zst", 7},
        {"oom-3.pickle", 3},
        {"oom-3-2.pickle", 3},
        {"a/b/oom-0.pickle", 0},
        {"rank007.pickle", 7},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(rank_name_find(names[i].path), names[i].rank);
}

static void
other_names_tell_none(void **state)
{
    (void)state;
    static const char *const names[] = {
        "",
        "/",
        "snapshot.pickle",
        "memory_snapshot_step100.pickle",
        "local_rank3/snapshot.pickle",
        "localrank-3.pickle.x",
        "node_rank_2.snapshot",
        "drank3.pickle.x",
        "rank.pickle",
        "rank_.pickle",
        "run_120000.pickle",
        "rank99999999999999999999.x",
        "snapshot_99999999999999999999.pickle",
        "oom-3-x.pickle",
        "rank",
        "\xff\xfe.pickle",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(rank_name_find(names[i]), RANK_UNKNOWN);
}

static void
a_pattern_takes_its_first_group(void **state)
{
    (void)state;
    regex_t pattern;
    assert_int_equal(regcomp(&pattern, "worker([0-9]*)(x?)", REG_EXTENDED), 0);
    assert_int_equal(rank_name_match(&pattern, "a/worker12.pickle"), 12);
    assert_int_equal(rank_name_match(&pattern, "a/worker.pickle"), RANK_UNKNOWN);
    assert_int_equal(rank_name_match(&pattern, "a/rank3.pickle"), RANK_UNKNOWN);
    assert_int_equal(rank_name_match(&pattern, "worker99999999"), RANK_UNKNOWN);
    regfree(&pattern);
    assert_int_equal(regcomp(&pattern, "(w)orker", REG_EXTENDED), 0);
    assert_int_equal(rank_name_match(&pattern, "worker3"), RANK_UNKNOWN);
    regfree(&pattern);
}

static void
numbers_are_ordered_by_value(void **state)
{
    (void)state;
    static const char *const ordered[] = {"",     "a",     "a1",       "a01b",
                                          "a2",   "a10",   "a10/x",    "a10/y",
                                          "b000", "b0001", "b9/rank1", "b10/rank1"};
    size_t count = sizeof ordered / sizeof *ordered;
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < count; k++) {
            int order = rank_name_compare(ordered[i], ordered[k]);
            assert_int_equal((order > 0) - (order < 0), (i > k) - (i < k));
        }
    }
    assert_int_not_equal(rank_name_compare("a01", "a1"), 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trainers_names_tell_the_rank),
        cmocka_unit_test(other_names_tell_none),
        cmocka_unit_test(a_pattern_takes_its_first_group),
        cmocka_unit_test(numbers_are_ordered_by_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
