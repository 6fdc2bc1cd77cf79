/* SPDX-License-Identifier: Apache-2.0 */

/*
 * base/map against an array of the same keys: put, find, take and walk, in tables of few
 * and of many keys, and with memory that runs out.
 */
#include "support/cmocka.h"

#include "base/map.h"
#include "support/failing_memory.h"
#include "support/random.h"

#define KEYS 512

struct model {
    bool has[KEYS];
    uint32_t value[KEYS];
    size_t count;
};

/* Key number 0 is 0, the last ones are the largest; addresses lie between. */
static uint64_t
key_of(size_t i)
{
    if (i >= KEYS - 8)
        return UINT64_MAX - (KEYS - 1 - i);
    return i * 512;
}

static void
compare(const struct dryi_map *map, const struct model *m)
{
    assert_int_equal(map->count, m->count);
    for (size_t i = 0; i < KEYS; i++) {
        const uint32_t *found = dryi_map_find(map, key_of(i));
        assert_int_equal(found != NULL, m->has[i]);
        if (found)
            assert_int_equal(*found, m->value[i]);
    }
}

/* The walk meets every key once. */
static void
compare_walk(const struct dryi_map *map, const struct model *m)
{
    size_t at = 0, count = 0;
    const struct dryi_map_slot *slot;
    while ((slot = dryi_map_next(map, &at))) {
        size_t i = slot->key >= UINT64_MAX - KEYS ? KEYS - 1 - (UINT64_MAX - slot->key)
                                                  : slot->key / 512;
        assert_true(i < KEYS && m->has[i] && key_of(i) == slot->key);
        assert_int_equal(slot->value, m->value[i]);
        count++;
    }
    assert_int_equal(count, m->count);
}

static void
put(struct dryi_map *map, struct model *m, size_t i, uint32_t value)
{
    assert_true(dryi_map_put(map, key_of(i), value));
    m->count += !m->has[i];
    m->has[i] = true;
    m->value[i] = value;
}

static void
take(struct dryi_map *map, struct model *m, size_t i)
{
    assert_int_equal(dryi_map_take(map, key_of(i)), m->has[i]);
    m->count -= m->has[i];
    m->has[i] = false;
}

static void
random_operations_as_in_an_array(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct random r;
        struct dryi_map map;
        struct model m = {0};
        random_init(&r, seed);
        dryi_map_init(&map, NULL);
        size_t range = seed % 2 ? KEYS : 24; /* few keys: the table stays crowded */
        for (int step = 0; step < 4000; step++) {
            size_t i = random_below(&r, range);
            if (random_below(&r, 100) < 30 + 20 * (seed % 3))
                put(&map, &m, KEYS - 1 - i, (uint32_t)random_next(&r));
            else
                take(&map, &m, KEYS - 1 - i);
            if (step % 64 == 0)
                compare(&map, &m);
        }
        compare(&map, &m);
        compare_walk(&map, &m);
        dryi_map_finish(&map);
    }
}

/* Each take must leave all others where they can be found, whatever the run of slots. */
static void
takes_close_their_gaps(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct random r;
        struct dryi_map map;
        struct model m = {0};
        random_init(&r, seed);
        dryi_map_init(&map, NULL);
        for (size_t i = 0; i < 31; i++)
            put(&map, &m, random_below(&r, KEYS), (uint32_t)i);
        assert_int_equal(map.slot_count, 64);
        for (size_t i = 0; i < KEYS; i++) {
            if (!m.has[i])
                continue;
            take(&map, &m, i);
            compare(&map, &m);
        }
        assert_int_equal(map.count, 0);
        dryi_map_finish(&map);
    }
}

static void
an_empty_map(void **state)
{
    (void)state;
    struct dryi_map map;
    size_t at = 0;
    dryi_map_init(&map, NULL);
    assert_null(dryi_map_find(&map, 0));
    assert_false(dryi_map_take(&map, 0));
    assert_null(dryi_map_next(&map, &at));
    dryi_map_finish(&map);
    dryi_map_finish(&map);
    assert_true(dryi_map_put(&map, 7, 1)); /* usable again */
    assert_int_equal(*dryi_map_find(&map, 7), 1);
    dryi_map_finish(&map);
}

/* A table that lives through many puts and takes of few keys does not grow. */
static void
a_table_does_not_age(void **state)
{
    (void)state;
    struct dryi_map map;
    dryi_map_init(&map, NULL);
    for (uint64_t key = 0; key < 100000; key++) {
        assert_true(dryi_map_put(&map, key, (uint32_t)key));
        if (key >= 16)
            assert_true(dryi_map_take(&map, key - 16));
    }
    assert_int_equal(map.count, 16);
    assert_int_equal(map.slot_count, 64);
    dryi_map_finish(&map);
}

/* Only what is new takes memory: at 32 of 64 it would. */
static void
a_known_key_takes_none(void **state)
{
    (void)state;
    struct dryi_map map;
    dryi_map_init(&map, NULL);
    for (uint64_t key = 0; key < 32; key++)
        assert_true(dryi_map_put(&map, key, 0));
    assert_true(dryi_map_put(&map, 7, 1));
    assert_int_equal(map.slot_count, 64);
    assert_true(map.count == 32 && *dryi_map_find(&map, 7) == 1);
    assert_true(dryi_map_put(&map, 32, 2));
    assert_int_equal(map.slot_count, 128);
    dryi_map_finish(&map);
}

static bool
fill(const struct dry_memory *memory)
{
    struct dryi_map map;
    dryi_map_init(&map, memory);
    uint64_t key = 0;
    while (key < 300 && dryi_map_put(&map, key, (uint32_t)key))
        key++;
    for (uint64_t i = 0; i < key; i++) /* a put that fails changes nothing */
        assert_int_equal(*dryi_map_find(&map, i), i);
    assert_int_equal(map.count, key);
    dryi_map_finish(&map);
    return key == 300;
}

static void
each_request_for_memory_may_fail(void **state)
{
    (void)state;
    size_t n = 0;
    for (bool failed = true; failed; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        bool is_full = fill(&memory);
        failed = fm.failed;
        failing_memory_finish(&fm);
        assert_int_equal(is_full, !failed);
    }
    assert_true(n > 3);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_operations_as_in_an_array),
        cmocka_unit_test(takes_close_their_gaps),
        cmocka_unit_test(an_empty_map),
        cmocka_unit_test(a_table_does_not_age),
        cmocka_unit_test(a_known_key_takes_none),
        cmocka_unit_test(each_request_for_memory_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
