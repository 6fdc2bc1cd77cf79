/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Which addresses are a pool's: those that it handed out, as they were handed out, until they are
 * freed, and no others, whether the place finds their blocks itself or a table leads to them.
 * A naive list says which. Asked about are also where blocks begin whose address is another one,
 * the insides of blocks, their ends, and what was freed.
 */
#include "support/cmocka.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <drystone/pool.h>
#include <drystone/sim.h>

#include "support/random.h"

#define MIB (UINT64_C(1) << 20)
#define LIVE_MAX 200
#define STALE_MAX 64

struct piece {
    uint64_t address, size, begin; /* of its block */
};

struct stage {
    struct random random;
    struct dry_sim *sim;
    struct dry_pool *pool;
    struct piece live[LIVE_MAX];
    size_t count;
    uint64_t stale[STALE_MAX]; /* freed once */
    size_t stale_count, apart; /* of blocks that begin elsewhere */
    size_t refused;
    bool is_scoped, is_heard;
};

/* There is no memory for anything new of so many bytes. */
static void *
resize_but(void *self, void *old, size_t old_bytes, size_t new_bytes)
{
    const size_t *refused = self;
    (void)old_bytes;
    if (new_bytes == 0) {
        free(old);
        return NULL;
    }
    return old || new_bytes != *refused ? realloc(old, new_bytes) : NULL;
}

struct setting {
    bool has_pages;
    size_t refused;   /* bytes of memory */
    const char *conf; /* NULL: as it comes */
};

static void
begin(struct stage *s, uint64_t seed, struct setting *setting)
{
    memset(s, 0, sizeof *s);
    random_init(&s->random, seed);
    struct dry_sim_options sim_options;
    dry_sim_options_init(&sim_options);
    sim_options.capacity_bytes = UINT64_C(8) << 30;
    if (!setting->has_pages)
        sim_options.page_bytes = 0;
    assert_int_equal(dry_sim_create(&sim_options, &s->sim, NULL), DRY_OK);
    struct dry_memory memory = {resize_but, &setting->refused};
    struct dry_pool_options options;
    dry_pool_options_init(&options);
    options.device = dry_sim_get_device(s->sim);
    options.memory = setting->refused > 0 ? &memory : NULL;
    options.conf = setting->conf;
    assert_int_equal(dry_pool_create(&options, &s->pool, NULL), DRY_OK);
}

static void
check(const struct stage *s)
{
    struct dry_error err;
    if (dry_pool_check(s->pool, &err) != DRY_OK)
        fail_msg("%s", err.text);
}

static bool
is_live(const struct stage *s, uint64_t address)
{
    size_t i = 0;
    while (i < s->count && s->live[i].address != address)
        i++;
    return i < s->count;
}

/* --- one step ----------------------------------------------------------------------------- */

static void
ask(struct stage *s)
{
    struct random *r = &s->random;
    bool is_aligned = random_below(r, 6) == 0;
    uint64_t size = random_below(r, 3) == 0 ? 1 + random_below(r, MIB / 8)
                                            : 1 + random_below(r, 24) * MIB / 4;
    uint64_t alignment = is_aligned ? UINT64_C(512) << random_below(r, 13) : 512;
    struct piece *p = &s->live[s->count];
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    enum dry_status status =
        is_aligned ? dry_pool_alloc_aligned(s->pool, size, alignment, random_below(r, 3),
                                            &p->address)
                   : dry_pool_alloc(s->pool, size, random_below(r, 3), &p->address);
    assert_int_equal(status, DRY_OK);
    assert_true(p->address % alignment == 0 && !is_live(s, p->address));
    assert_int_equal(dry_pool_get_block(s->pool, p->address, &block), DRY_OK);
    p->size = size;
    p->begin = block.address;
    assert_true(block.address <= p->address && block.requested >= size &&
                p->address + size <= block.address + block.size);
    s->apart += p->begin != p->address;
    s->count++;
}

static void
give(struct stage *s, size_t i)
{
    struct piece p = s->live[i];
    if (random_below(&s->random, 5) == 0)
        assert_int_equal(
            dry_pool_record_stream(s->pool, p.address, random_below(&s->random, 3)),
            DRY_OK);
    assert_int_equal(dry_pool_free(s->pool, p.address), DRY_OK);
    s->live[i] = s->live[--s->count];
    s->stale[s->stale_count++ % STALE_MAX] = p.address;
}

/* Unless it has been handed out since. */
static void
refuse(struct stage *s, uint64_t address)
{
    struct dry_pool_block block = DRY_INIT(struct dry_pool_block);
    if (address == 0 || is_live(s, address))
        return;
    assert_int_equal(dry_pool_get_block(s->pool, address, &block), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_record_stream(s->pool, address, 1), DRY_ERR_ARGUMENT);
    assert_int_equal(dry_pool_free(s->pool, address), DRY_ERR_ARGUMENT);
    s->refused++;
}

static void
probe(struct stage *s)
{
    refuse(s, s->stale[random_below(&s->random, STALE_MAX)]);
    refuse(s, random_next(&s->random));
    if (s->count == 0)
        return;
    const struct piece *p = &s->live[random_below(&s->random, s->count)];
    refuse(s, p->begin);
    refuse(s, p->address + 512);
    refuse(s, p->address + random_below(&s->random, p->size + 1));
    refuse(s, p->address + 1 + random_below(&s->random, 511));
}

static bool
is_of_one(void *self, uint64_t stream)
{
    (void)self;
    return stream == 1;
}

/* A thread on a stream of its own: the pool is shared for a while. */
static void *
disturb(void *self)
{
    struct dry_pool *pool = self;
    uint64_t address;
    if (dry_pool_alloc(pool, MIB, 7, &address) == DRY_OK)
        (void)dry_pool_free(pool, address);
    return NULL;
}

static void
change(struct stage *s)
{
    struct dry_pool_id id = {0, 1};
    struct dry_stream_filter filter = {is_of_one, NULL};
    struct dry_pool_history_options history;
    pthread_t other;
    uint64_t reserved;
    dry_pool_history_options_init(&history);
    switch (random_below(&s->random, 5)) {
    case 0:
        assert_int_equal(dry_pool_empty_cache(s->pool), DRY_OK);
        break;
    case 1:
        assert_int_equal(dry_pool_trim(s->pool, 0, &reserved), DRY_OK);
        break;
    case 2:
        assert_int_equal(s->is_scoped ? dry_pool_end_private(s->pool, id)
                                      : dry_pool_begin_private(s->pool, id, &filter),
                         DRY_OK);
        s->is_scoped = !s->is_scoped;
        break;
    case 3:
        assert_int_equal(dry_pool_record_history(s->pool, s->is_heard ? NULL : &history),
                         DRY_OK);
        s->is_heard = !s->is_heard;
        break;
    default:
        assert_int_equal(pthread_create(&other, NULL, disturb, s->pool), 0);
        pthread_join(other, NULL);
    }
    check(s);
}

/* --- programs ----------------------------------------------------------------------------- */

static void
run(struct stage *s, unsigned steps)
{
    assert_int_equal(dry_pool_open_private(s->pool, (struct dry_pool_id){0, 1}, 0),
                     DRY_OK);
    for (unsigned i = 0; i < steps; i++) {
        /* Up to many, down to none, and so on. */
        uint64_t grows = i / 500 % 2 == 0 ? 65 : 35;
        if (s->count < LIVE_MAX &&
            (s->count == 0 || random_below(&s->random, 100) < grows))
            ask(s);
        else
            give(s, random_below(&s->random, s->count));
        probe(s);
        if (random_below(&s->random, 97) == 0)
            change(s);
    }
    while (s->count > 0)
        give(s, s->count - 1);
    for (size_t i = 0; i < STALE_MAX; i++)
        refuse(s, s->stale[i]);
    check(s);
    assert_true(s->apart > 20 && s->refused > steps);
    dry_pool_destroy(s->pool);
    struct dry_sim_account account = DRY_INIT(struct dry_sim_account);
    dry_sim_get_account(s->sim, &account);
    assert_int_equal(account.used_bytes, 0);
    dry_sim_destroy(s->sim);
}

static void
addresses_are_those_handed_out(void **state)
{
    (void)state;
    static struct setting settings[] = {
        {true, 0, NULL},
        {false, 0, NULL},
        {true, 0, "segment_mb:1024"},
        {true, 0, "small_kb:4"}, /* too short for stretches */
        {true, 4096, NULL},      /* a leaf of the finder */
        {true, 648,
         "segment_mb:5184"}, /* the table of its 81 leaves; no struct has as many bytes */
    };
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        for (uint64_t seed = 0; seed < 4; seed++) {
            struct stage stage;
            begin(&stage, seed, &settings[i]);
            run(&stage, 4000);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_are_those_handed_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
