/* SPDX-License-Identifier: Apache-2.0 */
#include <drystone/pinned.h>

#include "support/cmocka.h"
#include "support/failing_memory.h"
#include "support/fake_pin.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/bits.h"
#include "host/pinned/pinned.h"
#include "host/pinned/pinned_heap.h"
#include "host/pinned/pinned_state.h"

#define NO_STREAM DRY_PINNED_NO_STREAM

/* A cache on a fake pin: arenas of 4 MiB side by side, everything of one arena, no small. */
struct fixture {
    struct fake_pin fake;
    struct dry_pinned_options options;
    struct dry_pinned *pinned;
};

static void
prepare(struct fixture *f)
{
    fake_pin_init(&f->fake, 1);
    f->fake.is_plain = true;
    dry_pinned_options_init(&f->options);
    f->options.arena_bytes = 4 * DRYI_MIB;
    f->options.threshold_bytes = 0;
    f->pinned = NULL;
}

static void
begin(struct fixture *f)
{
    assert_int_equal(dryi_pinned_create(&f->options, &f->fake.pin, &f->pinned, NULL),
                     DRY_OK);
}

static void
end(struct fixture *f)
{
    struct dry_error err = {.text = ""};
    if (dry_pinned_check(f->pinned, &err) != DRY_OK)
        fail_msg("%s", err.text);
    dry_pinned_destroy(f->pinned);
    fake_pin_finish(&f->fake);
}

static void *
alloc(struct fixture *f, uint64_t bytes)
{
    void *at = NULL;
    assert_int_equal(dry_pinned_alloc(f->pinned, bytes, NO_STREAM, &at), DRY_OK);
    assert_non_null(at);
    return at;
}

static void
give(struct fixture *f, void *at)
{
    assert_int_equal(dry_pinned_free(f->pinned, at), DRY_OK);
}

/* Work on a stream that uses the block, which is freed then. */
static void
use_and_give(struct fixture *f, void *at, uint64_t stream)
{
    f->fake.issued[stream]++;
    assert_int_equal(dry_pinned_record_stream(f->pinned, at, stream), DRY_OK);
    give(f, at);
}

static struct dry_pinned_stats
stats_of(struct fixture *f)
{
    struct dry_pinned_stats s = DRY_INIT(struct dry_pinned_stats);
    dry_pinned_get_stats(f->pinned, &s);
    return s;
}

/* --- blocks --------------------------------------------------------------------------------- */

static void
a_freed_block_is_handed_out_again(void **state)
{
    (void)state;
    for (int thread_caches = 0; thread_caches < 2; thread_caches++) {
        struct fixture f;
        prepare(&f);
        f.options.thread_caches = thread_caches;
        begin(&f);
        void *first = alloc(&f, 100000);
        give(&f, first);
        assert_ptr_equal(alloc(&f, 100000), first);
        assert_int_equal(f.fake.takes, 1);
        end(&f);
    }
}

static void
what_is_no_block_in_use_is_refused(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    begin(&f);
    char *at = alloc(&f, 3 * 4096);
    char *far = at + (UINT64_C(1) << 30);
    int local;
    assert_int_equal(dry_pinned_free(f.pinned, at + 1), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pinned_free(f.pinned, at + 4096), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pinned_free(f.pinned, at + 12288), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pinned_free(f.pinned, at - 4096), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pinned_free(f.pinned, far), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pinned_free(f.pinned, &local), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pinned_free(f.pinned, (void *)UINTPTR_MAX), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pinned_record_stream(f.pinned, far, 0), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pinned_usable_bytes(f.pinned, at + 4096), 0);
    give(&f, at);
    assert_int_equal(dry_pinned_free(f.pinned, at), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pinned_record_stream(f.pinned, at, 0), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pinned_hold(f.pinned, at, 0), DRY_ERR_ARGUMENT);
    end(&f);
}

static void
of_many_the_wrong_ones_alone_are_refused(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    begin(&f);
    char *at = alloc(&f, 8192);
    void *many[] = {at, NULL, at + 4096, at, alloc(&f, 8192)};
    assert_int_equal(dry_pinned_free_many(f.pinned, many, 5), DRY_ERR_ARGUMENT);
    assert_int_equal(stats_of(&f).active_requests.current, 0);
    assert_int_equal(dry_pinned_free_many(f.pinned, many, 0), DRY_OK);
    end(&f);
}

static void
nothing_is_a_block_of_nothing(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    begin(&f);
    void *at = &f;
    assert_int_equal(dry_pinned_alloc(f.pinned, 0, NO_STREAM, &at), DRY_OK);
    assert_null(at);
    assert_int_equal(dry_pinned_free(f.pinned, NULL), DRY_OK);
    assert_int_equal(dry_pinned_alloc(f.pinned, UINT64_MAX, NO_STREAM, &at),
                     DRY_ERR_ARGUMENT);
    assert_int_equal(f.fake.takes, 0);
    end(&f);
}

static void
rounding_is_a_32nd_at_most(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    begin(&f);
    for (uint64_t bytes = 1; bytes < UINT64_C(1) << 41; bytes += 1 + bytes / 7) {
        uint64_t block = dry_pinned_round_size(f.pinned, bytes);
        assert_true(block >= bytes && block < bytes + 4096 + bytes / 32);
        assert_int_equal(dry_pinned_round_size(f.pinned, block), block);
    }
    end(&f);
}

/* The cell of a giant says at the free what was counted when the giant was handed out. */
static void
the_rounding_of_a_giant_fits_its_cell(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    begin(&f);
    for (uint64_t bytes = 1; bytes < DRYI_PINNED_BYTES_MAX; bytes += 1 + bytes / 7) {
        struct dryi_pinned_request r;
        dryi_pinned_request_init(f.pinned, bytes, &r);
        assert_true(r.requested >= bytes && r.bytes - r.requested <= UINT32_MAX);
        assert_true(r.requested == bytes || r.bytes - bytes > UINT32_MAX);
    }
    end(&f);
}

/* Arenas lie side by side here; what is free in two of them is not one. */
static void
blocks_of_two_ranges_are_never_joined(void **state)
{
    (void)state;
    for (int mode = DRY_PINNED_FIT; mode <= DRY_PINNED_BUDDY; mode++) {
        struct fixture f;
        prepare(&f);
        f.options.mode = (enum dry_pinned_mode)mode;
        f.options.block_bytes = 4 * DRYI_MIB;
        f.options.block_count = 0;
        begin(&f);
        void *at[8];
        for (int i = 0; i < 8; i++)
            at[i] = alloc(&f, DRYI_MIB);
        assert_int_equal(f.fake.takes, 2);
        for (int i = 0; i < 8; i++)
            give(&f, at[i]);
        void *whole = alloc(&f, 4 * DRYI_MIB), *other = alloc(&f, 4 * DRYI_MIB);
        assert_int_equal(f.fake.takes, 2);
        assert_true(fake_pin_holds(&f.fake, (uintptr_t)whole, 4 * DRYI_MIB));
        assert_true(fake_pin_holds(&f.fake, (uintptr_t)other, 4 * DRYI_MIB));
        void *large = alloc(&f, 8 * DRYI_MIB);
        assert_true(fake_pin_holds(&f.fake, (uintptr_t)large, 8 * DRYI_MIB));
        end(&f);
    }
}

/* The comb: every second block is freed, then blocks of twice the size are asked for. */
static void
fragmentation_is_bounded(void **state)
{
    (void)state;
    enum { COUNT = 1024 };
    static void *at[COUNT];
    struct fixture f;
    prepare(&f);
    f.options.arena_bytes = 64 * DRYI_MIB;
    begin(&f);
    size_t live = 0, count = COUNT;
    uint64_t bytes = 64 * DRYI_KIB;
    for (size_t i = 0; i < COUNT; i++)
        at[live++] = alloc(&f, bytes);
    for (int round = 0; round < 5; round++) {
        size_t kept = 0;
        for (size_t i = 0; i < live; i++) {
            if (i % 2)
                give(&f, at[i]);
            else
                at[kept++] = at[i];
        }
        live = kept;
        bytes *= 2;
        count /= 4;
        for (size_t i = 0; i < count; i++)
            at[live++] = alloc(&f, bytes);
    }
    /* Never more than 64 MiB were in use: Robson's bound for n = 32 is 3.5 times that. */
    struct dry_pinned_stats s = stats_of(&f);
    assert_true(s.active_bytes.peak <= (int64_t)(64 * DRYI_MIB));
    assert_true(s.allocated_bytes.peak <= (int64_t)(128 * DRYI_MIB));
    end(&f);
}

/* --- streams -------------------------------------------------------------------------------- */

static void
a_block_waits_for_its_streams(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    begin(&f);
    void *first = alloc(&f, 4 * DRYI_MIB);
    f.fake.issued[1]++;
    assert_int_equal(dry_pinned_record_stream(f.pinned, first, 1), DRY_OK);
    use_and_give(&f, first, 2);
    assert_int_equal(stats_of(&f).pending_bytes, 4 * DRYI_MIB);
    f.fake.done[1] = 1;
    void *second = alloc(&f, 4 * DRYI_MIB);
    assert_ptr_not_equal(first, second);
    f.fake.done[2] = 1;
    assert_ptr_equal(alloc(&f, 4 * DRYI_MIB), first);
    end(&f);
}

static void
the_stream_of_a_request_counts(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    begin(&f);
    void *at = NULL;
    f.fake.issued[3] = 1;
    assert_int_equal(dry_pinned_alloc(f.pinned, 4096, 3, &at), DRY_OK);
    give(&f, at);
    assert_int_equal(f.fake.records, 1);
    assert_ptr_not_equal(alloc(&f, 4096), at);
    end(&f);
}

static void
a_slow_stream_does_not_hold_up_a_fast_one(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    begin(&f);
    void *slow = alloc(&f, 2 * DRYI_MIB), *fast = alloc(&f, 2 * DRYI_MIB);
    use_and_give(&f, slow, 0);
    use_and_give(&f, fast, 1);
    f.fake.done[1] = 1;
    assert_ptr_equal(alloc(&f, 2 * DRYI_MIB), fast);
    assert_int_equal(f.fake.takes, 1);
    end(&f);
}

static void
blocks_are_joined_after_their_events(void **state)
{
    (void)state;
    for (int mode = DRY_PINNED_FIT; mode <= DRY_PINNED_BUDDY; mode++) {
        struct fixture f;
        prepare(&f);
        f.options.mode = (enum dry_pinned_mode)mode;
        f.options.block_bytes = 4 * DRYI_MIB;
        f.options.block_count = 0;
        begin(&f);
        void *at[4];
        for (int i = 0; i < 4; i++)
            at[i] = alloc(&f, DRYI_MIB);
        for (int i = 0; i < 4; i++)
            use_and_give(&f, at[i], (uint64_t)i % 2);
        f.fake.done[0] = f.fake.issued[0];
        f.fake.done[1] = f.fake.issued[1];
        (void)alloc(&f, 4 * DRYI_MIB);
        assert_int_equal(f.fake.takes, 1);
        end(&f);
    }
}

static void
one_event_stands_for_many_frees(void **state)
{
    (void)state;
    void *at[12];
    struct fixture f;
    prepare(&f);
    f.options.event_batch = 4;
    begin(&f);
    for (int i = 0; i < 12; i++)
        at[i] = alloc(&f, 8192);
    for (int i = 0; i < 8; i++)
        use_and_give(&f, at[i], 0);
    assert_int_equal(f.fake.records, 2);
    for (int i = 8; i < 12; i++) {
        f.fake.issued[1]++;
        assert_int_equal(dry_pinned_record_stream(f.pinned, at[i], 1), DRY_OK);
    }
    assert_int_equal(dry_pinned_free_many(f.pinned, &at[8], 4), DRY_OK);
    assert_int_equal(f.fake.records, 3);
    f.fake.done[0] = f.fake.issued[0];
    f.fake.done[1] = f.fake.issued[1];
    assert_int_equal(dry_pinned_trim(f.pinned, 0), DRY_OK);
    assert_int_equal(f.fake.returns, 3);
    assert_int_equal(f.fake.range_count, 0);
    end(&f);
}

/* A miss looks at all of them, however many they are. */
static void
no_passed_event_is_overlooked(void **state)
{
    (void)state;
    static void *at[1024];
    struct fixture f;
    prepare(&f);
    f.options.thread_caches = false;
    begin(&f);
    for (int i = 0; i < 1024; i++)
        at[i] = alloc(&f, 4096);
    for (int i = 0; i < 1024; i++)
        use_and_give(&f, at[i], (uint64_t)i % 3);
    for (int i = 0; i < 3; i++)
        f.fake.done[i] = f.fake.issued[i];
    (void)alloc(&f, 4 * DRYI_MIB);
    assert_int_equal(f.fake.takes, 1);
    assert_int_equal(f.fake.returns, 1024);
    end(&f);
}

static void
an_event_that_is_refused_is_tried_again(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    begin(&f);
    void *at = alloc(&f, 4 * DRYI_MIB);
    f.fake.refuse_record = 0;
    use_and_give(&f, at, 0);
    f.fake.done[0] = 1;
    assert_int_equal(stats_of(&f).num_event_failures, 1);
    assert_ptr_equal(alloc(&f, 4 * DRYI_MIB), at);
    assert_int_equal(stats_of(&f).num_events, 1);
    end(&f);
}

static void
what_is_lost_comes_back_only_when_told(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    begin(&f);
    void *at = alloc(&f, 4 * DRYI_MIB);
    use_and_give(&f, at, 0);
    f.fake.is_broken[0] = true;
    assert_ptr_not_equal(alloc(&f, 4 * DRYI_MIB), at);
    assert_int_equal(stats_of(&f).lost_bytes, 4 * DRYI_MIB);
    f.fake.is_broken[0] = false;
    f.fake.done[0] = 1;
    assert_ptr_not_equal(alloc(&f, 4 * DRYI_MIB), at);
    assert_int_equal(dry_pinned_stream_done(f.pinned, 0), DRY_OK);
    assert_ptr_equal(alloc(&f, 4 * DRYI_MIB), at);
    end(&f);
}

static void
a_graph_keeps_its_blocks(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    begin(&f);
    void *at = alloc(&f, 4 * DRYI_MIB);
    assert_int_equal(dry_pinned_hold(f.pinned, at, 7), DRY_OK);
    assert_int_equal(dry_pinned_hold(f.pinned, at, 8), DRY_OK);
    give(&f, at);
    assert_int_equal(stats_of(&f).held_bytes, 8 * DRYI_MIB); /* once a graph */
    assert_int_equal(dry_pinned_release(f.pinned, 7), DRY_OK);
    assert_int_equal(dry_pinned_release(f.pinned, 99), DRY_OK);
    void *other = alloc(&f, 4 * DRYI_MIB);
    assert_ptr_not_equal(other, at);
    assert_int_equal(dry_pinned_release(f.pinned, 8), DRY_OK);
    assert_ptr_equal(alloc(&f, 4 * DRYI_MIB), at);
    /* Released before it is freed, and the number comes again. */
    assert_int_equal(dry_pinned_hold(f.pinned, other, 7), DRY_OK);
    assert_int_equal(dry_pinned_release(f.pinned, 7), DRY_OK);
    assert_int_equal(dry_pinned_hold(f.pinned, at, 7), DRY_OK);
    give(&f, other);
    assert_ptr_equal(alloc(&f, 4 * DRYI_MIB), other);
    give(&f, at);
    assert_ptr_not_equal(alloc(&f, 4 * DRYI_MIB), at);
    assert_int_equal(f.fake.records, 0);
    end(&f);
}

/* --- what is pinned ------------------------------------------------------------------------- */

struct visit {
    struct fixture *f;
    void *block; /* to be freed, with a use of stream 0 */
    bool was_there;
};

static void
come_by(void *self)
{
    struct visit *v = self;
    struct dry_error err = {.text = ""};
    if (v->was_there)
        return;
    v->was_there = true;
    give(v->f, alloc(v->f, 8192));
    use_and_give(v->f, v->block, 0);
    assert_int_equal(stats_of(v->f).num_events, 0);
    if (dry_pinned_check(v->f->pinned, &err) != DRY_OK)
        fail_msg("%s", err.text);
    assert_int_equal(dry_pinned_stream_done(v->f->pinned, 1), DRY_OK);
}

/* A driver that is slow to record an event holds up nobody else. */
static void
an_event_is_recorded_without_the_lock(void **state)
{
    (void)state;
    for (uint64_t refused = 0; refused < 3; refused++) {
        struct fixture f;
        prepare(&f);
        f.options.thread_caches = false;
        f.fake.refuse_record = refused;
        begin(&f);
        struct visit v = {.f = &f, .block = alloc(&f, 4096)};
        void *first = alloc(&f, 4096);
        f.fake.on_record = come_by;
        f.fake.on_record_self = &v;
        use_and_give(&f, first, 0);
        assert_true(v.was_there);
        assert_int_equal(stats_of(&f).pending_bytes, 8192);
        assert_int_equal(stats_of(&f).num_events, refused);
        f.fake.done[0] = 1; /* of the first block's work alone */
        assert_int_equal(dry_pinned_trim(f.pinned, UINT64_MAX), DRY_OK);
        /* One event refused, the two stand in one later event. */
        assert_int_equal(stats_of(&f).num_events, refused == 0 ? 1 : 2);
        assert_int_equal(stats_of(&f).num_event_failures, refused < 2);
        assert_int_equal(stats_of(&f).pending_bytes, 8192);
        f.fake.done[0] = 2;
        assert_int_equal(dry_pinned_trim(f.pinned, UINT64_MAX), DRY_OK);
        assert_int_equal(stats_of(&f).pending_bytes, 0);
        end(&f);
    }
}

/* A stream that is broken for good is not asked again by each free of whatever block. */
static void
a_refused_event_costs_others_nothing(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    f.fake.refuse_record = 0;
    begin(&f);
    void *at[4];
    for (int i = 0; i < 4; i++)
        at[i] = alloc(&f, 4096);
    use_and_give(&f, at[0], 0);
    assert_int_equal(f.fake.records, 1);
    use_and_give(&f, at[1], 1);
    use_and_give(&f, at[2], 1);
    assert_int_equal(f.fake.records, 3);
    use_and_give(&f, at[3], 0); /* its event stands for the first, too */
    assert_int_equal(f.fake.records, 4);
    f.fake.done[0] = 2;
    f.fake.done[1] = 2;
    assert_int_equal(dry_pinned_trim(f.pinned, UINT64_MAX), DRY_OK);
    assert_int_equal(f.fake.records, 4);
    assert_int_equal(stats_of(&f).pending_bytes, 0);
    end(&f);
}

static void
no_stream_is_none_to_record(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    begin(&f);
    void *at = alloc(&f, 4096);
    assert_int_equal(dry_pinned_record_stream(f.pinned, at, NO_STREAM), DRY_ERR_ARGUMENT);
    give(&f, at);
    assert_int_equal(stats_of(&f).pending_bytes, 0);
    end(&f);
}

static void
clear_gives_back_what_is_idle(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    begin(&f);
    void *first = alloc(&f, 4 * DRYI_MIB), *second = alloc(&f, 4 * DRYI_MIB);
    void *third = alloc(&f, 4 * DRYI_MIB);
    give(&f, first);
    use_and_give(&f, third, 0);
    assert_int_equal(dry_pinned_clear(f.pinned), DRY_OK);
    assert_int_equal(f.fake.range_count, 2);
    assert_true(fake_pin_holds(&f.fake, (uintptr_t)second, 1));
    assert_true(fake_pin_holds(&f.fake, (uintptr_t)third, 1));
    f.fake.done[0] = 1;
    assert_int_equal(dry_pinned_clear(f.pinned), DRY_OK);
    assert_int_equal(f.fake.range_count, 1);
    end(&f);
}

static void
small_blocks_keep_no_large_arena(void **state)
{
    (void)state;
    for (int has_threshold = 0; has_threshold < 2; has_threshold++) {
        struct fixture f;
        prepare(&f);
        f.options.threshold_bytes = has_threshold ? 65536 : 0;
        begin(&f);
        void *large = alloc(&f, 3 * DRYI_MIB), *small = alloc(&f, 1000);
        give(&f, large);
        uint64_t before = f.fake.gives;
        assert_int_equal(dry_pinned_clear(f.pinned), DRY_OK);
        assert_int_equal(f.fake.gives - before, has_threshold);
        assert_int_equal(f.fake.range_count, 1);
        assert_int_equal(dry_pinned_usable_bytes(f.pinned, small),
                         has_threshold ? 1024 : 4096);
        end(&f);
    }
}

static void
what_was_cleared_is_pinned_again_at_once(void **state)
{
    (void)state;
    struct fixture f;
    void *at[6];
    prepare(&f);
    f.options.arena_bytes = 0;
    begin(&f);
    for (int i = 0; i < 6; i++)
        at[i] = alloc(&f, 40 * DRYI_MIB);
    for (int i = 0; i < 6; i++)
        give(&f, at[i]);
    assert_int_equal(dry_pinned_clear(f.pinned), DRY_OK);
    assert_int_equal(f.fake.range_count, 0);
    uint64_t takes = f.fake.takes;
    for (int i = 0; i < 6; i++)
        at[i] = alloc(&f, 40 * DRYI_MIB);
    assert_int_equal(f.fake.takes, takes + 1);
    assert_int_equal(f.fake.taken_bytes, 240 * DRYI_MIB);
    end(&f);
}

static void
the_background_pins_what_was_cleared(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    f.options.in_background = true;
    f.options.warm_bytes = 40 * DRYI_MIB;
    begin(&f);
    void *at[20];
    for (int i = 0; i < 20; i++)
        at[i] = alloc(&f, 4 * DRYI_MIB);
    for (int i = 0; i < 20; i++)
        give(&f, at[i]);
    assert_int_equal(dry_pinned_clear(f.pinned), DRY_OK);
    assert_int_equal(f.fake.range_count, 0);
    at[0] = alloc(&f, 4 * DRYI_MIB);
    while (stats_of(&f).allocated_bytes.current < (int64_t)(80 * DRYI_MIB))
        usleep(1000);
    uint64_t takes = f.fake.takes;
    for (int i = 1; i < 20; i++)
        at[i] = alloc(&f, 4 * DRYI_MIB);
    assert_int_equal(f.fake.takes, takes);
    end(&f);
}

static void
warm_memory_needs_no_pinning(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    f.options.warm_bytes = 10 * DRYI_MIB;
    begin(&f);
    assert_in_range(f.fake.taken_bytes, 10 * DRYI_MIB, 12 * DRYI_MIB);
    uint64_t takes = f.fake.takes;
    (void)alloc(&f, 3 * DRYI_MIB);
    (void)alloc(&f, 3 * DRYI_MIB);
    assert_int_equal(f.fake.takes, takes);
    assert_int_equal(dry_pinned_warm(f.pinned, DRYI_MIB, false, NULL), DRY_OK);
    assert_int_equal(f.fake.takes, takes);
    end(&f);
}

static void
the_background_pins_any_number_of_pieces(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    f.options.arena_bytes = 2 * DRYI_MIB;
    f.options.warm_bytes = 600 * DRYI_MIB;
    f.options.in_background = true;
    begin(&f);
    /* Nobody asks for anything meanwhile: no call of ours fetches what is there. */
    for (int i = 0; i < 600000 && !atomic_load(&f.pinned->pinner.is_done); i++)
        usleep(1000);
    assert_int_equal(stats_of(&f).allocated_bytes.current, 600 * DRYI_MIB);
    assert_int_equal(f.fake.takes, 300);
    assert_int_equal(f.fake.gives, 0);
    end(&f);
}

static void
destroy_ends_a_warm_up(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    f.fake.take_us = 2000;
    f.options.in_background = true;
    f.options.warm_bytes = 400 * DRYI_MIB;
    begin(&f);
    dry_pinned_destroy(f.pinned);
    assert_true(f.fake.takes < 100);
    fake_pin_finish(&f.fake);
}

static void
a_budget_is_kept(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    f.options.budget_bytes = 10 * DRYI_MIB;
    begin(&f);
    struct dry_pinned_explanation e = DRY_INIT(struct dry_pinned_explanation);
    void *first = alloc(&f, 4 * DRYI_MIB), *second = alloc(&f, 4 * DRYI_MIB), *at = NULL;
    assert_int_equal(dry_pinned_alloc(f.pinned, 4 * DRYI_MIB, NO_STREAM, &at),
                     DRY_ERR_NO_SPACE);
    assert_int_equal(dry_pinned_explain(f.pinned, 4 * DRYI_MIB, &e), DRY_OK);
    assert_true(!e.is_hit && !e.would_fit && e.available_bytes == 2 * DRYI_MIB);
    assert_int_equal(e.requested_bytes, 8 * DRYI_MIB);
    give(&f, first);
    give(&f, second);
    assert_int_equal(dry_pinned_trim(f.pinned, UINT64_MAX), DRY_OK);
    assert_int_equal(dry_pinned_alloc(f.pinned, 11 * DRYI_MIB, NO_STREAM, &at),
                     DRY_ERR_NO_SPACE);
    assert_int_equal(f.fake.gives, 0); /* in vain, so nothing goes */
    assert_int_equal(dry_pinned_explain(f.pinned, 8 * DRYI_MIB, &e), DRY_OK);
    assert_true(!e.is_hit && e.would_fit);
    (void)alloc(&f, 8 * DRYI_MIB); /* for which the idle ones go */
    assert_true(f.fake.taken_peak <= 10 * DRYI_MIB);
    end(&f);
}

static void
what_is_too_much_is_not_kept(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    f.options.keep_max_bytes = 6 * DRYI_MIB;
    f.options.cached_max_bytes = 8 * DRYI_MIB;
    begin(&f);
    void *at[4];
    at[0] = alloc(&f, 7 * DRYI_MIB);
    give(&f, at[0]);
    assert_int_equal(f.fake.range_count, 0);
    for (int i = 0; i < 4; i++)
        at[i] = alloc(&f, 4 * DRYI_MIB);
    assert_int_equal(dry_pinned_free_many(f.pinned, at, 4), DRY_OK);
    assert_int_equal(f.fake.range_count, 2);
    end(&f);
}

/* Also not at a thread's hand, where one block would keep an arena. */
static void
nothing_is_kept_where_nothing_is_to_be_cached(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    f.options.cached_max_bytes = 0;
    begin(&f);
    for (uint64_t bytes = 4096; bytes < 64 * DRYI_MIB; bytes *= 4) {
        void *one = alloc(&f, bytes), *two = alloc(&f, bytes);
        give(&f, one);
        give(&f, two);
        assert_int_equal(f.fake.range_count, 0);
    }
    end(&f);
}

/* What waits for a stream when it is freed is idle only later. */
static void
what_is_too_much_goes_after_its_event(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    f.options.keep_max_bytes = 6 * DRYI_MIB;
    begin(&f);
    void *at = alloc(&f, 7 * DRYI_MIB);
    use_and_give(&f, at, 0);
    assert_int_equal(f.fake.range_count, 1);
    assert_int_equal(dry_pinned_stream_done(f.pinned, 0), DRY_OK);
    assert_int_equal(f.fake.range_count, 0);
    end(&f);
}

static void
a_miss_takes_what_other_threads_keep(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    f.options.budget_bytes = 4 * DRYI_MIB;
    begin(&f);
    void *at[8];
    for (int i = 0; i < 8; i++)
        at[i] = alloc(&f, 512 * DRYI_KIB);
    for (int i = 0; i < 8; i++)
        give(&f, at[i]);
    assert_int_equal(stats_of(&f).thread_cache_bytes, 4 * DRYI_MIB);
    (void)alloc(&f, 4 * DRYI_MIB);
    assert_int_equal(stats_of(&f).thread_cache_bytes, 0);
    end(&f);
}

static void
buddies_are_warm_and_powers_of_two(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    f.options.mode = DRY_PINNED_BUDDY;
    f.options.block_bytes = 8 * DRYI_MIB;
    f.options.block_count = 3;
    f.options.threshold_bytes = 64 * DRYI_KIB;
    begin(&f);
    assert_int_equal(f.fake.taken_bytes, 24 * DRYI_MIB);
    void *at = alloc(&f, 5 * DRYI_MIB);
    assert_int_equal(dry_pinned_usable_bytes(f.pinned, at), 8 * DRYI_MIB);
    at = alloc(&f, 20 * DRYI_MIB + 1); /* larger than a block: its own, not rounded so */
    assert_true(dry_pinned_usable_bytes(f.pinned, at) < 21 * DRYI_MIB);
    end(&f);
}

/*
 * The experiment of pytorch #181094, in kind and at its sizes: seven blocks of 4 GiB ahead, 28 GiB
 * of large requests that go, and requests of kilobytes between them that stay. At most
 * `at_once` bytes of the large ones are in use at a time.
 */
struct experiment {
    uint64_t peak_bytes, cleared_bytes, requested_bytes;
};

/* Take large blocks with small ones between them, give the large ones, wait for their streams. */
static void
pass_wave(struct fixture *f, uint64_t bytes)
{
    enum { WAVE_MAX = 512 };
    void *large[WAVE_MAX];
    size_t count = 0;
    for (uint64_t taken = 0; taken < bytes && count < WAVE_MAX;) {
        uint64_t size = (16 * DRYI_MIB) << count % 7; /* to 1 GiB, as rounded */
        taken += size;
        large[count++] = alloc(f, size - size / 5);
        for (uint64_t small = 0; small < size / 10;) {
            uint64_t kilobytes = 64 + random_below(&f->fake.random, 960);
            small += kilobytes * DRYI_KIB;
            (void)alloc(f, kilobytes * DRYI_KIB);
        }
    }
    while (count)
        use_and_give(f, large[--count], 1);
    f->fake.done[1] = f->fake.issued[1];
}

static struct experiment
run_experiment(uint64_t threshold_bytes, uint64_t at_once)
{
    struct fixture f;
    prepare(&f);
    f.options.mode = DRY_PINNED_BUDDY;
    f.options.block_bytes = 4 * DRYI_GIB;
    f.options.block_count = 7;
    f.options.threshold_bytes = threshold_bytes;
    begin(&f);
    for (uint64_t passed = 0; passed < 28 * DRYI_GIB; passed += at_once)
        pass_wave(&f, at_once);
    assert_int_equal(dry_pinned_clear(f.pinned), DRY_OK);
    struct experiment e = {
        .peak_bytes = f.fake.taken_peak,
        .cleared_bytes = f.fake.taken_bytes,
        .requested_bytes = (uint64_t)stats_of(&f).requested_bytes.current,
    };
    assert_true(e.requested_bytes > 2800 * DRYI_MIB);
    end(&f);
    return e;
}

static void
a_threshold_keeps_small_ones_out_of_blocks(void **state)
{
    (void)state;
    struct experiment e = run_experiment(4 * DRYI_MIB, 28 * DRYI_GIB);
    assert_true(e.peak_bytes > 30 * DRYI_GIB);
    assert_true(e.cleared_bytes < e.requested_bytes + e.requested_bytes / 16);
}

static void
without_a_threshold_small_ones_hold_every_block(void **state)
{
    (void)state;
    struct experiment e = run_experiment(0, 28 * DRYI_GIB);
    assert_true(e.peak_bytes > 30 * DRYI_GIB);
    assert_int_equal(e.cleared_bytes, e.peak_bytes);
}

/* The large ones never need more than two blocks, since freed halves are joined. */
static void
small_ones_stay_in_the_blocks_in_use(void **state)
{
    (void)state;
    struct experiment e = run_experiment(0, 4 * DRYI_GIB);
    assert_int_equal(e.peak_bytes, 28 * DRYI_GIB);
    assert_int_equal(e.cleared_bytes, 8 * DRYI_GIB);
}

/* --- statistics ----------------------------------------------------------------------------- */

static void
peaks_are_of_the_sum(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    begin(&f);
    for (int i = 0; i < 50; i++) {
        void *a = alloc(&f, 1000000 + (uint64_t)(i % 5) * 10000);
        give(&f, a);
        void *b = alloc(&f, 100000);
        give(&f, b);
    }
    struct dry_pinned_stats s = stats_of(&f);
    assert_int_equal(s.requested_bytes.peak, 1040000);
    assert_int_equal(s.active_requests.peak, 1);
    assert_int_equal(s.active_requests.allocated, 100);
    assert_int_equal(s.active_requests.freed, 100);
    dry_pinned_reset_peaks(f.pinned);
    dry_pinned_reset_accumulated(f.pinned);
    s = stats_of(&f);
    assert_int_equal(s.requested_bytes.peak, 0);
    assert_int_equal(s.requested_bytes.allocated, 0);
    assert_int_equal(s.num_host_alloc, 0);
    end(&f);
}

struct keys {
    char last[64];
    int count;
    int64_t alloc_count;
};

static void
see_key(void *self, const char *key, int64_t value)
{
    struct keys *k = self;
    assert_true(strcmp(k->last, key) < 0);
    snprintf(k->last, sizeof k->last, "%s", key);
    k->count++;
    if (strcmp(key, "host_alloc_time.count") == 0)
        k->alloc_count = value;
}

static void
keys_are_in_order(void **state)
{
    (void)state;
    struct keys k = {.last = ""};
    struct dry_pinned_stats s = {.struct_size = sizeof s,
                                 .host_alloc_time = {.total = 9, .count = 2}};
    dry_pinned_stats_visit(&s, see_key, &k);
    assert_int_equal(k.count, DRY_PINNED_KEY_COUNT);
    assert_int_equal(k.alloc_count, 2);
}

/* --- options -------------------------------------------------------------------------------- */

static enum dry_status
parse(const char *text, struct dry_pinned_options *o)
{
    dry_pinned_options_init(o);
    return dry_pinned_options_parse(o, text, NULL);
}

static void
options_are_read(void **state)
{
    (void)state;
    struct dry_pinned_options o;
    assert_int_equal(parse("BUDDY_BLOCK_SIZE_MB:4096, BUDDY_BLOCK_COUNT : 7,"
                           "BUDDY_THRESHOLD_MB:4,",
                           &o),
                     DRY_OK);
    assert_int_equal(o.mode, DRY_PINNED_BUDDY);
    assert_int_equal(o.block_bytes, 4 * DRYI_GIB);
    assert_int_equal(o.block_count, 7);
    assert_int_equal(o.threshold_bytes, 4 * DRYI_MIB);
    assert_int_equal(
        parse("pinned_use_background_threads:True,pinned_reserve_segment_size_mb:100,"
              "pinned_max_cached_size_mb:32,pinned_max_round_threshold_mb:16,"
              "pinned_num_register_threads:8,pinned_use_cuda_host_register:False",
              &o),
        DRY_OK);
    assert_true(o.in_background && o.mode == DRY_PINNED_FIT);
    assert_int_equal(o.warm_bytes, 100 * DRYI_MIB);
    assert_int_equal(o.keep_max_bytes, 32 * DRYI_MIB);
    assert_int_equal(parse("mode:fit,backend:lock,node:1,threshold_kb:64,thread_caches:0,"
                           "budget_mb:5,cached_max_mb:6,event_batch:9,arena_mb:64",
                           &o),
                     DRY_OK);
    assert_int_equal(o.backend, DRY_PINNED_LOCK);
    assert_int_equal(o.node, 1);
    assert_int_equal(o.threshold_bytes, 65536);
    assert_int_equal(o.thread_caches, 0);
    assert_int_equal(o.budget_bytes, 5 * DRYI_MIB);
    assert_int_equal(o.cached_max_bytes, 6 * DRYI_MIB);
    assert_int_equal(o.event_batch, 9);
    assert_int_equal(o.arena_bytes, 64 * DRYI_MIB);
}

static void
wrong_options_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "mode:best",       "mode",           "node:1,what:3",
        "block_mb:3",      "block_mb:1",     "block_mb:99999999999999999999999",
        "arena_mb:2000",   "event_batch:0",  "thread_caches:yes",
        "threshold_kb:-1", "threshold_kb:",  ":",
        "node:1 2",        "backend:opencl", "BUDDY_BLOCK_SIZE_MB:12.5",
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct dry_pinned_options o, before;
        struct dry_error err = {.text = ""};
        dry_pinned_options_init(&before);
        memcpy(&o, &before, sizeof o);
        assert_int_equal(dry_pinned_options_parse(&o, wrong[i], &err), DRY_ERR_ARGUMENT);
        assert_memory_equal(&o, &before, sizeof o);
        assert_true(err.text[0] != '\0' && err.offset <= strlen(wrong[i]));
    }
}

static void
create_checks_options(void **state)
{
    (void)state;
    struct fixture f;
    struct dry_error err;
    prepare(&f);
    f.options.arena_bytes = 12345;
    assert_int_equal(dryi_pinned_create(&f.options, &f.fake.pin, &f.pinned, &err),
                     DRY_ERR_ARGUMENT);
    prepare(&f);
    f.options.mode = (enum dry_pinned_mode)9;
    assert_int_equal(dryi_pinned_create(&f.options, &f.fake.pin, &f.pinned, &err),
                     DRY_ERR_ARGUMENT);
    assert_null(f.pinned);
    fake_pin_finish(&f.fake);
}

/* --- what fails ------------------------------------------------------------------------------ */

/* Some of everything; stops at what is not OK. */
static enum dry_status
tell_a_story(struct fixture *f)
{
    enum dry_status status =
        dryi_pinned_create(&f->options, &f->fake.pin, &f->pinned, NULL);
    void *at[40] = {NULL};
    for (size_t i = 0; status == DRY_OK && i < 40; i++) {
        uint64_t bytes = i % 3 ? (i + 1) * 3000 : i * 100000 + 1;
        uint64_t stream = i % 4 ? NO_STREAM : i % 3;
        status = dry_pinned_alloc(f->pinned, bytes, stream, &at[i]);
        if (status == DRY_OK && i % 5 == 0)
            status = dry_pinned_hold(f->pinned, at[i], i % 2);
        if (status == DRY_OK && i % 7 == 6)
            status = dry_pinned_free(f->pinned, at[i - 3]);
    }
    if (status == DRY_OK)
        status = dry_pinned_warm(f->pinned, 40 * DRYI_MIB, false, NULL);
    if (status == DRY_OK)
        status = dry_pinned_clear(f->pinned);
    return status;
}

static void
every_refused_request_for_memory_is_survived(void **state)
{
    (void)state;
    size_t survived = 0, n = 0;
    for (;; n++) {
        struct fixture f;
        struct failing_memory fm;
        prepare(&f);
        struct dry_memory memory = failing_memory_init(&fm, n);
        f.options.memory = &memory;
        f.options.threshold_bytes = 65536;
        enum dry_status status = tell_a_story(&f);
        if (f.pinned)
            assert_int_equal(dry_pinned_check(f.pinned, NULL), DRY_OK);
        dry_pinned_destroy(f.pinned);
        fake_pin_finish(&f.fake);
        failing_memory_finish(&fm);
        if (!fm.failed)
            break;
        survived += status == DRY_OK; /* thread caches can do without */
        assert_true(status == DRY_OK || status == DRY_ERR_MEMORY);
    }
    assert_true(n > 15 && survived <= 1);
}

static void
every_refused_range_is_survived(void **state)
{
    (void)state;
    static const enum dry_status refusals[] = {DRY_ERR_NO_SPACE, DRY_ERR_SYSTEM};
    for (size_t r = 0; r < 2; r++) {
        for (uint64_t n = 0;; n++) {
            struct fixture f;
            prepare(&f);
            f.fake.refuse_take = n;
            f.fake.take_status = refusals[r];
            f.options.warm_bytes = 6 * DRYI_MIB;
            enum dry_status status = tell_a_story(&f);
            if (f.pinned)
                assert_int_equal(dry_pinned_check(f.pinned, NULL), DRY_OK);
            bool was_refused = f.fake.takes > n;
            dry_pinned_destroy(f.pinned);
            fake_pin_finish(&f.fake);
            assert_int_equal(status, was_refused ? refusals[r] : DRY_OK);
            if (!was_refused)
                break;
        }
    }
}

static void
every_refused_event_is_survived(void **state)
{
    (void)state;
    for (uint64_t n = 0;; n++) {
        struct fixture f;
        prepare(&f);
        f.fake.refuse_record = n;
        f.options.event_batch = n % 2 ? 3 : 1;
        begin(&f);
        for (uint64_t i = 0; i < 30; i++)
            use_and_give(&f, alloc(&f, (i + 1) * 10000), i % 3);
        for (int i = 0; i < 3; i++)
            f.fake.done[i] = f.fake.issued[i];
        assert_int_equal(dry_pinned_clear(f.pinned), DRY_OK);
        assert_int_equal(dry_pinned_clear(f.pinned), DRY_OK); /* what was refused again */
        assert_int_equal(f.fake.range_count, 0);
        struct dry_pinned_stats s = stats_of(&f);
        bool was_refused = s.num_event_failures > 0;
        assert_int_equal(was_refused, f.fake.records > n);
        assert_int_equal(s.num_events, f.fake.returns);
        end(&f);
        if (!was_refused)
            break;
    }
}

/* --- walking -------------------------------------------------------------------------------- */

/* The blocks of a walk, summed by state. */
struct walk {
    uint64_t bytes[3], counts[3], requested, end, arena;
    bool is_out_of_order;
};

static void
count_block(void *self, const struct dry_pinned_block *block)
{
    struct walk *w = self;
    w->bytes[block->state] += block->bytes;
    w->counts[block->state]++;
    w->requested += block->requested_bytes;
    bool is_first = block->arena != w->arena;
    w->is_out_of_order |= block->address != (is_first ? block->arena : w->end);
    w->arena = block->arena;
    w->end = block->address + block->bytes;
}

static void
walk_visits_all_that_is_pinned(void **state)
{
    (void)state;
    struct fixture f;
    struct walk w = {.arena = 0};
    prepare(&f);
    begin(&f);
    assert_int_equal(dry_pinned_walk(f.pinned, count_block, &w), DRY_OK);
    assert_true(w.counts[0] + w.counts[1] + w.counts[2] == 0);
    void *held[6];
    for (size_t i = 0; i < 6; i++)
        held[i] = alloc(&f, DRYI_MIB + i);
    give(&f, held[1]);
    use_and_give(&f, held[3], 0);
    assert_int_equal(dry_pinned_walk(f.pinned, count_block, &w), DRY_OK);
    struct dry_pinned_stats s = stats_of(&f);
    assert_true(w.counts[DRY_PINNED_IN_USE] == 4 && w.counts[DRY_PINNED_PENDING] == 1);
    assert_true(w.bytes[0] + w.bytes[1] + w.bytes[2] ==
                (uint64_t)s.allocated_bytes.current);
    assert_true(w.bytes[1] + w.bytes[2] == (uint64_t)s.active_bytes.current);
    assert_true(w.bytes[DRY_PINNED_PENDING] == (uint64_t)s.pending_bytes);
    assert_true(w.requested == (uint64_t)s.requested_bytes.current);
    assert_false(w.is_out_of_order);
    for (size_t i = 0; i < 6; i++)
        if (i != 1 && i != 3)
            give(&f, held[i]);
    end(&f);
}

/* --- threads and processes ------------------------------------------------------------------- */

#define THREADS 8
#define PLACES 64
#define GRAINS (1 << 17)

struct crowd {
    struct fixture f;
    _Atomic(void *) places[PLACES]; /* blocks that anybody may free */
    atomic_uchar owners[GRAINS];    /* of 4 KiB each */
    atomic_int refused;
};

struct member {
    struct crowd *crowd;
    uint64_t seed;
};

static void
mark(struct crowd *c, void *at, unsigned char from, unsigned char to)
{
    uint64_t bytes = dry_pinned_usable_bytes(c->f.pinned, at);
    uint64_t first = ((uint64_t)(uintptr_t)at - (UINT64_C(0x7000) << 32)) / 4096;
    for (uint64_t i = 0; i < bytes / 4096; i++)
        if (atomic_exchange(&c->owners[(first + i) % GRAINS], to) != from)
            atomic_fetch_add(&c->refused, 1);
}

/* Every call but those that hand out and free, now and then. */
static void
look_around(struct crowd *c, struct random *r)
{
    struct dry_pinned *p = c->f.pinned;
    struct dry_pinned_explanation e = DRY_INIT(struct dry_pinned_explanation);
    struct walk w = {.arena = 0};
    enum dry_status status = DRY_OK;
    switch (random_below(r, 400)) {
    case 0:
        status = dry_pinned_clear(p);
        break;
    case 1:
    case 2:
        status = dry_pinned_trim(p, 8 * DRYI_MIB);
        break;
    case 3:
    case 4:
        (void)stats_of(&c->f);
        break;
    case 5:
        status = random_below(r, 2) ? dry_pinned_check(p, NULL)
                                    : dry_pinned_walk(p, count_block, &w);
        break;
    case 6:
        status = dry_pinned_warm(p, 16 * DRYI_MIB, random_below(r, 2) != 0, NULL);
        break;
    case 7:
        status = dry_pinned_explain(p, DRYI_MIB, &e);
        break;
    case 8:
        dry_pinned_reset_peaks(p);
        break;
    case 9:
        status = dry_pinned_release(p, random_below(r, 4));
        break;
    default:
        if (random_below(r, 40) == 0)
            status = dry_pinned_stream_done(p, random_below(r, 4));
    }
    if (status != DRY_OK)
        atomic_fetch_add(&c->refused, 1);
}

static void *
live(void *argument)
{
    const struct member *m = argument;
    struct crowd *c = m->crowd;
    struct random r;
    random_init(&r, m->seed);
    for (int i = 0; i < 4000; i++) {
        void *at = NULL;
        uint64_t bytes = UINT64_C(4096) << random_below(&r, 7);
        look_around(c, &r);
        if (dry_pinned_alloc(c->f.pinned, bytes, NO_STREAM, &at) != DRY_OK) {
            atomic_fetch_add(&c->refused, 1);
            continue;
        }
        mark(c, at, 0, 1);
        if (random_below(&r, 8) == 0 &&
            dry_pinned_record_stream(c->f.pinned, at, random_below(&r, 4)) != DRY_OK)
            atomic_fetch_add(&c->refused, 1);
        if (random_below(&r, 64) == 0 &&
            dry_pinned_hold(c->f.pinned, at, random_below(&r, 4)) != DRY_OK)
            atomic_fetch_add(&c->refused, 1);
        at = atomic_exchange(&c->places[random_below(&r, PLACES)], at);
        if (!at)
            continue;
        mark(c, at, 1, 0);
        enum dry_status status = random_below(&r, 4)
                                     ? dry_pinned_free(c->f.pinned, at)
                                     : dry_pinned_free_many(c->f.pinned, &at, 1);
        if (status != DRY_OK)
            atomic_fetch_add(&c->refused, 1);
    }
    return NULL;
}

static void
live_together(struct crowd *c, enum dry_pinned_mode mode)
{
    pthread_t threads[THREADS];
    struct member members[THREADS];
    prepare(&c->f);
    c->f.options.in_background = true;
    c->f.options.mode = mode;
    c->f.options.block_bytes = 4 * DRYI_MIB;
    c->f.options.block_count = 1;
    c->f.fake.issued[3] = 1; /* never done, but for who says so */
    begin(&c->f);
    for (size_t i = 0; i < THREADS; i++) {
        members[i] = (struct member){c, i + 1};
        assert_int_equal(pthread_create(&threads[i], NULL, live, &members[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(c->refused, 0);
    for (size_t i = 0; i < PLACES; i++) {
        void *at = atomic_exchange(&c->places[i], NULL);
        if (at)
            mark(c, at, 1, 0);
        assert_int_equal(dry_pinned_free(c->f.pinned, at), DRY_OK);
    }
    for (uint64_t i = 0; i < 4; i++)
        assert_int_equal(dry_pinned_release(c->f.pinned, i), DRY_OK);
    assert_int_equal(dry_pinned_stream_done(c->f.pinned, 3), DRY_OK);
    assert_int_equal(dry_pinned_clear(c->f.pinned), DRY_OK);
    struct dry_pinned_stats s = stats_of(&c->f);
    assert_int_equal(s.active_requests.current, 0);
    assert_int_equal(s.allocated_bytes.current, 0);
    end(&c->f);
}

static void
threads_never_share_a_block(void **state)
{
    (void)state;
    static struct crowd c;
    live_together(&c, DRY_PINNED_FIT);
    live_together(&c, DRY_PINNED_BUDDY);
}

struct neighbour {
    struct fixture *f;
    atomic_bool is_over;
};

static void *
come_and_go(void *argument)
{
    struct neighbour *n = argument;
    while (!atomic_load(&n->is_over)) {
        void *at = NULL;
        if (dry_pinned_alloc(n->f->pinned, 5 * DRYI_MIB, NO_STREAM, &at) == DRY_OK)
            (void)dry_pinned_free(n->f->pinned, at);
        (void)dry_pinned_trim(n->f->pinned, 0);
    }
    return NULL;
}

/* Two arenas share a square of the directory; what is looked up there touches one alone. */
static void
a_neighbour_that_goes_disturbs_no_look_up(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    begin(&f);
    struct neighbour n = {.f = &f};
    char *last = alloc(&f, 4 * DRYI_MIB);
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, come_and_go, &n), 0);
    uint64_t gone = 0;
    for (int i = 0; i < 200000 || gone < 100; i++) {
        assert_int_equal(dry_pinned_usable_bytes(f.pinned, last), 4 * DRYI_MIB);
        assert_int_equal(dry_pinned_usable_bytes(f.pinned, last + 4 * DRYI_MIB - 4096),
                         0);
        if (i % 1000 == 0)
            gone = (uint64_t)stats_of(&f).num_host_free;
    }
    atomic_store(&n.is_over, true);
    pthread_join(thread, NULL);
    end(&f);
}

static void
a_child_gives_nothing_back(void **state)
{
    (void)state;
    struct fixture f;
    prepare(&f);
    begin(&f);
    void *at = alloc(&f, 100000);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        void *more = NULL;
        int wrong = dry_pinned_free(f.pinned, at) != DRY_ERR_UNSUPPORTED;
        wrong |= dry_pinned_alloc(f.pinned, 9, NO_STREAM, &more) != DRY_ERR_UNSUPPORTED;
        wrong |= dry_pinned_clear(f.pinned) != DRY_ERR_UNSUPPORTED;
        dry_pinned_destroy(f.pinned);
        _exit(wrong || f.fake.gives != 0);
    }
    int status = 1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    give(&f, at);
    end(&f);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_freed_block_is_handed_out_again),
        cmocka_unit_test(what_is_no_block_in_use_is_refused),
        cmocka_unit_test(of_many_the_wrong_ones_alone_are_refused),
        cmocka_unit_test(nothing_is_a_block_of_nothing),
        cmocka_unit_test(rounding_is_a_32nd_at_most),
        cmocka_unit_test(the_rounding_of_a_giant_fits_its_cell),
        cmocka_unit_test(walk_visits_all_that_is_pinned),
        cmocka_unit_test(blocks_of_two_ranges_are_never_joined),
        cmocka_unit_test(fragmentation_is_bounded),
        cmocka_unit_test(a_block_waits_for_its_streams),
        cmocka_unit_test(the_stream_of_a_request_counts),
        cmocka_unit_test(a_slow_stream_does_not_hold_up_a_fast_one),
        cmocka_unit_test(blocks_are_joined_after_their_events),
        cmocka_unit_test(one_event_stands_for_many_frees),
        cmocka_unit_test(no_passed_event_is_overlooked),
        cmocka_unit_test(an_event_that_is_refused_is_tried_again),
        cmocka_unit_test(what_is_lost_comes_back_only_when_told),
        cmocka_unit_test(an_event_is_recorded_without_the_lock),
        cmocka_unit_test(a_refused_event_costs_others_nothing),
        cmocka_unit_test(no_stream_is_none_to_record),
        cmocka_unit_test(a_graph_keeps_its_blocks),
        cmocka_unit_test(clear_gives_back_what_is_idle),
        cmocka_unit_test(small_blocks_keep_no_large_arena),
        cmocka_unit_test(what_was_cleared_is_pinned_again_at_once),
        cmocka_unit_test(the_background_pins_what_was_cleared),
        cmocka_unit_test(warm_memory_needs_no_pinning),
        cmocka_unit_test(the_background_pins_any_number_of_pieces),
        cmocka_unit_test(destroy_ends_a_warm_up),
        cmocka_unit_test(a_budget_is_kept),
        cmocka_unit_test(what_is_too_much_is_not_kept),
        cmocka_unit_test(nothing_is_kept_where_nothing_is_to_be_cached),
        cmocka_unit_test(what_is_too_much_goes_after_its_event),
        cmocka_unit_test(a_miss_takes_what_other_threads_keep),
        cmocka_unit_test(buddies_are_warm_and_powers_of_two),
        cmocka_unit_test(a_threshold_keeps_small_ones_out_of_blocks),
        cmocka_unit_test(without_a_threshold_small_ones_hold_every_block),
        cmocka_unit_test(small_ones_stay_in_the_blocks_in_use),
        cmocka_unit_test(peaks_are_of_the_sum),
        cmocka_unit_test(keys_are_in_order),
        cmocka_unit_test(options_are_read),
        cmocka_unit_test(wrong_options_are_refused),
        cmocka_unit_test(create_checks_options),
        cmocka_unit_test(every_refused_request_for_memory_is_survived),
        cmocka_unit_test(every_refused_range_is_survived),
        cmocka_unit_test(every_refused_event_is_survived),
        cmocka_unit_test(threads_never_share_a_block),
        cmocka_unit_test(a_neighbour_that_goes_disturbs_no_look_up),
        cmocka_unit_test(a_child_gives_nothing_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
