/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_LIBRARY_H
#define STANDIN_LIBRARY_H

/*
 * Code that the libraries above the runtime share: handles, work on their stream, sizes of
 * elements.
 *
 *     handle    from cublasCreate(), cusolverDnCreate() or cusparseCreate(); one struct serves
 *               all, because PyTorch passes cuBLAS's handle to cublasLt
 *     worker    a function whose only effect here is work on its handle's stream
 *
 * A worker only declares its handle. Further arguments are never read; the calling conventions
 * of x86-64 and AArch64 leave them to the caller.
 *
 * Threads   A handle belongs to one thread at a time, as the libraries document.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "standin.h"

struct library_handle {
    void *stream;
    int math_mode;
    int pointer_mode; /* 0: scalars and results are on the host */
    int sm_count;
};

/* cuBLAS has another number for an invalid value than cuSPARSE and cuSOLVER. */
enum library_status { LIBRARY_OK = 0, LIBRARY_INVALID = 3, BLAS_INVALID = 7 };

/* Create an object of `size` zero bytes. Aborts if memory runs out. */
enum library_status library_create(void **object, size_t size);

/* Record work on the handle's stream; returns LIBRARY_OK. */
enum library_status library_work(struct library_handle *handle);

/* Zero a result of `bytes` on the host; one on a device reads as zeros already. */
void library_zero(void *result, size_t bytes);
/* Write a value from the host to `result`, wherever that is. */
void library_put(void *result, const void *value, size_t bytes);
/* Write a size for the functions with 32-bit sizes. */
enum library_status library_put_size(int *to, int64_t size);

/*
 * Return the bytes of an element of a cudaDataType; 4-bit and 6-bit types count as one.
 */
size_t library_element(int type);
bool library_is_complex(int type);

/* Define a worker; and define one function for each of the types S, D, C and Z. */
#define WORKER(name)                                                                     \
    EXPORT enum library_status name(struct library_handle *handle)                       \
    {                                                                                    \
        return library_work(handle);                                                     \
    }
#define FOR_REAL(define, prefix, name) define(prefix##S##name) define(prefix##D##name)
#define FOR_COMPLEX(define, prefix, name) define(prefix##C##name) define(prefix##Z##name)
#define FOR_TYPES(define, prefix, name)                                                  \
    FOR_REAL(define, prefix, name) FOR_COMPLEX(define, prefix, name)

#endif
