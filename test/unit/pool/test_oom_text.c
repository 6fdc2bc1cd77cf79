/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The out-of-memory text: PyTorch's characters, read back by our own reader with the same
 * numbers, cut at any length.
 */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/message.h>
#include <drystone/pool.h>

#include "support/pool_run.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)
#define TEXT_BYTES 4096

/* A device of 16 GiB with 4 GiB in pieces, the usual case. */
static const struct dry_pool_explanation fragmented = {
    .struct_size = sizeof fragmented,
    .size = 3 * GIB - 5,
    .segment_size = 3 * GIB,
    .total_bytes = 16 * GIB,
    .free_bytes = 1536 * MIB,
    .limit_bytes = UINT64_MAX,
    .allocated_bytes = 10 * GIB,
    .reserved_bytes = 14 * GIB,
    .largest_hole = 512 * MIB,
    .largest_hole_any = 600 * MIB,
    .releasable_bytes = 0,
    .pending_bytes = 20 * MIB,
    .pinned_bytes = 4 * GIB,
    .pinner_bytes = 8 * KIB,
    .pinner_count = 16,
    .largest_pinner_address = 0x7f0000000200,
    .largest_pinner_hole = 1 * GIB,
    .would_fit = 1536 * MIB,
};

#define HINT_OFF                                                                         \
    " If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF="  \
    "expandable_segments:True to avoid fragmentation.  See documentation for Memory "    \
    "Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html"                  \
    "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
#define HINT_ON                                                                          \
    " expandable_segments is enabled. If instead the process is running out of virtual " \
    "address space (VSZ), expandable segments may be over-reserving VA (each segment "   \
    "reserves ~9/8 of device memory, times the number of streams); reduce it via "       \
    "PYTORCH_CUDA_ALLOC_CONF expandable_segments_reserve / "                             \
    "expandable_segments_reserve_by_class."

static size_t
format(const struct dry_pool_explanation *e, uint64_t process, enum dry_oom_hint hint,
       char *text)
{
    size_t length = dry_pool_format_oom(e, 0, process, hint, text, TEXT_BYTES);
    assert_true(length < TEXT_BYTES);
    assert_int_equal(strlen(text), length);
    return length;
}

/* The first line alone is PyTorch's. */
static void
expect_first_line(const struct dry_pool_explanation *e, uint64_t process,
                  enum dry_oom_hint hint, const char *expected)
{
    char text[TEXT_BYTES];
    format(e, process, hint, text);
    char *end = strchr(text, '\n');
    assert_non_null(end);
    *end = '\0';
    assert_string_equal(text, expected);
}

static void
first_line_is_pytorchs(void **state)
{
    (void)state;
    expect_first_line(&fragmented, 0, DRY_OOM_HINT_EXPANDABLE,
                      "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total "
                      "capacity of 16.00 GiB of which 1.50 GiB is free. Of the allocated "
                      "memory 10.00 GiB is allocated by PyTorch, and 4.00 GiB is "
                      "reserved by PyTorch but unallocated." HINT_OFF);
}

static void
parts_appear_where_they_have_something_to_say(void **state)
{
    (void)state;
    struct dry_pool_explanation e = fragmented;
    e.limit_bytes = 15 * GIB;
    e.private_free_bytes = 512 * MIB;
    expect_first_line(&e, 14 * GIB + 512 * MIB, DRY_OOM_HINT_RESERVE,
                      "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total "
                      "capacity of 16.00 GiB of which 1.50 GiB is free. Including "
                      "non-PyTorch memory, this process has 14.50 GiB memory in use. "
                      "15.00 GiB allowed; Of the allocated memory 10.50 GiB is allocated "
                      "by PyTorch, with 512.00 MiB allocated in private pools (e.g., "
                      "CUDA Graphs), and 3.50 GiB is reserved by PyTorch but "
                      "unallocated." HINT_ON);
    expect_first_line(&fragmented, 0, DRY_OOM_HINT_NONE,
                      "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a total "
                      "capacity of 16.00 GiB of which 1.50 GiB is free. Of the allocated "
                      "memory 10.00 GiB is allocated by PyTorch, and 4.00 GiB is "
                      "reserved by PyTorch but unallocated.");
}

/* The host's memory and a simulated device may have no limit: then no number is made up. */
static void
unknown_capacity_is_called_so(void **state)
{
    (void)state;
    struct dry_pool_explanation e = fragmented;
    struct dry_message m = DRY_INIT(struct dry_message);
    struct dry_error err;
    e.total_bytes = UINT64_MAX;
    e.free_bytes = UINT64_MAX - e.reserved_bytes;
    e.limit_bytes = 15 * GIB;
    expect_first_line(
        &e, 0, DRY_OOM_HINT_NONE,
        "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has no known "
        "capacity. 15.00 GiB allowed; Of the allocated memory 10.00 GiB is "
        "allocated by PyTorch, and 4.00 GiB is reserved by PyTorch but "
        "unallocated.");
    char text[TEXT_BYTES];
    size_t length = format(&e, 0, DRY_OOM_HINT_EXPANDABLE, text);
    assert_int_equal(dry_message_parse(text, length, NULL, &m, &err), DRY_OK);
    assert_int_equal(m.form, DRY_MESSAGE_MODERN);
    assert_false(m.is_cut);
    assert_int_equal(m.total.known, DRY_MESSAGE_ABSENT);
    assert_int_equal(m.free.known, DRY_MESSAGE_ABSENT);
    assert_int_equal(m.allowed.bytes, 15 * GIB);
}

static void
rejection_has_a_text_of_its_own(void **state)
{
    (void)state;
    struct dry_pool_explanation e = fragmented;
    struct dry_message m = DRY_INIT(struct dry_message);
    struct dry_error err;
    e.is_rejected = true;
    expect_first_line(
        &e, 0, DRY_OOM_HINT_EXPANDABLE,
        "CUDA out of memory. Allocation was preemptively rejected because it "
        "would exceed per_process_memory_fraction limit. Requested size: "
        "3.00 GiB");
    char text[TEXT_BYTES];
    size_t length = format(&e, 0, DRY_OOM_HINT_EXPANDABLE, text);
    assert_int_equal(dry_message_parse(text, length, NULL, &m, &err), DRY_OK);
    assert_int_equal(m.form, DRY_MESSAGE_REJECTED);
}

/* PyTorch prints the limit of a unit in the unit below. */
static void
units_change_above_their_limits(void **state)
{
    (void)state;
    static const struct {
        uint64_t bytes;
        const char *text;
    } sizes[] = {
        {0, "0 bytes"},
        {1024, "1024 bytes"},
        {1025, "1.00 KiB"},
        {MIB, "1024.00 KiB"},
        {MIB + 1, "1.00 MiB"},
        {GIB, "1024.00 MiB"},
        {GIB + 512 * KIB, "1.00 GiB"},
        {20 * MIB, "20.00 MiB"},
        {UINT64_MAX, "17179869184.00 GiB"},
    };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct dry_pool_explanation e = fragmented;
        e.segment_size = sizes[i].bytes;
        char text[TEXT_BYTES], expected[128];
        format(&e, 0, DRY_OOM_HINT_EXPANDABLE, text);
        snprintf(expected, sizeof expected,
                 "CUDA out of memory. Tried to allocate %s. GPU 0 ", sizes[i].text);
        assert_memory_equal(text, expected, strlen(expected));
    }
}

static void
what_it_lacks_follows_line_by_line(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    format(&fragmented, 0, DRY_OOM_HINT_EXPANDABLE, text);
    assert_string_equal(strchr(text, '\n'),
                        "\nRequest: 3.00 GiB. The largest that would fit now: 1.50 GiB."
                        "\nLargest free block it could have had: 512.00 MiB; of any "
                        "stream and pool: 600.00 MiB."
                        "\nempty_cache() would give back 0 bytes; 20.00 MiB are freed "
                        "and wait for streams."
                        "\nPinned: 4.00 GiB are free around 16 blocks in use (8.00 KiB) "
                        "and cannot go back before those do."
                        "\nThe worst of them, at 0x7f0000000200, stands in a hole of "
                        "1024.00 MiB.");
    struct dry_pool_explanation e = fragmented;
    e.pinned_bytes = 0;
    format(&e, 0, DRY_OOM_HINT_EXPANDABLE, text);
    assert_null(strstr(text, "Pinned"));
    assert_null(strstr(text, "worst"));
}

static void
any_room_is_enough(void **state)
{
    (void)state;
    char whole[TEXT_BYTES];
    size_t length = format(&fragmented, GIB, DRY_OOM_HINT_EXPANDABLE, whole);
    for (size_t capacity = 0; capacity <= length + 2; capacity++) {
        char *text = malloc(capacity + 1);
        assert_non_null(text);
        text[capacity] = 'x';
        assert_int_equal(dry_pool_format_oom(&fragmented, 0, GIB, DRY_OOM_HINT_EXPANDABLE,
                                             capacity ? text : NULL, capacity),
                         length);
        assert_int_equal(text[capacity], 'x');
        size_t shown = capacity > length ? length : capacity ? capacity - 1 : 0;
        if (capacity > 0) {
            assert_memory_equal(text, whole, shown);
            assert_int_equal(text[shown], '\0');
        }
        free(text);
    }
}

/* --- read back ---------------------------------------------------------------------------- */

static uint64_t
random_size(struct random *r)
{
    return random_next(r) >> (16 + random_below(r, 48));
}

static void
expect_size(const struct dry_message_size *size, uint64_t bytes, const char *what)
{
    if (size->known != DRY_MESSAGE_KNOWN || bytes < size->low || bytes > size->high)
        fail_msg("%s: %llu read as %llu", what, (unsigned long long)bytes,
                 (unsigned long long)size->bytes);
}

static struct dry_pool_explanation
random_explanation(struct random *r)
{
    struct dry_pool_explanation e = {
        .struct_size = sizeof e,
        .size = random_size(r),
        .segment_size = random_size(r),
        .total_bytes = random_size(r),
        .free_bytes = random_size(r),
        .limit_bytes = random_below(r, 2) ? UINT64_MAX : random_size(r),
        .allocated_bytes = random_size(r),
        .private_free_bytes = random_below(r, 2) ? 0 : 1 + random_size(r),
        .largest_hole = random_size(r),
        .largest_hole_any = random_size(r),
        .releasable_bytes = random_size(r),
        .pending_bytes = random_size(r),
        .pinned_bytes = random_below(r, 2) ? 0 : random_size(r),
        .pinner_bytes = random_size(r),
        .pinner_count = random_size(r),
        .largest_pinner_address = random_next(r),
        .largest_pinner_hole = random_size(r),
        .would_fit = random_size(r),
    };
    e.reserved_bytes = e.allocated_bytes + e.private_free_bytes + random_size(r);
    return e;
}

static void
our_reader_finds_the_same_numbers(void **state)
{
    (void)state;
    struct random r;
    random_init(&r, 4711);
    for (int i = 0; i < 3000; i++) {
        struct dry_pool_explanation e = random_explanation(&r);
        int32_t device = (int32_t)random_below(&r, 100);
        uint64_t process = random_below(&r, 2) ? 0 : 1 + random_size(&r);
        enum dry_oom_hint hint = (enum dry_oom_hint)random_below(&r, 3);
        char text[TEXT_BYTES];
        size_t length = dry_pool_format_oom(&e, device, process, hint, text, sizeof text);
        struct dry_message m = DRY_INIT(struct dry_message);
        struct dry_error err;
        assert_int_equal(dry_message_parse(text, length, NULL, &m, &err), DRY_OK);
        assert_int_equal(m.form, DRY_MESSAGE_MODERN);
        assert_false(m.is_cut);
        assert_int_equal(m.device, device);
        uint64_t allocated = e.allocated_bytes + e.private_free_bytes;
        expect_size(&m.tried, e.segment_size, "tried");
        expect_size(&m.total, e.total_bytes, "total");
        expect_size(&m.free, e.free_bytes, "free");
        expect_size(&m.allocated, allocated, "allocated");
        expect_size(&m.unallocated, e.reserved_bytes - allocated, "unallocated");
        assert_int_equal(m.allowed.known != DRY_MESSAGE_ABSENT,
                         e.limit_bytes != UINT64_MAX);
        if (e.limit_bytes != UINT64_MAX)
            expect_size(&m.allowed, e.limit_bytes, "allowed");
        assert_int_equal(m.process.known != DRY_MESSAGE_ABSENT, process != 0);
        if (process)
            expect_size(&m.process, process, "process");
        assert_int_equal(m.private_pools.known != DRY_MESSAGE_ABSENT,
                         e.private_free_bytes != 0);
        if (e.private_free_bytes)
            expect_size(&m.private_pools, e.private_free_bytes, "private pools");
        assert_int_equal(m.reserved.known, DRY_MESSAGE_ABSENT);
        assert_int_equal(m.other_count, 0);
        static const uint32_t hints[] = {
            [DRY_OOM_HINT_EXPANDABLE] = DRY_MESSAGE_HINT_EXPANDABLE,
            [DRY_OOM_HINT_RESERVE] = DRY_MESSAGE_HINT_RESERVE};
        assert_int_equal(m.hints, hints[hint]);
    }
}

/* --- a pool that fails -------------------------------------------------------------------- */

/* Every second of 40 blocks of 1.5 MiB goes: 30 MiB are free, in pieces. */
static void
failure_of_a_pool_is_told_and_judged(void **state)
{
    (void)state;
    struct pool_run run;
    uint64_t blocks[40], address;
    struct dry_pool_explanation e = DRY_INIT(struct dry_pool_explanation);
    char text[TEXT_BYTES];
    struct dry_message m = DRY_INIT(struct dry_message);
    struct dry_message_judgement j = DRY_INIT(struct dry_message_judgement);
    struct dry_error err;
    pool_run_begin(&run, DRY_PLACEMENT_TORCH, "", 64 * MIB, NULL);
    for (int i = 0; i < 39; i++)
        assert_int_equal(dry_pool_alloc(run.pool, 1536 * KIB, 0, &blocks[i]), DRY_OK);
    for (int i = 0; i < 39; i += 2)
        assert_int_equal(dry_pool_free(run.pool, blocks[i]), DRY_OK);
    assert_int_equal(dry_pool_alloc(run.pool, 12 * MIB, 0, &address), DRY_ERR_NO_SPACE);
    assert_int_equal(dry_pool_explain(run.pool, 12 * MIB, 0, &e), DRY_OK);
    assert_true(e.segment_size == 12 * MIB && e.releasable_bytes == 0);
    /* The last block of a segment is not split: 2 MiB, and one such stays. */
    assert_true(e.allocated_bytes == 29 * MIB && e.reserved_bytes == 60 * MIB);
    assert_true(e.pinned_bytes == 31 * MIB && e.pinner_count == 19);
    assert_true(e.largest_hole == 2 * MIB && e.would_fit == e.largest_hole);
    size_t length =
        dry_pool_format_oom(&e, 0, 0, DRY_OOM_HINT_EXPANDABLE, text, sizeof text);
    assert_int_equal(dry_message_parse(text, length, NULL, &m, &err), DRY_OK);
    expect_size(&m.free, 4 * MIB, "free");
    expect_size(&m.allocated, 29 * MIB, "allocated");
    expect_size(&m.unallocated, e.pinned_bytes, "unallocated");
    dry_message_judge(&m, &j);
    assert_int_equal(j.cause, DRY_CAUSE_FRAGMENTATION);
    pool_run_end(&run);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_line_is_pytorchs),
        cmocka_unit_test(parts_appear_where_they_have_something_to_say),
        cmocka_unit_test(unknown_capacity_is_called_so),
        cmocka_unit_test(rejection_has_a_text_of_its_own),
        cmocka_unit_test(units_change_above_their_limits),
        cmocka_unit_test(what_it_lacks_follows_line_by_line),
        cmocka_unit_test(any_room_is_enough),
        cmocka_unit_test(our_reader_finds_the_same_numbers),
        cmocka_unit_test(failure_of_a_pool_is_told_and_judged),
    };
    return cmocka_run_group_tests_name("oom_text", tests, NULL, NULL);
}
