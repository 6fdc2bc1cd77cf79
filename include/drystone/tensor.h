/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRY_TENSOR_H
#define DRY_TENSOR_H

/*
 * Tensors in host memory with a chosen page size, exported by DLPack without a copy.
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
 *     managed->deleter(managed);            called by the consumer, in any thread
 *
 * A tensor is a region of pages and its form. An export holds a reference to the region,
 * which is freed when the tensor and all exports have ended, in any order. Deleters are
 * plain C: they need no interpreter and no lock. The shared library is never unloaded, so
 * that deleters remain callable after a program has closed it.
 *
 * The layouts are those of DLPack 1.x (dlpack.h of github.com/dmlc/dlpack), under names
 * of this library, so that a program may include both and cast pointers. Strides are
 * always set, in elements, in row-major order (required since 1.2). `data` is a multiple
 * of 256, and byte_offset is 0. If there are no elements, `data` is NULL and there is no
 * region.
 *
 * Ownership  dry_tensor_create() or dry_tensor_wrap(), and dry_tensor_destroy(). Each
 *            export's deleter is called once.
 * Errors     In addition to those of dry_pages_create():
 *     ARGUMENT     The form is invalid.
 *     UNSUPPORTED  DLPack cannot express the form, or the device does not match the
 *                  memory.
 * Threads    Any thread may call any function at any time, except that destroy and
 *            deleters end their argument. The last of these calls frees the memory, so
 *            `memory` must be usable from any thread.
 * Fork       The pages' options decide. By default a child must not access the memory,
 *            and deleters in the child do not touch it.
 * Streams    PyTorch does not know on which streams such memory is used. A copy on a
 *            stream must be done before the tensor is released.
 * Units      Bytes, elements.
 */

#include <stdbool.h>
#include <stdint.h>

#include <drystone/dtype.h>
#include <drystone/memory.h>
#include <drystone/pages.h>
#include <drystone/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* DLDeviceType: the device types of host memory. */
enum dry_dlpack_device_type {
    DRY_DLPACK_CPU = 1,
    /* Page-locked for CUDA. PyTorch up to 2.15 rejects this type, so it is used only on
       request. */
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

/* DLManagedTensor, the layout before DLPack 1.0: capsules named "dltensor". */
struct dry_dlpack_legacy {
    struct dry_dlpack_tensor tensor;
    void *manager_ctx;
    void (*deleter)(struct dry_dlpack_legacy *self);
};

/* Bits of `flags`. */
#define DRY_DLPACK_READ_ONLY UINT64_C(1)
#define DRY_DLPACK_COPIED UINT64_C(2)
/* Each element of less than 8 bits has a byte of its own. */
#define DRY_DLPACK_PADDED UINT64_C(4)

/* DLManagedTensorVersioned: capsules named "dltensor_versioned". */
struct dry_dlpack_versioned {
    struct {
        uint32_t major, minor; /* 1, 1: no later feature is used */
    } version;
    void *manager_ctx;
    void (*deleter)(struct dry_dlpack_versioned *self);
    uint64_t flags;
    struct dry_dlpack_tensor tensor;
};

#define DRY_TENSOR_NDIM_MAX 64 /* NumPy's limit */

struct dry_tensor_form {
    struct dry_dtype dtype;
    int32_t ndim;         /* 0: one element */
    const int64_t *shape; /* `ndim` lengths; may be NULL if ndim is 0 */
    /* Each element of less than 8 bits has a byte of its own. Otherwise elements are
       packed bit by bit. */
    bool is_padded;
};

/*
 * Compute the bytes of a form, without rounding to pages. ARGUMENT: a length is negative,
 * there are too many dimensions, or more than INT64_MAX bytes. A form without elements is
 * also rejected if its other dimensions alone exceed that, so that no stride overflows.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_tensor_measure(
    const struct dry_tensor_form *form, uint64_t *bytes, struct dry_error *err);

struct dry_tensor_options {
    size_t struct_size; /* set by dry_tensor_options_init() */
    const struct dry_memory *memory;
    struct dry_tensor_form form; /* copied */
    struct dry_dlpack_device device;
    /* Kind and node of the pages; `bytes` must be 0. NULL: as dry_pages_options_init()
       sets them. */
    const struct dry_pages_options *pages;
};

struct dry_tensor;

/* Set the defaults: CPU 0, default pages. The caller must set `form`. */
DRY_API void dry_tensor_options_init_sized(struct dry_tensor_options *options,
                                           size_t struct_size);
#define dry_tensor_options_init(options)                                                 \
    dry_tensor_options_init_sized(options, sizeof *(options))

/*
 * Compute the pages that a tensor would need, and those that their pool lacks, without
 * allocating any; see dry_pages_read_need(). A form without elements needs none:
 * page_count is 0.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_tensor_read_need(
    const struct dry_tensor_options *options, struct dry_pages_need *need,
    struct dry_error *err);

/*
 * Make a tensor in zeroed memory of its own. The report (or NULL) is as in
 * dry_pages_create(). With policy PREFER the tensor may be on other pages than requested;
 * the report says why. On failure err says what the pool lacks and how to get it.
 * UNSUPPORTED: the device is CUDA_HOST, but these pages are not page-locked, see
 * dry_tensor_wrap(). Cost: that of dry_pages_create(), and one allocation.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_tensor_create(
    const struct dry_tensor_options *options, struct dry_tensor **tensor,
    struct dry_pages_report *report, struct dry_error *err);

/* Memory that the caller provides. */
struct dry_tensor_memory {
    void *address; /* a multiple of 256 */
    uint64_t bytes;
    /* Called once, in any thread, when the tensor and all exports have ended. */
    void (*release)(void *self);
    void *self;
};

/*
 * Make a tensor in existing memory, such as a page-locked block. With device CUDA_HOST
 * the caller asserts that the memory is page-locked. options->pages must be NULL. If this
 * fails, the memory stays the caller's and `release` is not called.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_tensor_wrap(
    const struct dry_tensor_options *options, const struct dry_tensor_memory *memory,
    struct dry_tensor **tensor, struct dry_error *err);

/* End a tensor; NULL is fine. Its exports stay valid. */
DRY_API void dry_tensor_destroy(struct dry_tensor *tensor);

struct dry_tensor_info {
    size_t struct_size; /* DRY_INIT sets it */
    void *address;      /* NULL: the tensor has no elements */
    uint64_t bytes, element_count;
    struct dry_tensor_form form; /* `shape` belongs to the tensor and lives as long */
    struct dry_dlpack_device device;
    /* For dry_pages_get_info() and dry_pages_prove(); NULL: the tensor is wrapped or has
       no elements. */
    const struct dry_pages *pages;
};
DRY_API enum dry_status dry_tensor_get_info(const struct dry_tensor *tensor,
                                            struct dry_tensor_info *info);

/* The part of a tensor to export. Several small tensors can share the pages of a large
   one. */
struct dry_tensor_view {
    size_t struct_size;    /* set by dry_tensor_view_init() */
    bool is_read_only;     /* the consumer must not write; the pages stay writable for
                          others */
    bool is_part;          /* false: the whole tensor; the members below are ignored */
    uint64_t offset_bytes; /* a multiple of 256 */
    struct dry_tensor_form form;
};

/* Set the defaults: all of the tensor, writable. */
DRY_API void dry_tensor_view_init_sized(struct dry_tensor_view *view, size_t struct_size);
#define dry_tensor_view_init(view) dry_tensor_view_init_sized(view, sizeof *(view))

/*
 * Export the part of a tensor that `view` selects; NULL: all of it, writable. The caller,
 * or the consumer that it passes the export to, must call managed->deleter(managed) once.
 * Errors: MEMORY; ARGUMENT if the part is not within the tensor. Cost: one allocation.
 */
DRY_API DRY_CHECK_RESULT enum dry_status dry_tensor_export(
    struct dry_tensor *tensor, const struct dry_tensor_view *view,
    struct dry_dlpack_versioned **managed, struct dry_error *err);

/* Export in the layout before DLPack 1.0. UNSUPPORTED: the part is read-only or padded,
   which this layout cannot express. */
DRY_API DRY_CHECK_RESULT enum dry_status dry_tensor_export_legacy(
    struct dry_tensor *tensor, const struct dry_tensor_view *view,
    struct dry_dlpack_legacy **managed, struct dry_error *err);

/*
 * Delete the export in a Python capsule that no consumer took. This is the destructor for
 * PyCapsule_New(managed, "dltensor_versioned" or "dltensor", dry_tensor_drop_capsule). A
 * consumer renames the capsule; this call then does nothing. It runs no Python code, so a
 * pending exception is kept. It also does nothing in a program that does not export
 * Python's C functions. Threads: the caller holds Python's lock, as in every destructor.
 * Cost: two symbols are looked up.
 */
DRY_API void dry_tensor_drop_capsule(void *capsule);

#ifdef __cplusplus
}
#endif

#endif
