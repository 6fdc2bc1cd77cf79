/* SPDX-License-Identifier: Apache-2.0 */

/*
 * torch.cuda.memory_summary(): the tables below are PyTorch's own output for these numbers
 * (golden/summary.py compares many more where PyTorch is at hand).
 */
#include "support/cmocka.h"

#include <string.h>

#include <drystone/stats.h>
#include <drystone/trace.h>

#include "support/bytes.h"
#include "support/pool_run.h"

#define GIB (INT64_C(1) << 30)

static void
fill(struct dry_stat_array *array, struct dry_stat all)
{
    array->all = all;
    array->large_pool = (struct dry_stat){all.current / 2, all.peak / 2,
                                          all.allocated / 2, all.freed / 2};
    array->small_pool =
        (struct dry_stat){all.current - all.current / 2, all.peak - all.peak / 2,
                          all.allocated - all.allocated / 2, all.freed - all.freed / 2};
}

/* At and below the numbers where a unit changes. */
static struct dry_stats
make_stats(void)
{
    struct dry_stats stats = {.num_ooms = 3, .num_alloc_retries = 12};
    fill(&stats.allocated_bytes,
         (struct dry_stat){805306367, 805306368, INT64_C(10000000000000), 3 * GIB * GIB});
    fill(&stats.allocation, (struct dry_stat){749999, 750000, 749999999, 750000000});
    return stats;
}

static void
expect_summary(bool abbreviated, const char *expected)
{
    struct dry_stats stats = make_stats();
    struct dry_error err;
    struct bytes_sink to;
    struct dry_sink sink = bytes_sink_init(&to, SIZE_MAX);
    assert_int_equal(dry_stats_write_summary(&stats, 1, abbreviated, &sink, &err),
                     DRY_OK);
    assert_int_equal(to.count, strlen(expected));
    assert_memory_equal(to.bytes, expected, to.count);
    bytes_sink_finish(&to);
}

static void
table_is_pytorchs(void **state)
{
    (void)state;
    expect_summary(
        0,
        "|===========================================================================|\n"
        "|                  PyTorch CUDA memory summary, device ID 1                 |\n"
        "|---------------------------------------------------------------------------|\n"
        "|            CUDA OOMs: 3            |        cudaMalloc retries: 12        |\n"
        "|===========================================================================|\n"
        "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Allocated memory      | 786431 KiB |    768 MiB |   9313 GiB |   3072 PiB |\n"
        "|       from large pool | 393215 KiB |    384 MiB |   4656 GiB |   1536 PiB |\n"
        "|       from small pool | 393216 KiB |    384 MiB |   4656 GiB |   1536 PiB |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Active memory         |      0 B   |      0 B   |      0 B   |      0 B   |\n"
        "|       from large pool |      0 B   |      0 B   |      0 B   |      0 B   |\n"
        "|       from small pool |      0 B   |      0 B   |      0 B   |      0 B   |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Requested memory      |      0 B   |      0 B   |      0 B   |      0 B   |\n"
        "|       from large pool |      0 B   |      0 B   |      0 B   |      0 B   |\n"
        "|       from small pool |      0 B   |      0 B   |      0 B   |      0 B   |\n"
        "|---------------------------------------------------------------------------|\n"
        "| GPU reserved memory   |      0 B   |      0 B   |      0 B   |      0 B   |\n"
        "|       from large pool |      0 B   |      0 B   |      0 B   |      0 B   |\n"
        "|       from small pool |      0 B   |      0 B   |      0 B   |      0 B   |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Non-releasable memory |      0 B   |      0 B   |      0 B   |      0 B   |\n"
        "|       from large pool |      0 B   |      0 B   |      0 B   |      0 B   |\n"
        "|       from small pool |      0 B   |      0 B   |      0 B   |      0 B   |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Allocations           |  749999    |     750 K  |  749999 K  |     750 M  |\n"
        "|       from large pool |  374999    |     375 K  |  374999 K  |     375 M  |\n"
        "|       from small pool |  375000    |     375 K  |  375000 K  |     375 M  |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Active allocs         |       0    |       0    |       0    |       0    |\n"
        "|       from large pool |       0    |       0    |       0    |       0    |\n"
        "|       from small pool |       0    |       0    |       0    |       0    |\n"
        "|---------------------------------------------------------------------------|\n"
        "| GPU reserved segments |       0    |       0    |       0    |       0    |\n"
        "|       from large pool |       0    |       0    |       0    |       0    |\n"
        "|       from small pool |       0    |       0    |       0    |       0    |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Non-releasable allocs |       0    |       0    |       0    |       0    |\n"
        "|       from large pool |       0    |       0    |       0    |       0    |\n"
        "|       from small pool |       0    |       0    |       0    |       0    |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Oversize allocations  |       0    |       0    |       0    |       0    |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Oversize GPU segments |       0    |       0    |       0    |       0    |\n"
        "|===========================================================================|"
        "\n");
}

static void
short_table_is_pytorchs(void **state)
{
    (void)state;
    expect_summary(
        1,
        "|===========================================================================|\n"
        "|                  PyTorch CUDA memory summary, device ID 1                 |\n"
        "|---------------------------------------------------------------------------|\n"
        "|            CUDA OOMs: 3            |        cudaMalloc retries: 12        |\n"
        "|===========================================================================|\n"
        "|        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Allocated memory      | 786431 KiB |    768 MiB |   9313 GiB |   3072 PiB |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Active memory         |      0 B   |      0 B   |      0 B   |      0 B   |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Requested memory      |      0 B   |      0 B   |      0 B   |      0 B   |\n"
        "|---------------------------------------------------------------------------|\n"
        "| GPU reserved memory   |      0 B   |      0 B   |      0 B   |      0 B   |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Non-releasable memory |      0 B   |      0 B   |      0 B   |      0 B   |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Allocations           |  749999    |     750 K  |  749999 K  |     750 M  |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Active allocs         |       0    |       0    |       0    |       0    |\n"
        "|---------------------------------------------------------------------------|\n"
        "| GPU reserved segments |       0    |       0    |       0    |       0    |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Non-releasable allocs |       0    |       0    |       0    |       0    |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Oversize allocations  |       0    |       0    |       0    |       0    |\n"
        "|---------------------------------------------------------------------------|\n"
        "| Oversize GPU segments |       0    |       0    |       0    |       0    |\n"
        "|===========================================================================|"
        "\n");
}

static void
failing_sink_is_asked_no_more(void **state)
{
    (void)state;
    struct dry_stats stats = make_stats();
    for (size_t writes = 0;; writes++) {
        struct dry_error err;
        struct bytes_sink to;
        struct dry_sink sink = bytes_sink_init(&to, writes);
        enum dry_status status = dry_stats_write_summary(&stats, 0, false, &sink, &err);
        bool failed = to.failed;
        size_t calls = to.calls;
        bytes_sink_finish(&to);
        if (!failed)
            break;
        assert_int_equal(status, DRY_ERR_SYSTEM);
        assert_int_equal(calls, writes + 1);
    }
}

static void
pool_writes_its_own(void **state)
{
    (void)state;
    struct pool_run run;
    struct dry_stats stats;
    struct dry_error err;
    struct bytes_sink pools, plain;
    struct dry_sink sink = bytes_sink_init(&pools, SIZE_MAX);
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 << 20, NULL);
    pool_run_steps(&run, 1, 500);
    assert_true(run.ooms > 0);
    assert_int_equal(dry_pool_write_summary(run.pool, false, &sink, &err), DRY_OK);
    sink = bytes_sink_init(&plain, SIZE_MAX);
    dry_pool_get_stats(run.pool, &stats);
    assert_int_equal(dry_stats_write_summary(&stats, 0, false, &sink, &err), DRY_OK);
    assert_int_equal(pools.count, plain.count);
    assert_memory_equal(pools.bytes, plain.bytes, plain.count);
    bytes_sink_finish(&pools);
    bytes_sink_finish(&plain);
    pool_run_end(&run);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_pytorchs),
        cmocka_unit_test(short_table_is_pytorchs),
        cmocka_unit_test(failing_sink_is_asked_no_more),
        cmocka_unit_test(pool_writes_its_own),
    };
    return cmocka_run_group_tests_name("summary", tests, NULL, NULL);
}
