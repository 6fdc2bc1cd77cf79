/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the stream that asked last asks for, by the short way: everything that any request is asked
 * about holds for it, too.
 */
#include "support/cmocka.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

#include <drystone/pool.h>
#include <drystone/sim.h>

#define MIB (UINT64_C(1) << 20)

struct stage {
    struct dry_sim *sim;
    struct dry_pool *pool;
    bool has_no_memory;
};

static void *
resize(void *self, void *old, size_t old_bytes, size_t new_bytes)
{
    const struct stage *s = self;
    (void)old_bytes;
    if (new_bytes == 0) {
        free(old);
        return NULL;
    }
    return s->has_no_memory ? NULL : realloc(old, new_bytes);
}

static void
begin(struct stage *s, uint64_t capacity)
{
    *s = (struct stage){0};
    struct dry_sim_options so;
    dry_sim_options_init(&so);
    so.capacity_bytes = capacity;
    assert_int_equal(dry_sim_create(&so, &s->sim, NULL), DRY_OK);
    struct dry_memory memory = {resize, s};
    struct dry_pool_options o;
    dry_pool_options_init(&o);
    o.device = dry_sim_get_device(s->sim);
    o.memory = &memory;
    assert_int_equal(dry_pool_create(&o, &s->pool, NULL), DRY_OK);
}

static void
end(struct stage *s)
{
    struct dry_error err;
    if (dry_pool_check(s->pool, &err) != DRY_OK)
        fail_msg("%s", err.text);
    dry_pool_destroy(s->pool);
    dry_sim_destroy(s->sim);
}

static uint64_t
take(struct stage *s, uint64_t size, uint64_t stream)
{
    uint64_t address = 0;
    assert_int_equal(dry_pool_alloc(s->pool, size, stream, &address), DRY_OK);
    return address;
}

static void
a_private_pool_begins_for_it_too(void **state)
{
    (void)state;
    struct stage s;
    struct dry_pool_id id = {0, 7};
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    begin(&s, 900 * MIB);
    uint64_t before = take(&s, 700, 1);
    assert_int_equal(dry_pool_free(s.pool, before), DRY_OK);
    assert_int_equal(dry_pool_open_private(s.pool, id, 0), DRY_OK);
    assert_int_equal(dry_pool_begin_private(s.pool, id, NULL), DRY_OK);
    for (int i = 0; i < 2; i++) { /* one may be at hand again */
        uint64_t inside = take(&s, 700, 1);
        assert_int_equal(dry_pool_get_block(s.pool, inside, &block), DRY_OK);
        assert_true(block.pool.b == 7);
    }
    assert_int_equal(dry_pool_end_private(s.pool, id), DRY_OK);
    assert_true(take(&s, 700, 1) == before);
    end(&s);
}

static uint32_t
say(void *self)
{
    (void)self;
    return 77;
}

static enum dry_status
note_context(void *self, const struct dry_pool_event *event)
{
    if (event->action == DRY_ACTION_ALLOC)
        *(uint32_t *)self = event->context;
    return DRY_OK;
}

static void
history_knows_who_asked(void **state)
{
    (void)state;
    struct stage s;
    uint32_t seen = 0;
    struct dry_pool_history_options options;
    begin(&s, 900 * MIB);
    take(&s, 700, 1);
    dry_pool_history_options_init(&options);
    options.get_context = say;
    assert_int_equal(dry_pool_record_history(s.pool, &options), DRY_OK);
    take(&s, 700, 1);
    assert_int_equal(dry_pool_walk_history(s.pool, note_context, &seen), DRY_OK);
    assert_int_equal(seen, 77);
    end(&s);
}

static bool
help_nobody(void *self, uint64_t size, uint64_t stream)
{
    (void)self;
    (void)size;
    (void)stream;
    return false;
}

/* What is seen later is not taken for it. */
static void
an_out_of_memory_is_seen(void **state)
{
    (void)state;
    for (uint64_t first = 1; first <= 2; first++) { /* at hand, and not */
        struct stage s;
        struct dry_stats stats;
        uint64_t address;
        begin(&s, 64 * MIB);
        take(&s, 512, 1);
        assert_int_equal(dry_pool_alloc(s.pool, 200 * MIB, first, &address),
                         DRY_ERR_NO_SPACE);
        assert_int_equal(dry_pool_add_oom_callback(s.pool, help_nobody, NULL), DRY_OK);
        s.has_no_memory = true;
        assert_int_equal(dry_pool_alloc(s.pool, 512, 9, &address), DRY_ERR_MEMORY);
        s.has_no_memory = false;
        dry_pool_get_stats(s.pool, &stats);
        assert_int_equal(stats.num_ooms, 1);
        end(&s);
    }
}

/* While a block waits for another stream, what is active has a peak of its own. */
static void
peaks_count_what_waits(void **state)
{
    (void)state;
    struct stage s;
    struct dry_stats stats;
    begin(&s, 900 * MIB);
    uint64_t large = take(&s, 3 * MIB, 1), small = take(&s, 512, 1);
    assert_int_equal(dry_pool_free(s.pool, small), DRY_OK);
    assert_int_equal(dry_pool_record_stream(s.pool, large, 2), DRY_OK);
    assert_int_equal(dry_pool_free(s.pool, large), DRY_OK);
    dry_pool_reset_peaks(s.pool);
    take(&s, 512, 1);
    dry_pool_get_stats(s.pool, &stats);
    assert_int_equal(stats.active_bytes.all.current, 3 * MIB + 512);
    assert_int_equal(stats.active_bytes.all.peak, 3 * MIB + 512);
    end(&s);
}

/* Its address is known: there is nothing to be written down. */
static void
what_lies_on_its_cache_needs_no_memory(void **state)
{
    (void)state;
    struct stage s;
    begin(&s, 900 * MIB);
    for (int i = 0; i < 2000; i++) {
        uint64_t address = take(&s, 512, 1);
        assert_int_equal(dry_pool_free(s.pool, address), DRY_OK);
        s.has_no_memory = true;
        take(&s, 512, 1);
        s.has_no_memory = false;
    }
    end(&s);
}

/* More than there are stream caches: the rest is asked of the place itself. */
static void
streams_without_a_cache_are_served(void **state)
{
    (void)state;
    struct stage s;
    begin(&s, 900 * MIB);
    for (int round = 0; round < 3; round++) {
        for (uint64_t stream = 0; stream < 72; stream++) {
            uint64_t a = take(&s, 600, stream), b = take(&s, 600, stream);
            assert_int_equal(dry_pool_free(s.pool, a), DRY_OK);
            assert_true(take(&s, 600, stream) == a);
            assert_int_equal(dry_pool_free(s.pool, b), DRY_OK);
        }
    }
    end(&s);
}

/* --- a stream of each thread -------------------------------------------------------------- */

#define EACH 2 /* a handle that is another stream in each thread, as CUDA's 2 */

static struct dry_device inner;
static uint64_t mine; /* the stream of the thread that asks now */

static uint64_t
real(uint64_t handle)
{
    return handle == EACH ? mine : handle;
}

static uint64_t
id_of(void *self, uint64_t handle)
{
    (void)self;
    return real(handle);
}

static enum dry_status
record(void *self, uint64_t stream, uint64_t *event)
{
    return inner.ops->event_record(self, real(stream), event);
}

static enum dry_status
wait_for(void *self, uint64_t stream)
{
    return inner.ops->stream_wait(self, real(stream));
}

static enum dry_status
follow(void *self, uint64_t stream, uint64_t event)
{
    return inner.ops->stream_follow(self, real(stream), event);
}

static enum dry_status
wait_for_all(void *self)
{
    for (uint64_t stream = 100; stream < 102; stream++)
        inner.ops->stream_wait(self, stream);
    return DRY_OK;
}

/* The stream works on the block until nobody knows when. */
static void
use(struct stage *s, uint64_t size, uint64_t owner, bool is_freed)
{
    uint64_t address = take(s, size, EACH);
    assert_int_equal(dry_sim_own(s->sim, address, size, mine, owner), DRY_OK);
    assert_int_equal(dry_sim_use(s->sim, mine, address, size, owner), DRY_OK);
    if (!is_freed)
        return;
    dry_sim_disown(s->sim, owner);
    assert_int_equal(dry_pool_free(s->pool, address), DRY_OK);
}

static void
begin_each(struct stage *s, struct dry_device_ops *ops, uint64_t capacity)
{
    *s = (struct stage){0};
    struct dry_sim_options so;
    dry_sim_options_init(&so);
    so.capacity_bytes = capacity;
    so.check = true;
    assert_int_equal(dry_sim_create(&so, &s->sim, NULL), DRY_OK);
    inner = dry_sim_get_device(s->sim);
    *ops = *inner.ops;
    ops->stream_id = id_of;
    ops->event_record = record;
    ops->stream_wait = wait_for;
    ops->stream_follow = follow;
    ops->wait_all = wait_for_all;
    struct dry_pool_options o;
    dry_pool_options_init(&o);
    o.device = (struct dry_device){.ops = ops, .self = inner.self};
    assert_int_equal(dry_pool_create(&o, &s->pool, NULL), DRY_OK);
}

/*
 * From another thread the stream looks as if it were gone, and its work is waited for. What it
 * does after that has to be waited for again.
 */
static void
a_stream_found_gone_may_come_back(void **state)
{
    (void)state;
    struct stage s;
    struct dry_device_ops ops;
    begin_each(&s, &ops, 64 * MIB);
    mine = 100;
    use(&s, 40 * MIB, 1, true);
    mine = 101;
    assert_int_equal(dry_pool_empty_cache(s.pool), DRY_OK);
    mine = 100;
    use(&s, 40 * MIB, 2, true);
    mine = 101;
    use(&s, 40 * MIB, 3, false);
    assert_int_equal(dry_sim_get_finding_count(s.sim), 0);
    end(&s);
}

/* Nor does it take a request: what it does to a block that it has had all the time counts, too. */
static void
a_stream_found_gone_may_go_on(void **state)
{
    (void)state;
    struct stage s;
    struct dry_device_ops ops;
    begin_each(&s, &ops, 64 * MIB);
    mine = 100;
    use(&s, 20 * MIB, 1, true);
    uint64_t kept = take(&s, 30 * MIB, EACH);
    assert_int_equal(dry_sim_own(s.sim, kept, 30 * MIB, mine, 2), DRY_OK);
    assert_int_equal(dry_sim_use(s.sim, mine, kept, 30 * MIB, 2), DRY_OK);
    mine = 101;
    use(&s, 24 * MIB, 3, false); /* some of it from under the first block */
    mine = 100;
    assert_int_equal(dry_sim_use(s.sim, mine, kept, 30 * MIB, 2), DRY_OK);
    dry_sim_disown(s.sim, 2);
    assert_int_equal(dry_pool_free(s.pool, kept), DRY_OK);
    mine = 101;
    use(&s, 28 * MIB, 4, false);
    assert_int_equal(dry_sim_get_finding_count(s.sim), 0);
    end(&s);
}

/* What another thread asks for; the first waits meanwhile. */
struct other {
    struct stage *stage;
    uint64_t size, owner; /* owner 0: nothing is done with it */
};

static void *
ask_elsewhere(void *self)
{
    const struct other *o = self;
    mine = 101;
    if (o->owner > 0)
        use(o->stage, o->size, o->owner, false);
    else
        take(o->stage, o->size, EACH);
    mine = 100;
    return NULL;
}

static void
elsewhere(struct stage *s, uint64_t size, uint64_t owner)
{
    pthread_t thread;
    struct other other = {s, size, owner};
    assert_int_equal(pthread_create(&thread, NULL, ask_elsewhere, &other), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* The same while two threads share the pool, and what it does needs the stream cache's lock alone. */
static void
a_stream_of_a_shared_pool_may_come_back(void **state)
{
    (void)state;
    struct stage s;
    struct dry_device_ops ops;
    begin_each(&s, &ops, 900 * MIB); /* pages move before there are more of them */
    mine = 100;
    uint64_t a = take(&s, 20 * MIB, EACH), b = take(&s, 24 * MIB, EACH);
    assert_int_equal(dry_pool_free(s.pool, a), DRY_OK);
    assert_int_equal(dry_pool_free(s.pool, b), DRY_OK);
    elsewhere(&s, 512, 0);
    take(&s, 512, EACH); /* its stream cache is open from now on */
    elsewhere(&s, 20 * MIB, 0);
    use(&s, MIB / 2, 2, true); /* little enough to need no balance */
    elsewhere(&s, 24 * MIB, 3);
    assert_int_equal(dry_sim_get_finding_count(s.sim), 0);
    end(&s);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_private_pool_begins_for_it_too),
        cmocka_unit_test(history_knows_who_asked),
        cmocka_unit_test(an_out_of_memory_is_seen),
        cmocka_unit_test(peaks_count_what_waits),
        cmocka_unit_test(what_lies_on_its_cache_needs_no_memory),
        cmocka_unit_test(streams_without_a_cache_are_served),
        cmocka_unit_test(a_stream_found_gone_may_come_back),
        cmocka_unit_test(a_stream_found_gone_may_go_on),
        cmocka_unit_test(a_stream_of_a_shared_pool_may_come_back),
    };
    return cmocka_run_group_tests_name("pool_at_hand", tests, NULL, NULL);
}
