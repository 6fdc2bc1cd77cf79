/* SPDX-License-Identifier: Apache-2.0 */

/* A tensor is memory with a form. The memory is a region of pages or the caller's. See
   tensor_inside.h for who frees it. */
#include <string.h>

#include "base/assert.h"
#include "base/fail.h"
#include "base/memory.h"
#include "base/sized.h"
#include "host/tensor/tensor_inside.h"

/* The caller's options after validation, and the resulting size. */
struct order {
    struct dry_tensor_options options;
    struct dry_pages_options pages;
    struct dryi_tensor_size size;
};

void
dry_tensor_options_init_sized(struct dry_tensor_options *options, size_t struct_size)
{
    const struct dry_tensor_options defaults = {
        .device = {.type = DRY_DLPACK_CPU},
    };
    dryi_sized_init(options, struct_size, &defaults, sizeof defaults);
}

static enum dry_status
take_pages(struct order *order, struct dry_error *err)
{
    dry_pages_options_init(&order->pages);
    enum dry_status status =
        dryi_sized_take(&order->pages, sizeof order->pages, order->options.pages, err);
    if (status != DRY_OK)
        return status;
    if (order->pages.bytes != 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "pages->bytes %llu: 0 is expected, the form says how many",
                         (unsigned long long)order->pages.bytes);
    order->pages.bytes = order->size.bytes;
    if (!order->pages.memory)
        order->pages.memory = order->options.memory;
    return DRY_OK;
}

static enum dry_status
take_options(struct order *order, const struct dry_tensor_options *options,
             struct dry_error *err)
{
    dry_tensor_options_init(&order->options);
    enum dry_status status =
        dryi_sized_take(&order->options, sizeof order->options, options, err);
    if (status == DRY_OK)
        status = dryi_tensor_measure(&order->options.form, &order->size, err);
    if (status == DRY_OK)
        status = take_pages(order, err);
    return status;
}

static enum dry_status
check_device(const struct dry_dlpack_device *device, bool is_wrapped,
             struct dry_error *err)
{
    if (device->type == DRY_DLPACK_CPU && device->id == 0)
        return DRY_OK;
    if (device->type == DRY_DLPACK_CUDA_HOST && device->id == 0)
        return is_wrapped ? DRY_OK
                          : dryi_fail(err, DRY_ERR_UNSUPPORTED,
                                      "these pages are not page-locked for CUDA: wrap "
                                      "memory that is");
    return dryi_fail(err, DRY_ERR_ARGUMENT,
                     "device %d, %d: 1 (CPU) or 3 (CUDA host), 0 is expected",
                     device->type, device->id);
}

static size_t
record_bytes(int32_t ndim)
{
    return sizeof(struct dry_tensor) + (size_t)ndim * sizeof(int64_t);
}

static struct dry_tensor *
make_record(const struct order *order)
{
    const struct dry_tensor_options *o = &order->options;
    struct dry_memory memory = dryi_memory_or_default(o->memory);
    struct dry_tensor *t = dryi_memory_zalloc(&memory, 1, record_bytes(o->form.ndim));
    if (!t)
        return NULL;
    t->memory = memory;
    t->bytes = order->size.bytes;
    t->element_count = order->size.element_count;
    t->device = o->device;
    t->form = o->form;
    t->form.shape = t->shape;
    if (o->form.ndim)
        memcpy(t->shape, o->form.shape, (size_t)o->form.ndim * sizeof(int64_t));
    atomic_init(&t->users, 1);
    return t;
}

static void
free_record(struct dry_tensor *t)
{
    struct dry_memory memory = t->memory;
    dryi_memory_free(&memory, t, 1, record_bytes(t->form.ndim));
}

enum dry_status
dry_tensor_read_need(const struct dry_tensor_options *options,
                     struct dry_pages_need *need, struct dry_error *err)
{
    struct order order;
    enum dry_status status = take_options(&order, options, err);
    if (status != DRY_OK)
        return status;
    if (order.size.bytes)
        return dry_pages_read_need(&order.pages, need, err);
    const struct dry_pages_need none = {.kind = order.pages.kind};
    return dryi_sized_give(need, &none, sizeof none);
}

enum dry_status
dry_tensor_create(const struct dry_tensor_options *options, struct dry_tensor **tensor,
                  struct dry_pages_report *report, struct dry_error *err)
{
    struct order order;
    struct dry_pages_info info = DRY_INIT(struct dry_pages_info);
    if (report)
        *report = (struct dry_pages_report){0};
    enum dry_status status = take_options(&order, options, err);
    if (status == DRY_OK)
        status = check_device(&order.options.device, false, err);
    if (status != DRY_OK)
        return status;
    struct dry_tensor *t = make_record(&order);
    if (!t)
        return dryi_fail_memory(err, "a tensor");
    if (t->bytes) {
        status = dry_pages_create(&order.pages, &t->pages, report, err);
        if (status != DRY_OK) {
            free_record(t);
            return status;
        }
        dry_pages_get_info(t->pages, &info);
        t->address = info.address;
    }
    *tensor = t;
    return DRY_OK;
}

static enum dry_status
check_memory(const struct order *order, const struct dry_tensor_memory *memory,
             struct dry_error *err)
{
    if (order->options.pages)
        return dryi_fail(err, DRY_ERR_ARGUMENT, "pages of ours and memory of yours");
    if ((uintptr_t)memory->address % DRYI_TENSOR_ALIGNMENT != 0)
        return dryi_fail(err, DRY_ERR_ARGUMENT,
                         "address %p: a multiple of %d is expected", memory->address,
                         DRYI_TENSOR_ALIGNMENT);
    if (order->size.bytes && (!memory->address || memory->bytes < order->size.bytes))
        return dryi_fail(err, DRY_ERR_ARGUMENT, "%llu bytes of memory: %llu are needed",
                         (unsigned long long)(memory->address ? memory->bytes : 0),
                         (unsigned long long)order->size.bytes);
    return DRY_OK;
}

enum dry_status
dry_tensor_wrap(const struct dry_tensor_options *options,
                const struct dry_tensor_memory *memory, struct dry_tensor **tensor,
                struct dry_error *err)
{
    struct order order;
    enum dry_status status = take_options(&order, options, err);
    if (status == DRY_OK)
        status = check_device(&order.options.device, true, err);
    if (status == DRY_OK)
        status = check_memory(&order, memory, err);
    if (status != DRY_OK)
        return status;
    struct dry_tensor *t = make_record(&order);
    if (!t)
        return dryi_fail_memory(err, "a tensor");
    t->source = *memory;
    t->address = t->bytes ? memory->address : NULL;
    *tensor = t;
    return DRY_OK;
}

/* Drop a reference. acq_rel: the last user sees all accesses by the others before it
   frees the memory. */
void
dryi_tensor_drop(struct dry_tensor *t)
{
    size_t before = atomic_fetch_sub_explicit(&t->users, 1, memory_order_acq_rel);
    DRYI_ASSERT(before > 0);
    if (before != 1)
        return;
    dry_pages_destroy(t->pages);
    if (t->source.release)
        t->source.release(t->source.self);
    free_record(t);
}

void
dry_tensor_destroy(struct dry_tensor *tensor)
{
    if (tensor)
        dryi_tensor_drop(tensor);
}

enum dry_status
dry_tensor_get_info(const struct dry_tensor *tensor, struct dry_tensor_info *info)
{
    const struct dry_tensor_info all = {
        .address = tensor->address,
        .bytes = tensor->bytes,
        .element_count = tensor->element_count,
        .form = tensor->form,
        .device = tensor->device,
        .pages = tensor->pages,
    };
    return dryi_sized_give(info, &all, sizeof all);
}
