/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and private pools that come and go. No memory and no stream cache is kept for those of
 * which nothing is left. A new stream that gets a recycled stream record does not know what the
 * former stream knew.
 */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include <drystone/pool.h>
#include <drystone/sim.h>

#include "base/bits.h"
#include "place/paged/record/paged_state.h"
#include "place/torch/torch.h"
#include "pool/pool_state.h"
#include "support/rounds.h"

/* --- a pool whose memory is counted ------------------------------------------------------- */

/*
 * A device that is done with a stream's work whenever it is asked for an event; where it has ids,
 * there are eight handles, of a new stream each time.
 */
struct stage {
    struct dry_sim *sim;
    struct dry_device inner;
    struct dry_device_ops ops;
    struct dry_pool *pool;
    size_t live_bytes;
    size_t left;    /* requests for memory before one that fails; SIZE_MAX: none does */
    size_t refused; /* bytes: no request for so many is granted; 0: each is */
    uint64_t first; /* number of the oldest stream that is there */
    unsigned waits; /* for the whole device */
};

#define HANDLES 8

static struct stage *stage;

static void *
count(void *self, void *old, size_t old_bytes, size_t new_bytes)
{
    struct stage *s = self;
    bool is_more = new_bytes > old_bytes;
    if (is_more && (s->left == 0 || new_bytes == s->refused)) {
        s->left = SIZE_MAX;
        return NULL;
    }
    s->left -= is_more && s->left != SIZE_MAX;
    s->live_bytes += new_bytes - old_bytes;
    if (new_bytes > 0)
        return realloc(old, new_bytes);
    free(old);
    return NULL;
}

#define STAYS UINT64_C(1000000) /* a stream that is always there */

/* Which of those there are has the handle. */
static uint64_t
number_of(void *self, uint64_t handle)
{
    (void)self;
    if (handle == STAYS)
        return handle;
    return stage->first + (handle - stage->first % HANDLES + HANDLES) % HANDLES;
}

static enum dry_status
record(void *self, uint64_t stream, uint64_t *event)
{
    enum dry_status status = stage->inner.ops->event_record(self, stream, event);
    dry_sim_complete_stream(stage->sim, stream);
    return status;
}

static enum dry_status
wait_all(void *self)
{
    for (uint64_t stream = 0; stream < HANDLES; stream++)
        assert_int_equal(stage->inner.ops->stream_wait(self, stream), DRY_OK);
    stage->waits++;
    return DRY_OK;
}

static void
begin(struct stage *s, enum dry_placement placement, const char *conf, bool has_ids)
{
    *s = (struct stage){.left = SIZE_MAX};
    stage = s;
    struct dry_sim_options so;
    dry_sim_options_init(&so);
    so.capacity_bytes = DRYI_GIB;
    assert_int_equal(dry_sim_create(&so, &s->sim, NULL), DRY_OK);
    s->inner = dry_sim_get_device(s->sim);
    s->ops = *s->inner.ops;
    s->ops.event_record = record;
    if (has_ids) {
        s->ops.stream_id = number_of;
        s->ops.wait_all = wait_all;
    }
    struct dry_memory memory = {count, s};
    struct dry_pool_options o;
    dry_pool_options_init(&o);
    o.device = (struct dry_device){.ops = &s->ops, .self = s->inner.self};
    o.memory = &memory;
    o.conf = conf;
    o.placement = placement;
    assert_int_equal(dry_pool_create(&o, &s->pool, NULL), DRY_OK);
}

static void
end(struct stage *s)
{
    struct dry_error err;
    if (dry_pool_check(s->pool, &err) != DRY_OK)
        fail_msg("%s", err.text);
    dry_pool_destroy(s->pool);
    assert_int_equal(s->live_bytes, 0);
    dry_sim_destroy(s->sim);
}

static uint64_t
take(const struct stage *s, uint64_t size, uint64_t stream)
{
    uint64_t address;
    assert_int_equal(dry_pool_alloc(s->pool, size, stream, &address), DRY_OK);
    return address;
}

static void
put(const struct stage *s, uint64_t address)
{
    assert_int_equal(dry_pool_free(s->pool, address), DRY_OK);
}

/* --- memory ------------------------------------------------------------------------------- */

/* What a stream does before it goes. */
enum deed {
    IT_ALLOCATES = 1, /* a little */
    IT_IS_LARGE = 2,
    IT_WAITS = 4,   /* and is waited for, by one that stays */
    IT_RECORDS = 8, /* its block is used by the next one */
    DEEDS = 16,
};

static void
live(struct stage *s, unsigned deeds, uint64_t stream, uint64_t next)
{
    uint64_t blocks[2] = {0};
    if (deeds & IT_ALLOCATES)
        put(s, take(s, 1024, STAYS));
    if (deeds & IT_ALLOCATES)
        blocks[0] = take(s, 512, stream);
    if (deeds & IT_IS_LARGE)
        blocks[1] = take(s, DRYI_MIB, stream);
    if (deeds & IT_WAITS)
        assert_int_equal(dry_pool_stream_waits(s->pool, stream, STAYS), DRY_OK);
    for (int i = 0; i < 2; i++) {
        if (blocks[i] && (deeds & IT_RECORDS))
            assert_int_equal(dry_pool_record_stream(s->pool, blocks[i], next), DRY_OK);
        if (blocks[i])
            put(s, blocks[i]);
    }
    if (deeds & IT_WAITS)
        assert_int_equal(dry_pool_stream_waits(s->pool, STAYS, stream), DRY_OK);
}

static void
live_many(struct stage *s, unsigned deeds, unsigned streams)
{
    for (unsigned i = 0; i < streams; i++, s->first++) {
        if (s->ops.stream_id)
            live(s, deeds, s->first % HANDLES, (s->first + 1) % HANDLES);
        else
            live(s, deeds, s->first, s->first + 1);
    }
}

static void
streams_that_come_and_go_leave_nothing(void **state)
{
    (void)state;
    enum { STREAMS = ROUNDS_OF(12000, 4) };
    for (unsigned deeds = 1; deeds < DEEDS; deeds++) {
        for (int has_ids = 0; has_ids <= 1; has_ids++) {
            struct stage s;
            /* What is learnt of a period grows as long as there is none. */
            begin(&s, DRY_PLACEMENT_PAGED, "plan:False", has_ids);
            live_many(&s, deeds, STREAMS / 2);
            size_t before = s.live_bytes;
            live_many(&s, deeds, STREAMS / 2);
            struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
            dry_sim_get_account(s.sim, &account);
            assert_true(account.events_live <= 600);
            if (deeds == IT_ALLOCATES) /* else memory is handed on, which may need each */
                assert_true(s.waits <= STREAMS / 100);
            assert_true(s.live_bytes <= before + before / 2);
            assert_true(s.live_bytes <= 12 * DRYI_MIB); /* two for 64 caches */
            end(&s);
        }
    }
}

/* A graph each: captured on stream 1, with a pool of its own, and gone with the cache. */
static void
pools_that_come_and_go_leave_nothing(void **state)
{
    (void)state;
    static const char *const confs[] = {"", "", "expandable_segments:True"};
    for (int i = 0; i < 3; i++) {
        struct stage s;
        begin(&s, i == 0 ? DRY_PLACEMENT_PAGED : DRY_PLACEMENT_TORCH, confs[i], false);
        size_t before = 0;
        for (uint64_t n = 1; n <= 4000; n++) {
            struct dry_pool_id id = {n / 2, n};
            assert_int_equal(dry_pool_open_private(s.pool, id, 0), DRY_OK);
            assert_int_equal(dry_pool_begin_private(s.pool, id, NULL), DRY_OK);
            uint64_t small = take(&s, 512, 1), large = take(&s, 3 * DRYI_MIB, n % 3);
            assert_int_equal(dry_pool_end_private(s.pool, id), DRY_OK);
            put(&s, small);
            put(&s, large);
            assert_int_equal(dry_pool_release_private(s.pool, id), DRY_OK);
            if (n % 100 == 0)
                assert_int_equal(dry_pool_empty_cache(s.pool), DRY_OK);
            if (n == 1000)
                before = s.live_bytes;
        }
        assert_true(s.live_bytes <= before);
        end(&s);
    }
}

static void
ask_in_pool(struct stage *s, uint64_t pool, uint64_t stream)
{
    struct dry_pool_id id = {0, pool};
    assert_int_equal(dry_pool_begin_private(s->pool, id, NULL), DRY_OK);
    uint64_t small = take(s, 512, stream), large = take(s, DRYI_MIB / 2, stream);
    assert_int_equal(dry_pool_end_private(s->pool, id), DRY_OK);
    put(s, small);
    put(s, large);
}

static void
open_pools(struct stage *s, uint64_t count)
{
    for (uint64_t pool = 1; pool <= count; pool++)
        assert_int_equal(dry_pool_open_private(s->pool, (struct dry_pool_id){0, pool}, 0),
                         DRY_OK);
}

/* Pools that stay, streams that go: each asks in one, and what it leaves the next one takes. */
static void
streams_beside_pools_leave_nothing(void **state)
{
    (void)state;
    struct stage s;
    begin(&s, DRY_PLACEMENT_PAGED, "plan:False", false);
    open_pools(&s, 40);
    size_t before = s.live_bytes;
    for (uint64_t stream = 1; stream <= 8000; stream++) {
        ask_in_pool(&s, stream % 40 + 1, stream);
        assert_true(s.live_bytes <= before + 4 * DRYI_MIB);
    }
    end(&s);
}

/* One after the other asks in all of them: what each leaves there goes while the next one asks. */
static void
streams_of_many_pools_leave_nothing(void **state)
{
    (void)state;
    struct stage s;
    begin(&s, DRY_PLACEMENT_PAGED, "plan:False", false);
    open_pools(&s, 200);
    size_t before = s.live_bytes;
    for (uint64_t stream = 1; stream <= 50; stream++) {
        for (uint64_t pool = 1; pool <= 200; pool++)
            ask_in_pool(&s, pool, stream);
    }
    assert_true(s.live_bytes <= before + 8 * DRYI_MIB); /* two of them have 6 */
    end(&s);
}

/*
 * Cached blocks of a stream go to the shared list with the stream, while nothing has to be flushed.
 */
static void
streams_go_from_the_caches_of_pools(void **state)
{
    (void)state;
    struct stage s;
    begin(&s, DRY_PLACEMENT_PAGED, "plan:False", false);
    take(&s, 500 * DRYI_MIB, STAYS); /* so that there is a budget */
    open_pools(&s, 2);
    struct dry_error err;
    for (uint64_t stream = 1; stream <= 1000; stream++) {
        struct dry_pool_id id = {0, stream % 2 + 1};
        assert_int_equal(dry_pool_begin_private(s.pool, id, NULL), DRY_OK);
        uint64_t block = take(&s, 512, stream);
        assert_int_equal(dry_pool_end_private(s.pool, id), DRY_OK);
        put(&s, block);
        assert_int_equal(dry_pool_check(s.pool, &err), DRY_OK);
    }
    end(&s);
}

/* --- stream caches ------------------------------------------------------------------------ */

static bool
has_cache(const struct stage *s, uint64_t stream)
{
    const struct dryi_pool_cache *last = s->pool->caches.last;
    return last && last->stream == stream;
}

/* Sixty-four streams have a cache each. One cache has a block in use, the others go. */
static void
caches_go_from_stream_to_stream(void **state)
{
    (void)state;
    struct stage s;
    begin(&s, DRY_PLACEMENT_PAGED, "", false);
    uint64_t kept = 0;
    for (uint64_t stream = 0; stream < DRYI_POOL_CACHES; stream++) {
        put(&s, take(&s, 4096, stream));
        if (stream == 5)
            kept = take(&s, 3000, stream);
    }
    put(&s, take(&s, 4096, 100));
    assert_false(has_cache(&s, 100)); /* none is idle yet */
    for (unsigned i = 0; i < 16384; i++)
        put(&s, take(&s, 4096, 100 + i % 80));
    unsigned caches = 0;
    for (uint64_t stream = 100; stream < 180; stream++) {
        put(&s, take(&s, 4096, stream));
        caches += has_cache(&s, stream);
    }
    assert_int_equal(caches, DRYI_POOL_CACHES - 1); /* each but that of stream 5 */
    put(&s, kept);
    put(&s, take(&s, 3000, 5));
    assert_true(has_cache(&s, 5));
    end(&s);
}

/* --- a place that takes records again from two streams on ---------------------------------- */

struct rig {
    struct dry_sim *sim;
    struct dryi_place place;
};

static void
begin_rig(struct rig *rig, const char *conf)
{
    struct dry_sim_options so;
    dry_sim_options_init(&so);
    so.capacity_bytes = DRYI_GIB;
    assert_int_equal(dry_sim_create(&so, &rig->sim, NULL), DRY_OK);
    struct dryi_paged_options options = {.device = dry_sim_get_device(rig->sim),
                                         .streams_kept = 2};
    dryi_paged_conf_init(&options.conf);
    assert_int_equal(dryi_paged_conf_parse(conf, strlen(conf), dryi_torch_conf_has,
                                           &options.conf, NULL),
                     DRY_OK);
    assert_int_equal(dryi_paged_create(&options, &rig->place, NULL), DRY_OK);
}

static void
end_rig(struct rig *rig)
{
    struct dry_error err;
    if (rig->place.ops->check(rig->place.self, &err) != DRY_OK)
        fail_msg("%s", err.text);
    rig->place.ops->destroy(rig->place.self);
    dry_sim_destroy(rig->sim);
}

static dryi_block
get(const struct dryi_place *place, uint64_t stream)
{
    dryi_block block;
    assert_int_equal(place->ops->alloc(place->self, 4 * DRYI_MIB, stream, &block),
                     DRY_OK);
    return block;
}

/* Stream 1 comes behind stream 2, and is forgotten; stream 3 has its record. */
static void
what_a_stream_knew_goes_with_it(void **state)
{
    (void)state;
    for (int is_forgotten = 0; is_forgotten <= 1; is_forgotten++) {
        struct rig rig;
        begin_rig(&rig, "reuse_waiting:False");
        const struct dryi_place *place = &rig.place;
        dryi_block used = get(place, 2);
        uint64_t address = place->ops->get_address(place->self, used);
        assert_int_equal(place->ops->free(place->self, used), DRY_OK);
        assert_int_equal(place->ops->stream_waits(place->self, 1, 2), DRY_OK);
        uint64_t stream = is_forgotten ? 3 : 1;
        assert_true(place->ops->has_stream(place->self, 1));
        dryi_block block = get(place, stream);
        assert_true(place->ops->has_stream(place->self, 1) == !is_forgotten);
        assert_true(place->ops->has_stream(place->self, 2)); /* it has free memory */
        bool is_reused = place->ops->get_address(place->self, block) == address;
        assert_true(is_reused == !is_forgotten);
        end_rig(&rig);
    }
}

/* --- host memory that is not there -------------------------------------------------------- */

static void
open_in_vain(struct stage *s, size_t granted)
{
    struct dry_pool_id id = {0, 1};
    size_t before = s->live_bytes;
    for (int i = 0; i < 100; i++) {
        s->left = granted;
        enum dry_status status = dry_pool_open_private(s->pool, id, 0);
        s->left = SIZE_MAX;
        assert_true(status == DRY_OK || status == DRY_ERR_MEMORY);
        if (status == DRY_OK)
            assert_int_equal(dry_pool_release_private(s->pool, id), DRY_OK);
    }
    assert_true(s->live_bytes - before <= 64 * DRYI_KIB);
}

static void
pools_that_cannot_be_opened_leave_nothing(void **state)
{
    (void)state;
    for (size_t granted = 0; granted < 8; granted++) {
        struct stage s;
        begin(&s, DRY_PLACEMENT_PAGED, "", false);
        open_in_vain(&s, granted);
        end(&s);
    }
}

/* The place has its part of a cache, and the pool has no memory for its own part. */
static void
streams_without_a_cache_leave_nothing(void **state)
{
    (void)state;
    struct stage s;
    begin(&s, DRY_PLACEMENT_PAGED, "plan:False", false);
    put(&s, take(&s, 512, STAYS)); /* there are pages then, and a table */
    s.refused = sizeof(struct dryi_pool_cache);
    for (uint64_t stream = 1; stream <= 2000; stream++)
        put(&s, take(&s, 512, stream));
    s.refused = 0;
    assert_true(s.live_bytes <= 4 * DRYI_MIB);
    end(&s);
}

/* So many streams there are that the table of them is full. */
static void
a_stream_is_known_after_a_failure(void **state)
{
    (void)state;
    for (uint64_t before = 31; before <= 127; before = 2 * before + 1) {
        for (size_t granted = 0; granted < 12; granted++) {
            struct stage s;
            uint64_t address;
            begin(&s, DRY_PLACEMENT_PAGED, "", false);
            for (uint64_t stream = 1; stream <= before; stream++)
                take(&s, 512, stream);
            s.left = granted;
            enum dry_status status = dry_pool_alloc(s.pool, 512, 1000, &address);
            s.left = SIZE_MAX;
            assert_true(status == DRY_OK || status == DRY_ERR_MEMORY);
            uint64_t block = take(&s, 512, 1);
            assert_int_equal(dry_pool_record_stream(s.pool, block, 1000), DRY_OK);
            take(&s, 512, 1000);
            end(&s);
        }
    }
}

/* --- pools that nobody uses --------------------------------------------------------------- */

static void
use_private(struct stage *s, uint64_t number, uint64_t streams)
{
    struct dry_pool_id id = {0, number};
    uint64_t blocks[24];
    assert_int_equal(dry_pool_open_private(s->pool, id, 0), DRY_OK);
    assert_int_equal(dry_pool_begin_private(s->pool, id, NULL), DRY_OK);
    for (uint64_t i = 0; i < streams; i++)
        blocks[i] = take(s, 2 * DRYI_MIB, 100 * number + i);
    assert_int_equal(dry_pool_end_private(s->pool, id), DRY_OK);
    for (uint64_t i = 0; i < streams; i++)
        put(s, blocks[i]);
}

/* As many as pool.h says: of all pools that are looked at, not of each. */
static void
one_that_is_opened_records_few_events(void **state)
{
    (void)state;
    struct stage s;
    struct dry_pool_counters before = DRY_INIT(struct dry_pool_counters);
    struct dry_pool_counters after = DRY_INIT(struct dry_pool_counters);
    begin(&s, DRY_PLACEMENT_PAGED, "", false);
    take(&s, 512 * DRYI_MIB, STAYS); /* else all of them would be waited for before */
    for (uint64_t number = 1; number <= 5; number++)
        use_private(&s, number, 24);
    for (uint64_t number = 1; number <= 5; number++)
        assert_int_equal(
            dry_pool_release_private(s.pool, (struct dry_pool_id){0, number}), DRY_OK);
    dry_pool_get_counters(s.pool, &before);
    assert_int_equal(dry_pool_open_private(s.pool, (struct dry_pool_id){0, 99}, 0),
                     DRY_OK);
    dry_pool_get_counters(s.pool, &after);
    assert_true(after.events_recorded - before.events_recorded <= 64);
    assert_true(after.events_recorded > before.events_recorded);
    end(&s);
}

/* Opened amid captures whose streams go then: what they left is waited for at the next end. */
static void
those_of_captures_go_with_their_streams(void **state)
{
    (void)state;
    struct stage s;
    begin(&s, DRY_PLACEMENT_PAGED, "plan:False", true);
    for (uint64_t number = 1; number <= 40; number++, s.first++) {
        struct dry_pool_id id = {0, number};
        assert_int_equal(dry_pool_begin_capture(s.pool, NULL), DRY_OK);
        assert_int_equal(dry_pool_open_private(s.pool, id, 0), DRY_OK);
        assert_int_equal(dry_pool_begin_private(s.pool, id, NULL), DRY_OK);
        put(&s, take(&s, 2 * DRYI_MIB, s.first % HANDLES));
        assert_int_equal(dry_pool_end_private(s.pool, id), DRY_OK);
        assert_int_equal(dry_pool_end_capture(s.pool), DRY_OK);
        assert_int_equal(dry_pool_release_private(s.pool, id), DRY_OK);
    }
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(s.sim, &account);
    assert_true(account.pages_live <= 4);
    end(&s);
}

/* Whether or not it was forgotten meanwhile. */
static void
one_that_has_nothing_is_opened_anew(void **state)
{
    (void)state;
    for (int is_between = 0; is_between <= 1; is_between++) {
        struct stage s;
        struct dry_pool_id id = {0, 1}, other = {0, 2};
        struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
        begin(&s, DRY_PLACEMENT_PAGED, "", false);
        assert_int_equal(dry_pool_open_private(s.pool, id, 0), DRY_OK);
        assert_int_equal(dry_pool_release_private(s.pool, id), DRY_OK);
        if (is_between)
            assert_int_equal(dry_pool_open_private(s.pool, other, 0), DRY_OK);
        assert_int_equal(dry_pool_open_private(s.pool, id, DRY_POOL_NO_SPLIT), DRY_OK);
        assert_int_equal(dry_pool_begin_private(s.pool, id, NULL), DRY_OK);
        put(&s, take(&s, DRYI_MIB, 1));
        uint64_t address = take(&s, DRYI_MIB / 2, 1);
        assert_int_equal(dry_pool_get_block(s.pool, address, &block), DRY_OK);
        assert_true(block.size > DRYI_MIB / 2);
        assert_int_equal(dry_pool_end_private(s.pool, id), DRY_OK);
        end(&s);
    }
}

/* The uses of what stream 2 freed are complete; options keep other streams from it. */
static void
what_is_over_stays_where_options_say_so(void **state)
{
    (void)state;
    static const char *const confs[] = {
        "budget:8,reuse_ordered:False,reuse_waiting:False,reuse_passed:False",
        "budget:8,reuse_ordered:False,reuse_waiting:False"};
    for (int is_shared = 0; is_shared <= 1; is_shared++) {
        struct rig rig;
        begin_rig(&rig, confs[is_shared]);
        const struct dryi_place *place = &rig.place;
        dryi_block over = get(place, 2), between = get(place, 9), other = get(place, 9);
        uint64_t address = place->ops->get_address(place->self, over);
        assert_int_equal(place->ops->free(place->self, over), DRY_OK);
        assert_int_equal(place->ops->record_stream(place->self, other, 2), DRY_OK);
        assert_int_equal(place->ops->free(place->self, other), DRY_OK);
        dry_sim_complete_stream(rig.sim, 2);
        place->ops->process_events(place->self);
        assert_int_equal(place->ops->record_stream(place->self, between, 9), DRY_OK);
        dryi_block block = get(place, 3);
        bool is_reused = place->ops->get_address(place->self, block) == address;
        assert_true(is_reused == is_shared);
        end_rig(&rig);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streams_that_come_and_go_leave_nothing),
        cmocka_unit_test(pools_that_come_and_go_leave_nothing),
        cmocka_unit_test(streams_beside_pools_leave_nothing),
        cmocka_unit_test(streams_of_many_pools_leave_nothing),
        cmocka_unit_test(streams_go_from_the_caches_of_pools),
        cmocka_unit_test(caches_go_from_stream_to_stream),
        cmocka_unit_test(what_a_stream_knew_goes_with_it),
        cmocka_unit_test(what_is_over_stays_where_options_say_so),
        cmocka_unit_test(pools_that_cannot_be_opened_leave_nothing),
        cmocka_unit_test(streams_without_a_cache_leave_nothing),
        cmocka_unit_test(a_stream_is_known_after_a_failure),
        cmocka_unit_test(one_that_is_opened_records_few_events),
        cmocka_unit_test(those_of_captures_go_with_their_streams),
        cmocka_unit_test(one_that_has_nothing_is_opened_anew),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
