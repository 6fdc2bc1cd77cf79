/* SPDX-License-Identifier: Apache-2.0 */

/* Exports of a tensor. The exported struct, its shape and its strides are one allocation.
   The deleter frees it and drops one reference to the tensor. */
#include <string.h>

#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "host/tensor/tensor_inside.h"

/* The struct layouts of dlpack.h on 64-bit machines. */
#define AT(type, member, offset)                                                         \
    _Static_assert(sizeof(void *) != 8 || offsetof(struct type, member) == (offset),     \
                   "not DLPack's layout")
_Static_assert(sizeof(struct dry_dtype) == 4, "DLDataType");
_Static_assert(sizeof(struct dry_dlpack_device) == 8, "DLDevice");
_Static_assert(sizeof(void *) != 8 || sizeof(struct dry_dlpack_tensor) == 48, "DLTensor");
AT(dry_dlpack_tensor, device, 8);
AT(dry_dlpack_tensor, ndim, 16);
AT(dry_dlpack_tensor, dtype, 20);
AT(dry_dlpack_tensor, shape, 24);
AT(dry_dlpack_tensor, strides, 32);
AT(dry_dlpack_tensor, byte_offset, 40);
AT(dry_dlpack_legacy, manager_ctx, 48);
AT(dry_dlpack_legacy, deleter, 56);
AT(dry_dlpack_versioned, manager_ctx, 8);
AT(dry_dlpack_versioned, deleter, 16);
AT(dry_dlpack_versioned, flags, 24);
AT(dry_dlpack_versioned, tensor, 32);

struct export
{
    struct dry_tensor *tensor;
    size_t bytes;
    union {
        struct dry_dlpack_versioned versioned;
        struct dry_dlpack_legacy legacy;
    } managed;
    int64_t numbers[]; /* shape, then strides */
};

void
dry_tensor_view_init_sized(struct dry_tensor_view *view, size_t struct_size)
{
    const struct dry_tensor_view defaults = {0};
    dryi_sized_init(view, struct_size, &defaults, sizeof defaults);
}

static enum dry_status
check_part(const struct dry_tensor *tensor, const struct dry_tensor_view *view,
           struct dry_error *err)
{
    struct dryi_tensor_size size;
    enum dry_status status = dryi_tensor_measure(&view->form, &size, err);
    if (status != DRY_OK)
        return status;
    if (view->offset_bytes % DRYI_TENSOR_ALIGNMENT != 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "offset_bytes %llu: a multiple of %d is expected",
                         (unsigned long long)view->offset_bytes, DRYI_TENSOR_ALIGNMENT);
    if (view->offset_bytes > tensor->bytes ||
        size.bytes > tensor->bytes - view->offset_bytes)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "bytes %llu to %llu: the tensor has %llu",
                         (unsigned long long)view->offset_bytes,
                         (unsigned long long)view->offset_bytes + size.bytes,
                         (unsigned long long)tensor->bytes);
    return DRY_OK;
}

static enum dry_status
take_view(const struct dry_tensor *tensor, const struct dry_tensor_view *from,
          struct dry_tensor_view *view, struct dry_error *err)
{
    dry_tensor_view_init(view);
    enum dry_status status = dryi_sized_take(view, sizeof *view, from, err);
    if (status != DRY_OK)
        return status;
    if (view->is_part)
        return check_part(tensor, view, err);
    view->offset_bytes = 0;
    view->form = tensor->form;
    return DRY_OK;
}

static void *
get_address(const struct dry_tensor *tensor, const struct dry_tensor_view *view)
{
    for (int32_t i = 0; i < view->form.ndim; i++)
        if (view->form.shape[i] == 0)
            return NULL;
    return (char *)tensor->address + view->offset_bytes;
}

static struct export *
make_export(struct dry_tensor *tensor, const struct dry_tensor_view *view,
            struct dry_dlpack_tensor *out)
{
    size_t ndim = (size_t)view->form.ndim;
    size_t bytes = sizeof(struct export) + 2 * ndim * sizeof(int64_t);
    struct export *e = dryi_memory_zalloc(&tensor->memory, 1, bytes);
    if (!e)
        return NULL;
    e->tensor = tensor;
    e->bytes = bytes;
    if (ndim)
        memcpy(e->numbers, view->form.shape, ndim * sizeof(int64_t));
    dryi_tensor_strides(&view->form, e->numbers + ndim);
    *out = (struct dry_dlpack_tensor){
        .data = get_address(tensor, view),
        .device = tensor->device,
        .ndim = view->form.ndim,
        .dtype = view->form.dtype,
        .shape = e->numbers,
        .strides = e->numbers + ndim,
    };
    atomic_fetch_add_explicit(&tensor->users, 1, memory_order_relaxed);
    return e;
}

static void
free_export(struct export *e)
{
    struct dry_tensor *tensor = e->tensor;
    dryi_memory_free(&tensor->memory, e, 1, e->bytes);
    dryi_tensor_drop(tensor);
}

static void
delete_versioned(struct dry_dlpack_versioned *self)
{
    free_export(self->manager_ctx);
}

static void
delete_legacy(struct dry_dlpack_legacy *self)
{
    free_export(self->manager_ctx);
}

enum dry_status
dry_tensor_export(struct dry_tensor *tensor, const struct dry_tensor_view *view,
                  struct dry_dlpack_versioned **managed, struct dry_error *err)
{
    struct dry_tensor_view v;
    struct dry_dlpack_tensor t;
    enum dry_status status = take_view(tensor, view, &v, err);
    if (status != DRY_OK)
        return status;
    struct export *e = make_export(tensor, &v, &t);
    if (!e)
        return dryi_fail_memory(err, "an export of a tensor");
    e->managed.versioned = (struct dry_dlpack_versioned){
        .version = {1, 1},
        .manager_ctx = e,
        .deleter = delete_versioned,
        .flags = (v.is_read_only ? DRY_DLPACK_READ_ONLY : 0) |
                 (v.form.is_padded ? DRY_DLPACK_PADDED : 0),
        .tensor = t,
    };
    *managed = &e->managed.versioned;
    return DRY_OK;
}

enum dry_status
dry_tensor_export_legacy(struct dry_tensor *tensor, const struct dry_tensor_view *view,
                         struct dry_dlpack_legacy **managed, struct dry_error *err)
{
    struct dry_tensor_view v;
    struct dry_dlpack_tensor t;
    enum dry_status status = take_view(tensor, view, &v, err);
    if (status != DRY_OK)
        return status;
    if (v.is_read_only || v.form.is_padded)
        return dryi_fail(err, DRY_ERR_UNSUPPORTED,
                         "read-only and padded are said by the versioned form alone");
    struct export *e = make_export(tensor, &v, &t);
    if (!e)
        return dryi_fail_memory(err, "an export of a tensor");
    e->managed.legacy = (struct dry_dlpack_legacy){
        .tensor = t,
        .manager_ctx = e,
        .deleter = delete_legacy,
    };
    *managed = &e->managed.legacy;
    return DRY_OK;
}
