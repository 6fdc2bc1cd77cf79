/* SPDX-License-Identifier: Apache-2.0 */
/* XXH64: its published values, those of another implementation, and pieces of any length. */
#include "support/cmocka.h"

#include <stdlib.h>

#include "record/byte_hash.h"
#include "support/random.h"

/* In one piece, and in pieces of chance, which is the same. */
static uint64_t
hash_of(const void *bytes, size_t count)
{
    struct byte_hash whole, pieces;
    struct random random;
    random_init(&random, count);
    byte_hash_begin(&whole);
    byte_hash_add(&whole, bytes, count);
    byte_hash_begin(&pieces);
    for (size_t done = 0, piece; done < count; done += piece) {
        piece = (size_t)random_below(&random, done % 3 ? 40 : 4000);
        piece = piece < count - done ? piece : count - done;
        byte_hash_add(&pieces, (const unsigned char *)bytes + done, piece);
    }
    uint64_t hash = byte_hash_end(&whole);
    assert_true(byte_hash_end(&pieces) == hash);
    return hash;
}

static void
published_values(void **state)
{
    (void)state;
    assert_true(hash_of("", 0) == UINT64_C(0xef46db3751d8e999));
    assert_true(hash_of("abc", 3) == UINT64_C(0x44bc2cf5ad770999));
    assert_true(hash_of("Nobody inspects the spammish repetition", 39) ==
                UINT64_C(0xfbcea83c8a378bf1));
}

static void
stripes_and_pieces_have_no_seams(void **state)
{
    (void)state;
    static const struct {
        size_t count;
        uint64_t hash;
    } cases[] = {
        {31, UINT64_C(0x0f187c62b1e722b7)},    {32, UINT64_C(0x91b0cb0931a8c629)},
        {32768, UINT64_C(0x5e4a2418b0379070)}, {32769, UINT64_C(0x8b164d798ae1ad0b)},
        {70031, UINT64_C(0xa9588e6bc2794f6c)},
    };
    unsigned char *bytes = malloc(70031);
    assert_non_null(bytes);
    for (size_t i = 0; i < 70031; i++)
        bytes[i] = (unsigned char)(i * 7);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_true(hash_of(bytes, cases[i].count) == cases[i].hash);
    free(bytes);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_values),
        cmocka_unit_test(stripes_and_pieces_have_no_seams),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
