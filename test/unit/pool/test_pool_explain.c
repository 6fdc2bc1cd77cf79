/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Why a request fails: drawn segments whose sums are known, then random pools that are asked
 * to do what was said of them.
 */
#include "support/cmocka.h"

#include <string.h>

#include "pool/explain.h"
#include "support/failing_memory.h"
#include "support/pool_run.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define BASE (UINT64_C(1) << 40)
#define CAPACITY (64 * MIB)

/* --- drawn segments ----------------------------------------------------------------------- */

/*
 * A letter is 1 MiB (or `unit`): # in use, a block each; = in use, part of the block before;
 * . free; ~ waiting for streams. Large, of stream 0 and the default pool.
 */
struct drawing {
    const char *blocks;
    bool is_expandable, is_private;
    uint64_t unit; /* default 1 MiB */
};

static struct dryi_explain_sums
explain_drawing(const struct drawing *d, uint64_t stream)
{
    struct dryi_block_info blocks[64];
    struct dryi_explain_sums sums = {0};
    struct dryi_pool_id pool = {0, d->is_private};
    uint64_t unit = d->unit ? d->unit : MIB;
    size_t count = 0, length = strlen(d->blocks);
    for (size_t i = 0; i < length; i++) {
        char c = d->blocks[i];
        bool continues = c == '=' || (i > 0 && c != '#' && c == d->blocks[i - 1]);
        if (continues) {
            blocks[count - 1].size += unit;
            continue;
        }
        blocks[count++] = (struct dryi_block_info){
            .addr = BASE + i * unit,
            .size = unit,
            .pool = pool,
            .allocated = c == '#',
            .pending = c == '~',
            .mapped = true,
            .is_large = true,
        };
    }
    struct dryi_segment_info segment = {.addr = BASE,
                                        .size = length * unit,
                                        .pool = pool,
                                        .is_large = true,
                                        .is_expandable = d->is_expandable};
    struct dryi_explain_request request = {.stream = stream,
                                           .is_large = true,
                                           .hole_limit = UINT64_MAX,
                                           .oversize = UINT64_MAX,
                                           .page = {2 * MIB, 4 * MIB}};
    dryi_explain_segment(&sums, &request, &segment, blocks, count);
    assert_true(sums.segment_bytes == segment.size);
    return sums;
}

struct drawn {
    struct drawing drawing;
    uint64_t hole, releasable, pending, private_free, pinned, pinners, pinner_mib;
    uint64_t worst_at, worst_hole; /* 0, 0: none */
};

static void
expect_drawn(const struct drawn *d)
{
    struct dryi_explain_sums s = explain_drawing(&d->drawing, 0);
    uint64_t worst = d->worst_hole ? BASE + d->worst_at * MIB : 0;
    if (s.largest_hole_any != d->hole * MIB || s.releasable != d->releasable * MIB ||
        s.pending != d->pending * MIB || s.private_free != d->private_free * MIB ||
        s.pinned != d->pinned * MIB || s.pinner_count != d->pinners ||
        s.pinner_bytes != d->pinner_mib * MIB || s.worst_address != worst ||
        s.worst_hole != d->worst_hole * MIB)
        fail_msg("%s: hole %llu releasable %llu pinned %llu by %llu of %llu, worst %llu",
                 d->drawing.blocks, (unsigned long long)(s.largest_hole_any / MIB),
                 (unsigned long long)(s.releasable / MIB),
                 (unsigned long long)(s.pinned / MIB), (unsigned long long)s.pinner_count,
                 (unsigned long long)(s.pinner_bytes / MIB),
                 (unsigned long long)(s.worst_hole / MIB));
}

static void
segments_are_pinned_by_all_in_them(void **state)
{
    (void)state;
    static const struct drawn cases[] = {
        {.drawing = {.blocks = "...."}, .hole = 4, .releasable = 4},
        {.drawing = {.blocks = "#==="}},
        {.drawing = {.blocks = "#..."},
         .hole = 3,
         .pinned = 3,
         .pinners = 1,
         .pinner_mib = 1,
         .worst_hole = 4},
        {.drawing = {.blocks = "..#=...#"},
         .hole = 3,
         .pinned = 5,
         .pinners = 2,
         .pinner_mib = 3,
         .worst_at = 2,
         .worst_hole = 7},
        {.drawing = {.blocks = "##.#"},
         .hole = 1,
         .pinned = 1,
         .pinners = 3,
         .pinner_mib = 3,
         .worst_at = 1,
         .worst_hole = 2},
        /* What waits goes back once the streams are done. */
        {.drawing = {.blocks = "..~~"}, .hole = 2, .releasable = 4, .pending = 2},
        {.drawing = {.blocks = ".~#~"},
         .hole = 1,
         .pending = 2,
         .pinned = 3,
         .pinners = 1,
         .pinner_mib = 1,
         .worst_at = 2,
         .worst_hole = 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_drawn(&cases[i]);
}

/* A page is 4 MiB. */
static void
expandable_segments_are_pinned_by_the_page(void **state)
{
    (void)state;
    static const struct drawn cases[] = {
        {.drawing = {.blocks = "........", .is_expandable = true},
         .hole = 8,
         .releasable = 8},
        {.drawing = {.blocks = "#===....", .is_expandable = true},
         .hole = 4,
         .releasable = 4},
        {.drawing = {.blocks = "#==.....", .is_expandable = true},
         .hole = 5,
         .releasable = 4,
         .pinned = 1,
         .pinners = 1,
         .pinner_mib = 3,
         .worst_hole = 8},
        /* The first two stand on a page without holes. */
        {.drawing = {.blocks = "##===#......", .is_expandable = true},
         .hole = 6,
         .releasable = 4,
         .pinned = 2,
         .pinners = 2,
         .pinner_mib = 5,
         .worst_at = 5,
         .worst_hole = 7},
        {.drawing = {.blocks = "....##==..#=", .is_expandable = true},
         .hole = 4,
         .releasable = 4,
         .pinned = 2,
         .pinners = 1,
         .pinner_mib = 2,
         .worst_at = 10,
         .worst_hole = 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_drawn(&cases[i]);
}

static void
private_pools_give_nothing_back(void **state)
{
    (void)state;
    static const struct drawn cases[] = {
        {.drawing = {.blocks = "....", .is_private = true}, .hole = 4, .private_free = 4},
        {.drawing = {.blocks = "#.~.", .is_private = true},
         .hole = 1,
         .private_free = 2,
         .pending = 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_drawn(&cases[i]);
}

static void
only_the_own_stream_serves(void **state)
{
    (void)state;
    struct drawing d = {.blocks = "#..."};
    assert_true(explain_drawing(&d, 0).largest_hole == 3 * MIB);
    assert_true(explain_drawing(&d, 1).largest_hole == 0);
    assert_true(explain_drawing(&d, 1).largest_hole_any == 3 * MIB);
}

/* --- pools that are asked to do it ---------------------------------------------------------- */

static struct dry_pool_explanation
explain(struct pool_run *run, uint64_t size, uint64_t stream)
{
    struct dry_pool_explanation e = DRY_INIT(struct dry_pool_explanation);
    assert_int_equal(dry_pool_explain(run->pool, size, stream, &e), DRY_OK);
    return e;
}

static struct dry_stats
stats_of(struct pool_run *run)
{
    struct dry_stats stats;
    dry_pool_get_stats(run->pool, &stats);
    return stats;
}

static const struct {
    enum dry_placement placement;
    const char *conf;
    bool is_halved; /* limited to half of the device */
} ways[] = {
    {DRY_PLACEMENT_TORCH, "", false},
    {DRY_PLACEMENT_TORCH, "expandable_segments:True", false},
    {DRY_PLACEMENT_TORCH, "max_split_size_mb:25", false},
    {DRY_PLACEMENT_TORCH, "roundup_power2_divisions:4", false},
    {DRY_PLACEMENT_TORCH, "per_process_memory_fraction:0.5", true},
    {DRY_PLACEMENT_PAGED, "", false},
    {DRY_PLACEMENT_PAGED, "remap:False", false},
    {DRY_PLACEMENT_PAGED, "per_process_memory_fraction:0.5", true},
    {DRY_PLACEMENT_TORCH, "throw_on_cudamalloc_oom:True", false},
    {DRY_PLACEMENT_TORCH, "max_split_size_mb:25,roundup_power2_divisions:2", false},
    {DRY_PLACEMENT_TORCH, "expandable_segments:True,max_split_size_mb:57", false},
    {DRY_PLACEMENT_PAGED, "small_kb:65536", false}, /* small ones of many pages */
};
#define REJECTING 8
#define WAY_COUNT (sizeof ways / sizeof *ways)

/* Returns which of the ways it is. */
static size_t
run_begin(struct pool_run *run, size_t i)
{
    size_t way = i % WAY_COUNT;
    pool_run_begin(run, ways[way].placement, ways[way].conf, CAPACITY, NULL);
    run->is_simple = i / WAY_COUNT % 2;
    pool_run_steps(run, 1 + i, 300);
    return way;
}

static void
empty_cache_gives_back_what_was_said(void **state)
{
    (void)state;
    size_t some = 0;
    for (size_t i = 0; i < 2000; i++) {
        struct pool_run run;
        run_begin(&run, i);
        struct dry_pool_explanation e = explain(&run, MIB, 0);
        assert_int_equal(dry_pool_empty_cache(run.pool), DRY_OK);
        assert_true(e.reserved_bytes - e.releasable_bytes ==
                    (uint64_t)stats_of(&run).reserved_bytes.all.current);
        some += e.releasable_bytes > 0;
        pool_run_end(&run);
    }
    assert_true(some > 50);
}

static void
what_is_said_to_fit_does(void **state)
{
    (void)state;
    size_t from_holes = 0;
    for (size_t i = 0; i < 2000; i++) {
        struct pool_run run;
        run_begin(&run, i);
        uint64_t stream = run.is_simple ? 0 : i % 3, address;
        struct dry_pool_explanation e = explain(&run, 2 * MIB, stream);
        from_holes += e.would_fit > 0 && e.would_fit == e.largest_hole;
        if (e.would_fit > 0 &&
            dry_pool_alloc(run.pool, e.would_fit, stream, &address) != DRY_OK)
            fail_msg("run %zu: %llu bytes do not fit", i,
                     (unsigned long long)e.would_fit);
        pool_run_end(&run);
    }
    assert_true(from_holes > 0);
}

static bool
is_stream_1(void *self, uint64_t stream)
{
    (void)self;
    return stream == 1;
}

/* What the captured stream freed serves nobody else, and does not go back. */
static void
what_is_said_amid_a_capture_holds(void **state)
{
    (void)state;
    size_t some = 0;
    for (size_t i = 0; i < 4000; i++) {
        struct pool_run run;
        size_t way = run_begin(&run, i / 4);
        struct dry_stream_filter filter = {.covers = is_stream_1};
        assert_int_equal(dry_pool_begin_capture(run.pool, &filter), DRY_OK);
        uint64_t stream = i % 4, address;
        struct dry_pool_explanation e = explain(&run, 2 * MIB, stream);
        some += e.releasable_bytes > 0 && e.would_fit > 0;
        if (stream == 3) {
            assert_int_equal(dry_pool_empty_cache(run.pool), DRY_OK);
            assert_true(e.reserved_bytes - e.releasable_bytes >=
                        (uint64_t)stats_of(&run).reserved_bytes.all.current);
        } else if (e.would_fit > 0 &&
                   dry_pool_alloc(run.pool, e.would_fit, stream, &address) != DRY_OK) {
            fail_msg("run %zu, %s: %llu bytes do not fit", i, ways[way].conf,
                     (unsigned long long)e.would_fit);
        }
        pool_run_end(&run);
    }
    assert_true(some > 50);
}

/*
 * Paged has tried everything before it fails. (PyTorch's rules do not look again for what the
 * last waiting freed.)
 */
static void
what_does_not_fit_does_not_fit_again(void **state)
{
    (void)state;
    size_t failures = 0;
    for (size_t i = 0; i < 1000; i++) {
        struct pool_run run;
        size_t way = run_begin(&run, i);
        uint64_t stream = run.is_simple ? 0 : i % 3, address;
        struct dry_pool_explanation e = explain(&run, 2 * MIB, stream);
        uint64_t more = e.would_fit + e.would_fit / 8 + 512;
        if (ways[way].placement == DRY_PLACEMENT_PAGED &&
            dry_pool_alloc(run.pool, more, stream, &address) == DRY_ERR_NO_SPACE) {
            failures++;
            assert_int_equal(dry_pool_alloc(run.pool, more, stream, &address),
                             DRY_ERR_NO_SPACE);
        }
        pool_run_end(&run);
    }
    assert_true(failures > 100);
}

/* Where nothing grows and nothing is pending, it is the most there is. */
static void
more_than_is_said_does_not_fit(void **state)
{
    (void)state;
    for (size_t i = 0; i < 100; i++) {
        struct pool_run run;
        uint64_t address;
        static const size_t exact[] = {0, 4, REJECTING};
        const char *conf = ways[exact[i % 3]].conf;
        pool_run_begin(&run, DRY_PLACEMENT_TORCH, conf, CAPACITY, NULL);
        run.is_simple = true;
        pool_run_steps(&run, 1 + i, 300);
        struct dry_pool_explanation e = explain(&run, 5 * MIB, 0);
        assert_true(e.pending_bytes == 0);
        assert_int_equal(dry_pool_alloc(run.pool, e.would_fit + 512, 0, &address),
                         e.would_fit < MIB ? DRY_OK : DRY_ERR_NO_SPACE);
        pool_run_end(&run);
    }
}

/* Each has PyTorch's other text, and is counted. */
static void
rejections_are_foretold(void **state)
{
    (void)state;
    size_t rejected = 0, served = 0;
    for (size_t i = 0; i < 200; i++) {
        struct pool_run run;
        uint64_t address;
        pool_run_begin(&run, DRY_PLACEMENT_TORCH, ways[REJECTING].conf, CAPACITY, NULL);
        run.is_simple = i % 2;
        pool_run_steps(&run, 1 + i, 300);
        uint64_t size = (1 + i % 40) * MIB;
        bool is_rejected = explain(&run, size, 0).is_rejected;
        int64_t before = stats_of(&run).num_oom_rejections;
        if (dry_pool_alloc(run.pool, size, 0, &address) == DRY_OK) {
            served++;
            assert_true(stats_of(&run).num_oom_rejections == before);
        } else {
            rejected += is_rejected ? 1 : 0;
            assert_true(stats_of(&run).num_oom_rejections == before + is_rejected);
        }
        pool_run_end(&run);
    }
    assert_true(rejected > 20 && served > 20);
    struct pool_run run;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", CAPACITY, NULL);
    assert_false(explain(&run, 2 * CAPACITY, 0).is_rejected);
    pool_run_end(&run);
}

static void
holes_serve_without_the_device(void **state)
{
    (void)state;
    size_t tried = 0;
    for (size_t i = 0; i < 400; i++) {
        struct pool_run run;
        size_t way = run_begin(&run, i);
        uint64_t stream = run.is_simple ? 0 : i % 3, address;
        struct dry_pool_explanation e = explain(&run, 2 * MIB, stream);
        int64_t calls = stats_of(&run).num_device_alloc;
        uint64_t block = dry_pool_round_size(run.pool, e.largest_hole);
        if (e.largest_hole > 2 * MIB && block == e.largest_hole) {
            assert_int_equal(dry_pool_alloc(run.pool, e.largest_hole, stream, &address),
                             DRY_OK);
            /* Paged may prefer new pages to a block of another stream. */
            if (ways[way].placement == DRY_PLACEMENT_TORCH)
                assert_int_equal(stats_of(&run).num_device_alloc, calls);
            tried++;
        }
        pool_run_end(&run);
    }
    assert_true(tried > 100);
}

static void
sums_agree_with_the_statistics(void **state)
{
    (void)state;
    for (size_t i = 0; i < 1000; i++) {
        struct pool_run run;
        size_t way = run_begin(&run, i);
        struct dry_pool_explanation e = explain(&run, MIB, 0);
        struct dry_stats stats = stats_of(&run);
        uint64_t active = (uint64_t)stats.active_bytes.all.current;
        assert_true(e.allocated_bytes == (uint64_t)stats.allocated_bytes.all.current);
        assert_true(e.pending_bytes == active - e.allocated_bytes);
        assert_true(e.free_bytes == CAPACITY - e.reserved_bytes);
        assert_true(e.limit_bytes == (ways[way].is_halved ? CAPACITY / 2 : UINT64_MAX));
        assert_true(e.largest_hole <= e.largest_hole_any);
        assert_true(e.pinner_bytes <= e.allocated_bytes);
        if (run.is_simple) /* nothing pending, nothing private */
            assert_true(e.reserved_bytes ==
                        e.allocated_bytes + e.releasable_bytes + e.pinned_bytes);
        pool_run_end(&run);
    }
}

static void
request_is_measured_as_pytorch_does(void **state)
{
    (void)state;
    struct pool_run run;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", CAPACITY, NULL);
    assert_true(explain(&run, 1, 0).segment_size == 2 * MIB);
    assert_true(explain(&run, 1536 * KIB, 0).segment_size == 20 * MIB);
    assert_true(explain(&run, 11 * MIB, 0).segment_size == 12 * MIB);
    assert_true(explain(&run, 0, 0).would_fit == CAPACITY);
    struct dry_pool_explanation e = DRY_INIT(struct dry_pool_explanation);
    assert_int_equal(dry_pool_explain(run.pool, UINT64_C(1) << 60, 0, &e),
                     DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_explain(run.pool, UINT64_MAX, 0, &e), DRY_ERR_ARGUMENT);
    pool_run_end(&run);
}

static void
device_without_limit_is_no_overflow(void **state)
{
    (void)state;
    struct pool_run run;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", DRY_SIM_UNLIMITED, NULL);
    pool_run_steps(&run, 1, 100);
    struct dry_pool_explanation e = explain(&run, MIB, 0);
    assert_true(e.would_fit > UINT64_C(1) << 59 && e.would_fit < UINT64_C(1) << 60);
    pool_run_end(&run);
}

static void
private_pool_in_scope_is_looked_at(void **state)
{
    (void)state;
    struct pool_run run;
    struct dry_pool_id id = {0, 5};
    uint64_t first, second;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", CAPACITY, NULL);
    assert_int_equal(dry_pool_open_private(run.pool, id, 0), DRY_OK);
    assert_int_equal(dry_pool_begin_private(run.pool, id, NULL), DRY_OK);
    assert_int_equal(dry_pool_alloc(run.pool, 3 * MIB, 0, &first), DRY_OK);
    assert_int_equal(dry_pool_alloc(run.pool, 3 * MIB, 0, &second), DRY_OK);
    assert_true(explain(&run, 2 * MIB, 0).largest_hole == 14 * MIB);
    assert_int_equal(dry_pool_end_private(run.pool, id), DRY_OK);
    struct dry_pool_explanation e = explain(&run, 2 * MIB, 0);
    assert_true(e.largest_hole == 0 && e.largest_hole_any == 14 * MIB);
    assert_true(e.private_free_bytes == 14 * MIB && e.releasable_bytes == 0);
    pool_run_end(&run);
}

static void
no_memory_is_said(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
        struct pool_run run;
        struct dry_pool_explanation e = {.struct_size = sizeof e, .size = 77};
        pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", CAPACITY, &memory);
        pool_run_steps(&run, 1, 100);
        fm.left = n;
        enum dry_status status = dry_pool_explain(run.pool, MIB, 0, &e);
        bool failed = fm.failed;
        fm.failed = false;
        fm.left = SIZE_MAX;
        if (failed) {
            assert_int_equal(status, DRY_ERR_MEMORY);
            assert_int_equal(e.size, 77);
        }
        pool_run_end(&run);
        failing_memory_finish(&fm);
        if (!failed)
            break;
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_are_pinned_by_all_in_them),
        cmocka_unit_test(expandable_segments_are_pinned_by_the_page),
        cmocka_unit_test(private_pools_give_nothing_back),
        cmocka_unit_test(only_the_own_stream_serves),
        cmocka_unit_test(empty_cache_gives_back_what_was_said),
        cmocka_unit_test(what_is_said_to_fit_does),
        cmocka_unit_test(what_is_said_amid_a_capture_holds),
        cmocka_unit_test(what_does_not_fit_does_not_fit_again),
        cmocka_unit_test(more_than_is_said_does_not_fit),
        cmocka_unit_test(rejections_are_foretold),
        cmocka_unit_test(holes_serve_without_the_device),
        cmocka_unit_test(sums_agree_with_the_statistics),
        cmocka_unit_test(request_is_measured_as_pytorch_does),
        cmocka_unit_test(device_without_limit_is_no_overflow),
        cmocka_unit_test(private_pool_in_scope_is_looked_at),
        cmocka_unit_test(no_memory_is_said),
    };
    return cmocka_run_group_tests_name("pool_explain", tests, NULL, NULL);
}
