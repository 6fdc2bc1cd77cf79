/* SPDX-License-Identifier: Apache-2.0 */

/* A table of dtype names, searched linearly. */
#include <drystone/dtype.h>

#include <string.h>

#include "base/fail.h"

/* dry_dtype_name() returns the first name of a dtype; shorter names follow it. */
static const struct {
    const char *name;
    struct dry_dtype dtype;
} names[] = {
    {"float32", {DRY_DTYPE_FLOAT, 32, 1}},
    {"fp32", {DRY_DTYPE_FLOAT, 32, 1}},
    {"f32", {DRY_DTYPE_FLOAT, 32, 1}},
    {"float16", {DRY_DTYPE_FLOAT, 16, 1}},
    {"fp16", {DRY_DTYPE_FLOAT, 16, 1}},
    {"f16", {DRY_DTYPE_FLOAT, 16, 1}},
    {"half", {DRY_DTYPE_FLOAT, 16, 1}},
    {"bfloat16", {DRY_DTYPE_BFLOAT, 16, 1}},
    {"bf16", {DRY_DTYPE_BFLOAT, 16, 1}},
    {"float64", {DRY_DTYPE_FLOAT, 64, 1}},
    {"fp64", {DRY_DTYPE_FLOAT, 64, 1}},
    {"f64", {DRY_DTYPE_FLOAT, 64, 1}},
    {"double", {DRY_DTYPE_FLOAT, 64, 1}},
    {"int8", {DRY_DTYPE_INT, 8, 1}},
    {"i8", {DRY_DTYPE_INT, 8, 1}},
    {"int16", {DRY_DTYPE_INT, 16, 1}},
    {"i16", {DRY_DTYPE_INT, 16, 1}},
    {"int32", {DRY_DTYPE_INT, 32, 1}},
    {"i32", {DRY_DTYPE_INT, 32, 1}},
    {"int64", {DRY_DTYPE_INT, 64, 1}},
    {"i64", {DRY_DTYPE_INT, 64, 1}},
    {"uint8", {DRY_DTYPE_UINT, 8, 1}},
    {"u8", {DRY_DTYPE_UINT, 8, 1}},
    {"uint16", {DRY_DTYPE_UINT, 16, 1}},
    {"u16", {DRY_DTYPE_UINT, 16, 1}},
    {"uint32", {DRY_DTYPE_UINT, 32, 1}},
    {"u32", {DRY_DTYPE_UINT, 32, 1}},
    {"uint64", {DRY_DTYPE_UINT, 64, 1}},
    {"u64", {DRY_DTYPE_UINT, 64, 1}},
    {"bool", {DRY_DTYPE_BOOL, 8, 1}},
    {"complex32", {DRY_DTYPE_COMPLEX, 32, 1}},
    {"complex64", {DRY_DTYPE_COMPLEX, 64, 1}},
    {"complex128", {DRY_DTYPE_COMPLEX, 128, 1}},
    {"float8_e3m4", {DRY_DTYPE_FLOAT8_E3M4, 8, 1}},
    {"float8_e4m3", {DRY_DTYPE_FLOAT8_E4M3, 8, 1}},
    {"float8_e4m3b11fnuz", {DRY_DTYPE_FLOAT8_E4M3B11FNUZ, 8, 1}},
    {"float8_e4m3fn", {DRY_DTYPE_FLOAT8_E4M3FN, 8, 1}},
    {"float8_e4m3fnuz", {DRY_DTYPE_FLOAT8_E4M3FNUZ, 8, 1}},
    {"float8_e5m2", {DRY_DTYPE_FLOAT8_E5M2, 8, 1}},
    {"float8_e5m2fnuz", {DRY_DTYPE_FLOAT8_E5M2FNUZ, 8, 1}},
    {"float8_e8m0fnu", {DRY_DTYPE_FLOAT8_E8M0FNU, 8, 1}},
    {"float6_e2m3fn", {DRY_DTYPE_FLOAT6_E2M3FN, 6, 1}},
    {"float6_e3m2fn", {DRY_DTYPE_FLOAT6_E3M2FN, 6, 1}},
    {"float4_e2m1fn_x2", {DRY_DTYPE_FLOAT4_E2M1FN, 4, 2}},
    {"float4_e2m1fn", {DRY_DTYPE_FLOAT4_E2M1FN, 4, 1}},
    {"int4", {DRY_DTYPE_INT, 4, 1}},
    {"uint4", {DRY_DTYPE_UINT, 4, 1}},
};
#define NAME_COUNT (sizeof names / sizeof *names)

enum dry_status
dry_dtype_parse(const char *name, struct dry_dtype *dtype, struct dry_error *err)
{
    static const char prefix[] = "torch.";
    const char *rest = name;
    if (strncmp(name, prefix, sizeof prefix - 1) == 0)
        rest += sizeof prefix - 1;
    for (size_t i = 0; i < NAME_COUNT; i++) {
        if (strcmp(rest, names[i].name) == 0) {
            *dtype = names[i].dtype;
            return DRY_OK;
        }
    }
    return dryi_fail(err, DRY_ERR_ARGUMENT,
                     "'%.40s' is no dtype; float32, bfloat16, int8 are some", name);
}

const char *
dry_dtype_name(struct dry_dtype dtype)
{
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (dtype.code == names[i].dtype.code && dtype.bits == names[i].dtype.bits &&
            dtype.lanes == names[i].dtype.lanes)
            return names[i].name;
    return NULL;
}
