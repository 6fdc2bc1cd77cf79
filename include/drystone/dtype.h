/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_DTYPE_H
#define DRY_DTYPE_H

/*
 * The type of a tensor's elements, and its name.
 *
 *     struct dry_dtype dtype;
 *     if (dry_dtype_parse("bfloat16", &dtype, &err) != DRY_OK) ...
 *
 * The struct has the fields and layout of DLPack's DLDataType (dlpack.h): code, bits,
 * lanes.
 *
 * Ownership  Plain data.
 * Threads    Any thread may call.
 */

#include <stdint.h>

#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Type codes, with DLPack's numbers (DLDataTypeCode). */
enum dry_dtype_code {
    DRY_DTYPE_INT = 0,
    DRY_DTYPE_UINT = 1,
    DRY_DTYPE_FLOAT = 2,
    DRY_DTYPE_OPAQUE = 3,
    DRY_DTYPE_BFLOAT = 4,
    DRY_DTYPE_COMPLEX = 5, /* `bits` counts real and imaginary parts together */
    DRY_DTYPE_BOOL = 6,
    DRY_DTYPE_FLOAT8_E3M4 = 7,
    DRY_DTYPE_FLOAT8_E4M3 = 8,
    DRY_DTYPE_FLOAT8_E4M3B11FNUZ = 9,
    DRY_DTYPE_FLOAT8_E4M3FN = 10,
    DRY_DTYPE_FLOAT8_E4M3FNUZ = 11,
    DRY_DTYPE_FLOAT8_E5M2 = 12,
    DRY_DTYPE_FLOAT8_E5M2FNUZ = 13,
    DRY_DTYPE_FLOAT8_E8M0FNU = 14,
    DRY_DTYPE_FLOAT6_E2M3FN = 15,
    DRY_DTYPE_FLOAT6_E3M2FN = 16,
    DRY_DTYPE_FLOAT4_E2M1FN = 17,
};

struct dry_dtype {
    uint8_t code; /* enum dry_dtype_code */
    uint8_t bits; /* size of one lane */
    uint16_t lanes;
};

/*
 * Find a type by `name`, which is one of:
 *     NumPy's or PyTorch's  "float32", "torch.bfloat16", "uint8", "float4_e2m1fn_x2"
 *     a short one           "f16", "fp16", "half", "bf16", "i8", "u8"
 * The names "float", "int", "long" and "complex" are rejected: they mean different types
 * in NumPy and PyTorch. ARGUMENT: unknown name.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_dtype_parse(const char *name,
                                                         struct dry_dtype *dtype,
                                                         struct dry_error *err);

/* Return PyTorch's name of a type, without "torch."; NULL: PyTorch has no such type. */
DRY_API const char *dry_dtype_name(struct dry_dtype dtype);

#ifdef __cplusplus
}
#endif

#endif
