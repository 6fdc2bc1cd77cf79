/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_HOST_TENSOR_INSIDE_H
#define DRYI_HOST_TENSOR_INSIDE_H

/* A tensor counts the references to its memory: its owner's, and one per export. The last
   reference frees it. All other fields are constant, so no lock is needed. */

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <drystone/tensor.h>

#define DRYI_TENSOR_ALIGNMENT 256 /* alignment of `data` that DLPack requires */

struct dry_tensor {
    struct dry_memory memory;
    atomic_size_t users;
    struct dry_pages *pages;         /* NULL: wrapped, or no elements */
    struct dry_tensor_memory source; /* the caller's memory, if wrapped */
    void *address;
    uint64_t bytes, element_count;
    struct dry_tensor_form form;
    struct dry_dlpack_device device;
    int64_t shape[];
};

struct dryi_tensor_size {
    uint64_t element_count, bytes;
};
DRY_CHECK_RESULT enum dry_status dryi_tensor_measure(const struct dry_tensor_form *form,
                                                     struct dryi_tensor_size *size,
                                                     struct dry_error *err);
/* Compute the strides of a form that was measured without error. */
void dryi_tensor_strides(const struct dry_tensor_form *form, int64_t *strides);

void dryi_tensor_drop(struct dry_tensor *tensor);

#endif
