/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuBLAS: handles and their modes, results on the host, copies; no arithmetic is done.
 *
 * Its memory is the workspace that PyTorch allocates and passes in, so no size is
 * modelled. A result goes to the host or to the device, depending on the pointer mode. A
 * host result is written as if all operands were zero; a device result already reads as
 * zero. Statuses and the order of arguments are those that NVIDIA documents.
 */
#include <stdlib.h>

#include "library.h"
#include "memory.h"
#include "stream.h"

/* --- handles -------------------------------------------------------------------------------- */

EXPORT enum library_status
cublasCreate_v2(void **handle)
{
    return library_create(handle, sizeof(struct library_handle));
}

EXPORT enum library_status
cublasDestroy_v2(struct library_handle *handle)
{
    free(handle);
    return LIBRARY_OK;
}

EXPORT enum library_status
cublasSetStream_v2(struct library_handle *handle, void *stream)
{
    handle->stream = stream;
    return LIBRARY_OK;
}

EXPORT enum library_status
cublasGetStream_v2(const struct library_handle *handle, void **stream)
{
    *stream = handle->stream;
    return LIBRARY_OK;
}

/* The caller owns the workspace; nothing here writes to it. */
EXPORT enum library_status
cublasSetWorkspace_v2(struct library_handle *handle, void *workspace, size_t bytes)
{
    (void)handle, (void)workspace, (void)bytes;
    return LIBRARY_OK;
}

EXPORT enum library_status
cublasSetMathMode(struct library_handle *handle, int mode)
{
    handle->math_mode = mode;
    return LIBRARY_OK;
}

EXPORT enum library_status
cublasGetMathMode(const struct library_handle *handle, int *mode)
{
    *mode = handle->math_mode;
    return LIBRARY_OK;
}

EXPORT enum library_status
cublasSetPointerMode_v2(struct library_handle *handle, int mode)
{
    handle->pointer_mode = mode;
    return LIBRARY_OK;
}

EXPORT enum library_status
cublasGetPointerMode_v2(const struct library_handle *handle, int *mode)
{
    *mode = handle->pointer_mode;
    return LIBRARY_OK;
}

EXPORT enum library_status
cublasSetSmCountTarget(struct library_handle *handle, int count)
{
    handle->sm_count = count;
    return LIBRARY_OK;
}

EXPORT const char *
cublasGetStatusString(int status)
{
    return status == LIBRARY_OK ? "success" : "the requested operation failed";
}

/* --- results on the host -------------------------------------------------------------------- */

/* A dot product is zero, and so are sums and norms. */
#define DOT(name, bytes)                                                                 \
    EXPORT enum library_status name(struct library_handle *handle, int n, const void *x, \
                                    int x_step, const void *y, int y_step, void *result) \
    {                                                                                    \
        (void)n, (void)x, (void)x_step, (void)y, (void)y_step;                           \
        library_zero(result, bytes);                                                     \
        return library_work(handle);                                                     \
    }
DOT(cublasSdot_v2, 4)
DOT(cublasDdot_v2, 8)
DOT(cublasCdotc_v2, 8)
DOT(cublasCdotu_v2, 8)
DOT(cublasZdotc_v2, 16)
DOT(cublasZdotu_v2, 16)

EXPORT enum library_status
cublasDotEx(struct library_handle *handle, int n, const void *x, int x_type, int x_step,
            const void *y, int y_type, int y_step, void *result, int result_type,
            int compute_type)
{
    (void)n, (void)x, (void)x_type, (void)x_step, (void)y, (void)y_type, (void)y_step;
    (void)compute_type;
    library_zero(result, library_element(result_type));
    return library_work(handle);
}

#define SUM(name, bytes)                                                                 \
    EXPORT enum library_status name(struct library_handle *handle, int n, const void *x, \
                                    int step, void *result)                              \
    {                                                                                    \
        (void)n, (void)x, (void)step;                                                    \
        library_zero(result, bytes);                                                     \
        return library_work(handle);                                                     \
    }
SUM(cublasSasum_v2, 4)
SUM(cublasDasum_v2, 8)
SUM(cublasScasum_v2, 4)
SUM(cublasDzasum_v2, 8)
SUM(cublasSnrm2_v2, 4)
SUM(cublasDnrm2_v2, 8)
SUM(cublasScnrm2_v2, 4)
SUM(cublasDznrm2_v2, 8)

/* Return element 1, the first of equals; elements count from 1. */
#define EXTREME(name)                                                                    \
    EXPORT enum library_status name(struct library_handle *handle, int n, const void *x, \
                                    int step, int *result)                               \
    {                                                                                    \
        int first = n > 0 && step > 0;                                                   \
        (void)x;                                                                         \
        library_put(result, &first, sizeof first);                                       \
        return library_work(handle);                                                     \
    }
EXTREME(cublasIsamax_v2)
EXTREME(cublasIdamax_v2)
EXTREME(cublasIcamax_v2)
EXTREME(cublasIzamax_v2)
EXTREME(cublasIsamin_v2)
EXTREME(cublasIdamin_v2)
EXTREME(cublasIcamin_v2)
EXTREME(cublasIzamin_v2)

/* --- copies --------------------------------------------------------------------------------- */

/* Copy `count` runs of `bytes` each, whose starts are `step` bytes apart. */
static enum library_status
copy_pieces(const char *from, size_t from_step, char *to, size_t to_step, size_t count,
            size_t bytes, void *stream)
{
    standin_work(stream);
    if (standin_stream(stream)->capture)
        return LIBRARY_OK;
    if (from_step == bytes && to_step == bytes) {
        standin_copy((uintptr_t)to, (uintptr_t)from, count * bytes);
        return LIBRARY_OK;
    }
    for (size_t i = 0; i < count; i++)
        standin_copy((uintptr_t)(to + i * to_step), (uintptr_t)(from + i * from_step),
                     bytes);
    return LIBRARY_OK;
}

static enum library_status
copy_vector(int n, int element, const void *from, int from_step, void *to, int to_step,
            void *stream)
{
    if (n < 0 || element <= 0 || from_step <= 0 || to_step <= 0)
        return BLAS_INVALID;
    size_t bytes = (size_t)element;
    return copy_pieces(from, (size_t)from_step * bytes, to, (size_t)to_step * bytes,
                       (size_t)n, bytes, stream);
}

static enum library_status
copy_matrix(int rows, int columns, int element, const void *from, int from_step, void *to,
            int to_step, void *stream)
{
    if (rows < 0 || columns < 0 || element <= 0 || from_step <= 0 || to_step <= 0)
        return BLAS_INVALID;
    size_t bytes = (size_t)element;
    return copy_pieces(from, (size_t)from_step * bytes, to, (size_t)to_step * bytes,
                       (size_t)columns, (size_t)rows * bytes, stream);
}

EXPORT enum library_status
cublasSetVectorAsync(int n, int element, const void *from, int from_step, void *to,
                     int to_step, void *stream)
{
    return copy_vector(n, element, from, from_step, to, to_step, stream);
}

EXPORT enum library_status
cublasGetVectorAsync(int n, int element, const void *from, int from_step, void *to,
                     int to_step, void *stream)
{
    return copy_vector(n, element, from, from_step, to, to_step, stream);
}

EXPORT enum library_status
cublasSetMatrixAsync(int rows, int columns, int element, const void *from, int from_step,
                     void *to, int to_step, void *stream)
{
    return copy_matrix(rows, columns, element, from, from_step, to, to_step, stream);
}

EXPORT enum library_status
cublasGetMatrixAsync(int rows, int columns, int element, const void *from, int from_step,
                     void *to, int to_step, void *stream)
{
    return copy_matrix(rows, columns, element, from, from_step, to, to_step, stream);
}

/* --- factorizations of batches: `info` is on the host, and 0 for valid arguments ------------- */

#define GEQRF(name)                                                                      \
    EXPORT enum library_status name(struct library_handle *handle, int m, int n,         \
                                    void *a, int a_step, void *tau, int *info,           \
                                    int batch)                                           \
    {                                                                                    \
        (void)m, (void)n, (void)a, (void)a_step, (void)tau, (void)batch;                 \
        library_zero(info, sizeof *info);                                                \
        return library_work(handle);                                                     \
    }
FOR_TYPES(GEQRF, cublas, geqrfBatched)

#define GETRS(name)                                                                      \
    EXPORT enum library_status name(struct library_handle *handle, int transpose, int n, \
                                    int right_sides, const void *a, int a_step,          \
                                    const int *pivots, void *b, int b_step, int *info,   \
                                    int batch)                                           \
    {                                                                                    \
        (void)transpose, (void)n, (void)right_sides, (void)a, (void)a_step;              \
        (void)pivots, (void)b, (void)b_step, (void)batch;                                \
        library_zero(info, sizeof *info);                                                \
        return library_work(handle);                                                     \
    }
FOR_TYPES(GETRS, cublas, getrsBatched)

#define GELS(name)                                                                       \
    EXPORT enum library_status name(struct library_handle *handle, int transpose, int m, \
                                    int n, int right_sides, void *a, int a_step,         \
                                    void *c, int c_step, int *info, int *device_info,    \
                                    int batch)                                           \
    {                                                                                    \
        (void)transpose, (void)m, (void)n, (void)right_sides, (void)a, (void)a_step;     \
        (void)c, (void)c_step, (void)device_info, (void)batch;                           \
        library_zero(info, sizeof *info);                                                \
        return library_work(handle);                                                     \
    }
FOR_TYPES(GELS, cublas, gelsBatched)

/* --- workers -------------------------------------------------------------------------------- */

WORKER(cublasGemmEx)
WORKER(cublasSgemmEx)
WORKER(cublasGemmStridedBatchedEx)
FOR_TYPES(WORKER, cublas, gemm_v2)
FOR_TYPES(WORKER, cublas, gemmBatched)
FOR_TYPES(WORKER, cublas, gemmStridedBatched)
FOR_TYPES(WORKER, cublas, gemv_v2)
FOR_TYPES(WORKER, cublas, trsm_v2)
FOR_TYPES(WORKER, cublas, trsmBatched)
FOR_TYPES(WORKER, cublas, trsv_v2)
FOR_TYPES(WORKER, cublas, trmm_v2)
FOR_TYPES(WORKER, cublas, trmv_v2)
FOR_TYPES(WORKER, cublas, getrfBatched)
FOR_TYPES(WORKER, cublas, symm_v2)
FOR_TYPES(WORKER, cublas, symv_v2)
FOR_TYPES(WORKER, cublas, syr_v2)
FOR_TYPES(WORKER, cublas, syr2_v2)
FOR_TYPES(WORKER, cublas, syrk_v2)
FOR_TYPES(WORKER, cublas, syr2k_v2)
FOR_TYPES(WORKER, cublas, axpy_v2)
FOR_TYPES(WORKER, cublas, copy_v2)
FOR_TYPES(WORKER, cublas, scal_v2)
FOR_TYPES(WORKER, cublas, swap_v2)
FOR_TYPES(WORKER, cublas, rot_v2)
FOR_REAL(WORKER, cublas, rotm_v2)
FOR_REAL(WORKER, cublas, ger_v2)
FOR_COMPLEX(WORKER, cublas, gerc_v2)
FOR_COMPLEX(WORKER, cublas, geru_v2)
FOR_COMPLEX(WORKER, cublas, hemm_v2)
FOR_COMPLEX(WORKER, cublas, hemv_v2)
FOR_COMPLEX(WORKER, cublas, her_v2)
FOR_COMPLEX(WORKER, cublas, her2_v2)
FOR_COMPLEX(WORKER, cublas, herk_v2)
FOR_COMPLEX(WORKER, cublas, her2k_v2)
WORKER(cublasCsrot_v2)
WORKER(cublasZdrot_v2)
WORKER(cublasCsscal_v2)
WORKER(cublasZdscal_v2)
