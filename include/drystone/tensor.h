/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_TENSOR_H
#define DRY_TENSOR_H

/*
 * Tensors in host memory of chosen pages, handed over by DLPack without a copy.
 *
 *     const int64_t shape[] = {1024, 1024, 1024};
 *     struct dry_pages_options pages;
 *     dry_pages_options_init(&pages);
 *     pages.kind = DRY_PAGES_POOL;
 *     struct dry_tensor_options options;
 *     dry_tensor_options_init(&options);
 *     options.form = (struct dry_tensor_form){.dtype = float32, .ndim = 3, .shape = shape};
 *     options.pages = &pages;
 *     status = dry_tensor_create(&options, &tensor, &report, &err);
 *     status = dry_tensor_export(tensor, NULL, &managed, &err);
 *     dry_tensor_destroy(tensor);           the memory stays for as long as `managed` does
 *     ...                                   managed goes into a capsule "dltensor_versioned"
 *     managed->deleter(managed);            by whoever consumes it, in any thread
 *
 * A tensor is a region of pages and its form. What is exported of it keeps the region: it goes
 * back when the tensor is destroyed and each export deleted, in whatever order. Deleters are
 * plain C: they need no interpreter and no lock, and the shared library stays loaded once it
 * is, so that they are still there when a program closed it.
 *
 * The layouts are those of DLPack 1.x (dlpack.h of github.com/dmlc/dlpack), under names of our
 * own, so that a program may include both and cast pointers. Strides are always there, in
 * elements, row by row (required since 1.2); data is a multiple of 256 and byte_offset 0;
 * without elements data is NULL and there is no region.
 *
 * Ownership  create, wrap / destroy; export / its deleter, once.
 * Threads    Any at any time, except that destroy and deleters end what they are given. The
 *            last of them gives the memory back, so `memory` hooks must bear any thread.
 * Errors     ARGUMENT: a form that cannot be. UNSUPPORTED: DLPack has no word for it, or the
 *            device is not one for this memory. Those of dry_pages_create().
 * Fork       As the pages' options say; by default a child must not touch the memory, and
 *            deleters that run there leave it alone.
 * Streams    PyTorch does not know on which streams such memory is used: a copy that runs on
 *            one must be over before the tensor is let go.
 * Units      Bytes, elements.
 */

#include <stdint.h>

#include <drystone/dtype.h>
#include <drystone/memory.h>
#include <drystone/pages.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* DLDeviceType; the ones for memory of the host. */
enum dry_dlpack_device_type {
    DRY_DLPACK_CPU = 1,
    /* Page-locked for CUDA. PyTorch up to 2.15 refuses it, so only who asks gets it. */
    DRY_DLPACK_CUDA_HOST = 3,
};

/* DLDevice */
struct dry_dlpack_device {
    int32_t type; /* enum dry_dlpack_device_type */
    int32_t id;
};

/* DLTensor */
struct dry_dlpack_tensor {
    void *data;
    struct dry_dlpack_device device;
    int32_t ndim;
    struct dry_dtype dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
};

/* DLManagedTensor, of before DLPack 1.0: capsules named "dltensor". */
struct dry_dlpack_legacy {
    struct dry_dlpack_tensor tensor;
    void *manager_ctx;
    void (*deleter)(struct dry_dlpack_legacy *self);
};

/* Bits of `flags`. */
#define DRY_DLPACK_READ_ONLY UINT64_C(1)
#define DRY_DLPACK_COPIED UINT64_C(2)
#define DRY_DLPACK_PADDED UINT64_C(4) /* elements of less than 8 bits have a byte each */

/* DLManagedTensorVersioned: capsules named "dltensor_versioned". */
struct dry_dlpack_versioned {
    struct {
        uint32_t major, minor; /* 1, 1: nothing of later ones is used */
    } version;
    void *manager_ctx;
    void (*deleter)(struct dry_dlpack_versioned *self);
    uint64_t flags;
    struct dry_dlpack_tensor tensor;
};

#define DRY_TENSOR_NDIM_MAX 64 /* NumPy's */

struct dry_tensor_form {
    struct dry_dtype dtype;
    int32_t ndim;         /* 0: one element */
    const int64_t *shape; /* `ndim` numbers; may be NULL for none */
    /* Of elements of less than 8 bits: each has a byte. Else they lie bit by bit. */
    int is_padded;
};

/*
 * How many bytes it is, without any rounding to pages.
 *
 * Errors     ARGUMENT: negative, too many dimensions, or more than INT64_MAX bytes. So is a
 *            form without elements whose other dimensions alone would be: no stride that is
 *            made of them overflows.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_tensor_measure(
    const struct dry_tensor_form *form, uint64_t *bytes, struct dry_error *err);

struct dry_tensor_options {
    size_t struct_size; /* set by dry_tensor_options_init() */
    const struct dry_memory *memory;
    struct dry_tensor_form form; /* copied */
    struct dry_dlpack_device device;
    /* Where and of which pages; its `bytes` must be 0. NULL: as dry_pages_options_init(). */
    const struct dry_pages_options *pages;
};

struct dry_tensor;

/* CPU 0, pages by default; form is to be set. */
DRY_API void dry_tensor_options_init(struct dry_tensor_options *options);

/*
 * What it takes of its pages and what their pool lacks, without taking any: see
 * dry_pages_read_need(). Without elements nothing is needed, and page_count is 0.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_tensor_read_need(
    const struct dry_tensor_options *options, struct dry_pages_need *need,
    struct dry_error *err);

/*
 * Zeroed memory. `report` (may be NULL) as in dry_pages_create(): with policy PREFER the tensor
 * may be on other pages than asked for, and it says why; err says what the pool lacks and how
 * to get it.
 *
 * Errors     UNSUPPORTED: device CUDA_HOST; these pages are not page-locked (see wrap).
 * Cost       That of dry_pages_create(), and one allocation.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_tensor_create(
    const struct dry_tensor_options *options, struct dry_tensor **tensor,
    struct dry_pages_report *report, struct dry_error *err);

/* Memory of the caller's. */
struct dry_tensor_memory {
    void *address; /* a multiple of 256 */
    uint64_t bytes;
    void (*release)(void *self); /* once, when nobody has it any more; in any thread */
    void *self;
};

/*
 * A tensor in memory that is there already, such as a page-locked block. Device CUDA_HOST is
 * the caller's word that it is. options->pages must be NULL. If this fails the memory stays
 * the caller's and release is not called.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_tensor_wrap(
    const struct dry_tensor_options *options, const struct dry_tensor_memory *memory,
    struct dry_tensor **tensor, struct dry_error *err);

/* NULL: nothing. What was exported stays. */
DRY_API void dry_tensor_destroy(struct dry_tensor *tensor);

struct dry_tensor_info {
    void *address; /* NULL: there are no elements */
    uint64_t bytes, element_count;
    struct dry_tensor_form form; /* shape is the tensor's and lives as long */
    struct dry_dlpack_device device;
    /* For dry_pages_get_info() and dry_pages_prove(); NULL: wrapped, or no elements. */
    const struct dry_pages *pages;
};
DRY_API void dry_tensor_get_info(const struct dry_tensor *tensor,
                                 struct dry_tensor_info *info);

/* What an export shows. Several small tensors can share the pages of a large one. */
struct dry_tensor_view {
    size_t struct_size; /* set by dry_tensor_view_init() */
    int is_read_only; /* a consumer must not write; the pages stay writable for others */
    int is_part;      /* 0: the tensor as it is, and the rest is not read */
    uint64_t offset_bytes; /* a multiple of 256 */
    struct dry_tensor_form form;
};

/* All of it, writable. */
DRY_API void dry_tensor_view_init(struct dry_tensor_view *view);

/*
 * `view` NULL: as dry_tensor_view_init() makes it. The caller, or whom it is given to, must
 * call managed->deleter(managed) once.
 *
 * Errors     ARGUMENT: a part that is not within the tensor. MEMORY.
 * Cost       One allocation.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_tensor_export(
    struct dry_tensor *tensor, const struct dry_tensor_view *view,
    struct dry_dlpack_versioned **managed, struct dry_error *err);
/* UNSUPPORTED too: read-only or padded, of which this form cannot speak. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_tensor_export_legacy(
    struct dry_tensor *tensor, const struct dry_tensor_view *view,
    struct dry_dlpack_legacy **managed, struct dry_error *err);

#ifdef __cplusplus
}
#endif

#endif
