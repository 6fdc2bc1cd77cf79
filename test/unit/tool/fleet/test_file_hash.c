/* SPDX-License-Identifier: Apache-2.0 */
/* A file's hash is XXH64: its published values, and those of another implementation. */
#include "support/cmocka.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fleet/file_hash.h"

static uint64_t
hash_of(const void *bytes, size_t count)
{
    char path[] = "/tmp/drystone-hash-XXXXXX";
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_int_equal(write(descriptor, bytes, count), count);
    close(descriptor);
    uint64_t length, hash = file_hash(path, &length);
    assert_int_equal(length, count);
    unlink(path);
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
stripes_and_buffers_have_no_seams(void **state)
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

static void
a_file_that_is_not_there_is_empty(void **state)
{
    (void)state;
    uint64_t length = 1;
    assert_true(file_hash("/nonexistent/file", &length) == hash_of("", 0));
    assert_int_equal(length, 0);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_values),
        cmocka_unit_test(stripes_and_buffers_have_no_seams),
        cmocka_unit_test(a_file_that_is_not_there_is_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
