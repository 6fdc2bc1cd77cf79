/* SPDX-License-Identifier: Apache-2.0 */
#include "support/cmocka.h"

#include <drystone/dtype.h>

#include <string.h>

static struct dry_dtype
parse(const char *name)
{
    struct dry_dtype d = {255, 0, 0};
    struct dry_error err;
    assert_int_equal(dry_dtype_parse(name, &d, &err), DRY_OK);
    return d;
}

static void
assert_dtype(struct dry_dtype d, enum dry_dtype_code code, unsigned bits, unsigned lanes)
{
    assert_int_equal(d.code, code);
    assert_int_equal(d.bits, bits);
    assert_int_equal(d.lanes, lanes);
}

static void
names_mean_what_they_mean_to_pytorch(void **state)
{
    (void)state;
    assert_dtype(parse("float32"), DRY_DTYPE_FLOAT, 32, 1);
    assert_dtype(parse("torch.bfloat16"), DRY_DTYPE_BFLOAT, 16, 1);
    assert_dtype(parse("bf16"), DRY_DTYPE_BFLOAT, 16, 1);
    assert_dtype(parse("half"), DRY_DTYPE_FLOAT, 16, 1);
    assert_dtype(parse("uint8"), DRY_DTYPE_UINT, 8, 1);
    assert_dtype(parse("bool"), DRY_DTYPE_BOOL, 8, 1);
    assert_dtype(parse("complex64"), DRY_DTYPE_COMPLEX, 64, 1);
    assert_dtype(parse("float8_e4m3fn"), DRY_DTYPE_FLOAT8_E4M3FN, 8, 1);
    assert_dtype(parse("float4_e2m1fn_x2"), DRY_DTYPE_FLOAT4_E2M1FN, 4, 2);
    assert_dtype(parse("int4"), DRY_DTYPE_INT, 4, 1);
}

/* "float" is 64 bits to NumPy and 32 to PyTorch: a guess would be wrong for one of them. */
static void
other_names_are_refused(void **state)
{
    (void)state;
    static const char *const names[] = {"",
                                        "float",
                                        "int",
                                        "long",
                                        "torch.",
                                        "FLOAT32",
                                        "float32 ",
                                        "float3",
                                        "torch.torch.int8",
                                        "\x1b[31mfloat32"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct dry_dtype d = {255, 255, 255};
        struct dry_error err = {0};
        assert_int_equal(dry_dtype_parse(names[i], &d, &err), DRY_ERR_ARGUMENT);
        assert_dtype(d, 255, 255, 255);
        assert_null(strchr(err.text, '\x1b'));
        assert_int_equal(dry_dtype_parse(names[i], &d, NULL), DRY_ERR_ARGUMENT);
    }
}

static void
every_name_comes_back(void **state)
{
    (void)state;
    static const char *const names[] = {
        "float16",       "float32",       "float64",         "bfloat16",
        "int8",          "int16",         "int32",           "int64",
        "uint8",         "uint16",        "uint32",          "uint64",
        "bool",          "complex32",     "complex64",       "complex128",
        "float8_e4m3fn", "float8_e5m2",   "float8_e8m0fnu",  "int4",
        "uint4",         "float4_e2m1fn", "float4_e2m1fn_x2"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_string_equal(dry_dtype_name(parse(names[i])), names[i]);
    assert_string_equal(dry_dtype_name(parse("fp16")), "float16");
    assert_null(dry_dtype_name((struct dry_dtype){DRY_DTYPE_FLOAT, 32, 4}));
    assert_null(dry_dtype_name((struct dry_dtype){DRY_DTYPE_OPAQUE, 64, 1}));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_mean_what_they_mean_to_pytorch),
        cmocka_unit_test(other_names_are_refused),
        cmocka_unit_test(every_name_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
