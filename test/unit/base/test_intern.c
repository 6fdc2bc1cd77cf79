/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"
#include "support/failing_memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/intern.h"

/* The same seed, the same numbers. */
static uint64_t
next_random(uint64_t *seed)
{
    *seed += UINT64_C(0x9e3779b97f4a7c15);
    return dryi_mix64(*seed);
}

#define MODEL_ENTRIES 400
#define MODEL_BYTES 24

/* The naive one: a list, searched from the front. */
struct model {
    uint32_t count;
    size_t lengths[MODEL_ENTRIES];
    unsigned char bytes[MODEL_ENTRIES][MODEL_BYTES];
};

static uint32_t
model_find(const struct model *m, const unsigned char *bytes, size_t length)
{
    for (uint32_t id = 0; id < m->count; id++) {
        if (m->lengths[id] == length && memcmp(m->bytes[id], bytes, length) == 0)
            return id;
    }
    return DRYI_INTERN_NONE;
}

static uint32_t
model_put(struct model *m, const unsigned char *bytes, size_t length)
{
    uint32_t id = model_find(m, bytes, length);
    if (id != DRYI_INTERN_NONE)
        return id;
    m->lengths[m->count] = length;
    memcpy(m->bytes[m->count], bytes, length);
    return m->count++;
}

/* Short strings over few letters, so that many are equal and many share a beginning. */
static size_t
make_bytes(uint64_t *seed, unsigned char *bytes)
{
    size_t length = next_random(seed) % MODEL_BYTES;
    for (size_t i = 0; i < length; i++)
        bytes[i] = next_random(seed) % 16 ? 0 : (unsigned char)next_random(seed);
    return length;
}

static void
check_all(const struct dryi_intern *in, const struct model *m)
{
    assert_int_equal(in->count, m->count);
    for (uint32_t id = 0; id < m->count; id++) {
        size_t length;
        const char *bytes = dryi_intern_get(in, id, &length);
        assert_int_equal(length, m->lengths[id]);
        assert_int_equal(memcmp(bytes, m->bytes[id], length), 0);
        assert_int_equal(bytes[length], 0);
        assert_int_equal((uintptr_t)bytes % 8, 0);
        assert_int_equal(dryi_intern_find(in, m->bytes[id], length), id);
    }
}

static void
run_against_model(uint64_t seed)
{
    struct failing_memory fm;
    struct dry_memory memory = failing_memory_init(&fm, SIZE_MAX);
    struct dryi_intern in;
    dryi_intern_init(&in, &memory);
    struct model *m = calloc(1, sizeof *m);
    assert_non_null(m);
    for (int i = 0; i < 2000 && m->count < MODEL_ENTRIES; i++) {
        unsigned char bytes[MODEL_BYTES];
        size_t length = make_bytes(&seed, bytes);
        assert_int_equal(dryi_intern_find(&in, bytes, length),
                         model_find(m, bytes, length));
        assert_int_equal(dryi_intern_put(&in, bytes, length),
                         model_put(m, bytes, length));
    }
    check_all(&in, m);
    dryi_intern_seal(&in);
    check_all(&in, m);
    assert_int_equal(dryi_intern_find(&in, "not there at all", 16), DRYI_INTERN_NONE);
    free(m);
    dryi_intern_finish(&in);
    dryi_intern_finish(&in); /* an ended one is empty and may be ended again */
    failing_memory_finish(&fm);
}

static void
agrees_with_the_model(void **state)
{
    (void)state;
    const char *given = getenv("DRY_TEST_SEED");
    if (given) {
        run_against_model(strtoull(given, NULL, 0));
        return;
    }
    for (uint64_t seed = 1; seed <= 50; seed++) {
        print_message("# seed %llu\n", (unsigned long long)seed);
        run_against_model(seed);
    }
}

static void
empty_and_long_entries_are_entries(void **state)
{
    (void)state;
    struct dryi_intern in;
    dryi_intern_init(&in, NULL);
    assert_int_equal(dryi_intern_find(&in, NULL, 0), DRYI_INTERN_NONE);
    assert_int_equal(dryi_intern_put(&in, NULL, 0), 0);
    assert_int_equal(dryi_intern_put(&in, "", 0), 0);
    assert_int_equal(dryi_intern_put(&in, "", 1), 1); /* a zero byte is a byte */
    size_t length = 1000000;
    char *zeros = calloc(length, 1);
    assert_non_null(zeros);
    assert_int_equal(dryi_intern_put(&in, zeros, length), 2);
    assert_int_equal(dryi_intern_put(&in, zeros, length - 1), 3);
    assert_int_equal(dryi_intern_put(&in, zeros, length), 2);
    free(zeros);
    dryi_intern_finish(&in);
}

static bool
put_numbers(struct dryi_intern *in)
{
    for (uint64_t i = 0; i < 3000; i++) {
        uint32_t count = in->count;
        uint32_t id = dryi_intern_put(in, &i, sizeof i);
        if (id == DRYI_INTERN_NONE) {
            assert_int_equal(in->count, count);
            return false;
        }
        assert_int_equal(id, i);
    }
    return true;
}

/* After any failure everything put so far is still there. */
static void
running_out_of_memory_loses_nothing(void **state)
{
    (void)state;
    for (size_t n = 0;; n++) {
        struct failing_memory fm;
        struct dry_memory memory = failing_memory_init(&fm, n);
        struct dryi_intern in;
        dryi_intern_init(&in, &memory);
        bool all = put_numbers(&in);
        for (uint64_t i = 0; i < in.count; i++)
            assert_int_equal(dryi_intern_find(&in, &i, sizeof i), i);
        dryi_intern_finish(&in);
        failing_memory_finish(&fm);
        assert_int_equal(all, !fm.failed);
        if (all)
            break;
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_the_model),
        cmocka_unit_test(empty_and_long_entries_are_entries),
        cmocka_unit_test(running_out_of_memory_loses_nothing),
    };
    return cmocka_run_group_tests_name("intern", tests, NULL, NULL);
}
