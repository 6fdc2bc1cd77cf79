/* SPDX-License-Identifier: Apache-2.0 */

/* The size of a form: bits of an element times its shape, with every overflow checked.
   Strides are compact, in row-major order (DLPack). */
#include "base/fail.h"
#include "host/tensor/tensor_inside.h"

static enum dry_status
check_form(const struct dry_tensor_form *form, struct dry_error *err)
{
    if (form->dtype.bits == 0 || form->dtype.lanes == 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "dtype of %u bits and %u lanes",
                         form->dtype.bits, form->dtype.lanes);
    if (form->ndim < 0 || form->ndim > DRY_TENSOR_NDIM_MAX ||
        (form->ndim && !form->shape))
        return dryi_fail(err, DRY_ERR_ARGUMENT, "ndim %d: 0 to %d, and a shape",
                         form->ndim, DRY_TENSOR_NDIM_MAX);
    if (form->is_padded && (form->dtype.bits >= 8 || form->dtype.lanes != 1))
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "padded: for one lane of less than 8 bits, not %u of %u",
                         form->dtype.lanes, form->dtype.bits);
    return DRY_OK;
}

/* Return the bits from one element to the next. DLPack gives each element whole bytes,
   but packs elements of less than 8 bits. */
static uint64_t
step_bits(const struct dry_tensor_form *form)
{
    uint64_t bits = (uint64_t)form->dtype.bits * form->dtype.lanes;
    if (form->dtype.bits < 8 && !form->is_padded)
        return bits;
    return (bits + 7) / 8 * 8;
}

enum dry_status
dryi_tensor_measure(const struct dry_tensor_form *form, struct dryi_tensor_size *size,
                    struct dry_error *err)
{
    enum dry_status status = check_form(form, err);
    if (status != DRY_OK)
        return status;
    /* `span` skips lengths of 0, like strides. */
    uint64_t span = 1, step = step_bits(form);
    bool is_empty = false;
    for (int32_t i = 0; i < form->ndim; i++) {
        int64_t length = form->shape[i];
        if (length < 0)
            return dryi_fail(err, DRY_ERR_ARGUMENT, "shape[%d] is %lld", i,
                             (long long)length);
        is_empty |= length == 0;
        if (length && __builtin_mul_overflow(span, (uint64_t)length, &span))
            span = UINT64_MAX;
    }
    /* Bytes and bits are multiplied separately, so that the limit is 2^63 bytes and not
       2^63 bits. */
    uint64_t whole, rest = span % 8 * step;
    if (__builtin_mul_overflow(span / 8, step, &whole) || span > INT64_MAX ||
        whole > INT64_MAX - (rest + 7) / 8)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "a shape of %d dimensions has more than 2^63 - 1 bytes",
                         form->ndim);
    *size = (struct dryi_tensor_size){.element_count = is_empty ? 0 : span,
                                      .bytes = is_empty ? 0 : whole + (rest + 7) / 8};
    return DRY_OK;
}

enum dry_status
dry_tensor_measure(const struct dry_tensor_form *form, uint64_t *bytes,
                   struct dry_error *err)
{
    struct dryi_tensor_size size = {0};
    enum dry_status status = dryi_tensor_measure(form, &size, err);
    if (status == DRY_OK)
        *bytes = size.bytes;
    return status;
}

void
dryi_tensor_strides(const struct dry_tensor_form *form, int64_t *strides)
{
    int64_t step = 1;
    for (int32_t i = form->ndim; i-- > 0;) {
        strides[i] = step;
        step *= form->shape[i] ? form->shape[i] : 1;
    }
}
