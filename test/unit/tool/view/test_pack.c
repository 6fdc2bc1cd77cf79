/* SPDX-License-Identifier: Apache-2.0 */
/* Packs, byte by byte as doc/design/viewer.md has them. */
#include "support/cmocka.h"

#include <stdlib.h>
#include <string.h>

#include "view/pack.h"

static uint32_t
u32_at(const struct answer *a, size_t at)
{
    uint32_t value;
    assert_true(at + sizeof value <= a->length);
    memcpy(&value, a->bytes + at, sizeof value);
    return value;
}

static void
columns_have_the_form_of_the_page(void **state)
{
    (void)state;
    struct pack p = {0};
    unsigned small = pack_column(&p, "small", PACK_U8);
    unsigned large = pack_column(&p, "exactly16letters", PACK_U64);
    unsigned none = pack_column(&p, "none", PACK_F64);
    pack_u8(&p, small, 7);
    pack_text(&p, small, "ab", 2);
    pack_u64(&p, large, UINT64_C(0xfedcba9876543210));
    assert_int_equal(pack_length(&p, small), 3);
    struct answer a;
    assert_true(pack_write(&p, &a));
    assert_false(a.is_json);
    assert_memory_equal(a.bytes, "DSV1", 4);
    assert_int_equal(u32_at(&a, 4), 3);
    assert_memory_equal(a.bytes + 8, "small\0\0\0\0\0\0\0\0\0\0\0", 16);
    assert_memory_equal(a.bytes + 40, "exactly16letters", 16);
    assert_int_equal(u32_at(&a, 8 + 16), PACK_U8);
    assert_int_equal(u32_at(&a, 8 + 20), 0);
    assert_int_equal(u32_at(&a, 8 + 24), 8 + 3 * 32);
    assert_int_equal(u32_at(&a, 8 + 28), 3);
    assert_memory_equal(a.bytes + 8 + 3 * 32, "\7ab\0\0\0\0\0", 8);
    assert_int_equal(u32_at(&a, 40 + 24), 8 + 3 * 32 + 8);
    assert_memory_equal(a.bytes + 8 + 3 * 32 + 8, "\x10\x32\x54\x76\x98\xba\xdc\xfe", 8);
    assert_int_equal(u32_at(&a, 72 + 28), 0);
    assert_int_equal(a.length, 8 + 3 * 32 + 16);
    assert_int_equal(pack_length(&p, none), 0);
    free(a.bytes);
    pack_finish(&p);
}

static void
any_number_of_values_is_kept(void **state)
{
    (void)state;
    struct pack p = {0};
    unsigned numbers = pack_column(&p, "numbers", PACK_U32);
    unsigned bytes = pack_column(&p, "bytes", PACK_F64);
    for (uint32_t i = 0; i < 100000; i++) {
        pack_u32(&p, numbers, i);
        pack_f64(&p, bytes, (double)i * 4294967296.0);
    }
    struct answer a;
    assert_true(pack_write(&p, &a));
    uint32_t at = u32_at(&a, 8 + 24), doubles = u32_at(&a, 40 + 24);
    for (uint32_t i = 0; i < 100000; i++) {
        double value;
        assert_int_equal(u32_at(&a, at + (size_t)i * 4), i);
        memcpy(&value, a.bytes + doubles + (size_t)i * 8, sizeof value);
        assert_true(value == (double)i * 4294967296.0);
    }
    free(a.bytes);
    pack_finish(&p);
}

static void
a_failure_stays(void **state)
{
    (void)state;
    struct pack p = {.has_failed = true};
    struct answer a;
    pack_u8(&p, pack_column(&p, "x", PACK_U8), 1);
    assert_false(pack_write(&p, &a));
    pack_finish(&p);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_have_the_form_of_the_page),
        cmocka_unit_test(any_number_of_values_is_kept),
        cmocka_unit_test(a_failure_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
