/* SPDX-License-Identifier: Apache-2.0 */
/* SipHash-2-4 against the vectors that its authors published. */
#include "support/cmocka.h"

#include "base/siphash.h"

/* Key 00 01 .. 0f, the message 00 01 .. of so many bytes. */
struct vector {
    size_t length;
    uint64_t hash;
};

static const struct vector vectors[] = {
    {0, UINT64_C(0x726fdb47dd0e0e31)},  {1, UINT64_C(0x74f839c593dc67fd)},
    {2, UINT64_C(0x0d6c8009d9a94f5a)},  {3, UINT64_C(0x85676696d7fb7e2d)},
    {7, UINT64_C(0xab0200f58b01d137)},  {8, UINT64_C(0x93f5f5799a932462)},
    {15, UINT64_C(0xa129ca6149be45e5)}, {63, UINT64_C(0x958a324ceb064572)},
};

static void
published_vectors_hold(void **state)
{
    (void)state;
    unsigned char bytes[64];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    struct dryi_siphash_key key = dryi_siphash_key_make(bytes, 16);
    assert_true(key.low == UINT64_C(0x0706050403020100));
    assert_true(key.high == UINT64_C(0x0f0e0d0c0b0a0908));
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++)
        assert_true(dryi_siphash(&key, bytes, vectors[i].length) == vectors[i].hash);
}

static void
keys_of_any_length_differ(void **state)
{
    (void)state;
    struct dryi_siphash_key keys[] = {
        dryi_siphash_key_make("a", 1), dryi_siphash_key_make("b", 1),
        dryi_siphash_key_make("ab", 2), dryi_siphash_key_make("0123456789abcdef", 16),
        dryi_siphash_key_make("0123456789abcdefg", 17)};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        assert_true(keys[i].low != keys[i].high);
        for (size_t k = 0; k < i; k++)
            assert_true(dryi_siphash(&keys[i], "x", 1) != dryi_siphash(&keys[k], "x", 1));
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_vectors_hold),
        cmocka_unit_test(keys_of_any_length_differ),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
