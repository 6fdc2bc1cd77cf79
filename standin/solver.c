/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuSOLVER: handles, and the workspace of each operation; nothing is solved.
 *
 * It is a model, not a measurement: NVIDIA documents no formula for the buffer sizes. Each is the
 * workspace that LAPACK documents for the operation of that name, in elements. LAPACK's block is
 * taken as 64 columns. Operations that LAPACK does in place take one such block. The host's
 * workspaces are empty. An `info` is on the device, and reads as zero: success.
 *
 *     geqrf, orgqr, ormqr, getrf, potrf, sytrf    n * 64
 *     gesvd     max(3 * min + max, 5 * min)
 *     gesvdj    as gejsv: max(2 * max + min, 6 * min + 2 * min^2)
 *     gesvda    as gesdd: 4 * min^2 + 7 * min + max
 *     syevd     1 + 6 * n + 2 * n^2; for complex types the parts of heevd in one buffer
 *     syevj     as syev: n * 66
 *     geev      n * 66
 *
 * A batch takes as much for each of its matrices.
 */
#include <stdlib.h>

#include "library.h"

#define BLOCK 64

/* --- handles -------------------------------------------------------------------------------- */

EXPORT enum library_status
cusolverDnCreate(void **handle)
{
    return library_create(handle, sizeof(struct library_handle));
}

EXPORT enum library_status
cusolverDnDestroy(struct library_handle *handle)
{
    free(handle);
    return LIBRARY_OK;
}

EXPORT enum library_status
cusolverDnSetStream(struct library_handle *handle, void *stream)
{
    handle->stream = stream;
    return LIBRARY_OK;
}

EXPORT enum library_status
cusolverGetVersion(int *version)
{
    *version = 12200;
    return LIBRARY_OK;
}

struct parameters {
    double tolerance;
    int sweeps, is_sorted;
};

#define CREATE(name)                                                                     \
    EXPORT enum library_status name(void **parameters)                                   \
    {                                                                                    \
        return library_create(parameters, sizeof(struct parameters));                    \
    }
CREATE(cusolverDnCreateParams)
CREATE(cusolverDnCreateGesvdjInfo)
CREATE(cusolverDnCreateSyevjInfo)

#define DESTROY(name)                                                                    \
    EXPORT enum library_status name(struct parameters *parameters)                       \
    {                                                                                    \
        free(parameters);                                                                \
        return LIBRARY_OK;                                                               \
    }
DESTROY(cusolverDnDestroyParams)
DESTROY(cusolverDnDestroyGesvdjInfo)
DESTROY(cusolverDnDestroySyevjInfo)

EXPORT enum library_status
cusolverDnXgesvdjSetTolerance(struct parameters *parameters, double tolerance)
{
    parameters->tolerance = tolerance;
    return LIBRARY_OK;
}

EXPORT enum library_status
cusolverDnXgesvdjSetMaxSweeps(struct parameters *parameters, int sweeps)
{
    parameters->sweeps = sweeps;
    return LIBRARY_OK;
}

EXPORT enum library_status
cusolverDnXgesvdjSetSortEig(struct parameters *parameters, int is_sorted)
{
    parameters->is_sorted = is_sorted;
    return LIBRARY_OK;
}

/* --- the model, in elements ----------------------------------------------------------------- */

static int64_t
least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t
most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t
block_elements(int64_t n)
{
    return most(1, n * BLOCK);
}

static int64_t
gesvd_elements(int64_t m, int64_t n)
{
    return most(1, most(3 * least(m, n) + most(m, n), 5 * least(m, n)));
}

static int64_t
gesvdj_elements(int64_t m, int64_t n)
{
    int64_t small = least(m, n);
    return most(1, most(2 * most(m, n) + small, 6 * small + 2 * small * small));
}

static int64_t
gesvda_elements(int64_t m, int64_t n)
{
    int64_t small = least(m, n);
    return most(1, 4 * small * small + 7 * small + most(m, n));
}

/* LAPACK's complex workspace has a real part; two real numbers are one complex element. */
static int64_t
syevd_elements(int64_t n, bool is_complex)
{
    int64_t real = 1 + (is_complex ? 5 : 6) * n + 2 * n * n;
    return is_complex ? 2 * n + n * n + (real + 1) / 2 : real;
}

static int64_t
syev_elements(int64_t n)
{
    return most(1, n * (BLOCK + 2));
}

/* Write the sizes for the functions that count in bytes. */
static enum library_status
put_bytes(size_t *device, size_t *host, int64_t elements, int type)
{
    *device = (size_t)elements * library_element(type);
    *host = 0;
    return LIBRARY_OK;
}

/* --- sizes of the typed functions ----------------------------------------------------------- */

#define GEQRF_SIZE(name)                                                                 \
    EXPORT enum library_status name(void *handle, int m, int n, const void *a,           \
                                    int a_step, int *size)                               \
    {                                                                                    \
        (void)handle, (void)m, (void)a, (void)a_step;                                    \
        return library_put_size(size, block_elements(n));                                \
    }
FOR_TYPES(GEQRF_SIZE, cusolverDn, geqrf_bufferSize)
FOR_TYPES(GEQRF_SIZE, cusolverDn, getrf_bufferSize)

#define ORGQR_SIZE(name)                                                                 \
    EXPORT enum library_status name(void *handle, int m, int n, int k, const void *a,    \
                                    int a_step, const void *tau, int *size)              \
    {                                                                                    \
        (void)handle, (void)m, (void)k, (void)a, (void)a_step, (void)tau;                \
        return library_put_size(size, block_elements(n));                                \
    }
FOR_REAL(ORGQR_SIZE, cusolverDn, orgqr_bufferSize)
FOR_COMPLEX(ORGQR_SIZE, cusolverDn, ungqr_bufferSize)

/*
 * Blocks are cut from the columns of C on the left side (0), from its rows on the right.
 */
#define ORMQR_SIZE(name)                                                                 \
    EXPORT enum library_status name(void *handle, int side, int transpose, int m, int n, \
                                    int k, const void *a, int a_step, const void *tau,   \
                                    const void *c, int c_step, int *size)                \
    {                                                                                    \
        (void)handle, (void)transpose, (void)k, (void)a, (void)a_step, (void)tau;        \
        (void)c, (void)c_step;                                                           \
        return library_put_size(size, block_elements(side == 0 ? n : m));                \
    }
FOR_REAL(ORMQR_SIZE, cusolverDn, ormqr_bufferSize)
FOR_COMPLEX(ORMQR_SIZE, cusolverDn, unmqr_bufferSize)

#define POTRF_SIZE(name)                                                                 \
    EXPORT enum library_status name(void *handle, int triangle, int n, const void *a,    \
                                    int a_step, int *size)                               \
    {                                                                                    \
        (void)handle, (void)triangle, (void)a, (void)a_step;                             \
        return library_put_size(size, block_elements(n));                                \
    }
FOR_TYPES(POTRF_SIZE, cusolverDn, potrf_bufferSize)

#define SYTRF_SIZE(name)                                                                 \
    EXPORT enum library_status name(void *handle, int n, const void *a, int a_step,      \
                                    int *size)                                           \
    {                                                                                    \
        (void)handle, (void)a, (void)a_step;                                             \
        return library_put_size(size, block_elements(n));                                \
    }
FOR_TYPES(SYTRF_SIZE, cusolverDn, sytrf_bufferSize)

#define GESVD_SIZE(name)                                                                 \
    EXPORT enum library_status name(void *handle, int m, int n, int *size)               \
    {                                                                                    \
        (void)handle;                                                                    \
        return library_put_size(size, gesvd_elements(m, n));                             \
    }
FOR_TYPES(GESVD_SIZE, cusolverDn, gesvd_bufferSize)

#define GESVDJ_SIZE(name)                                                                \
    EXPORT enum library_status name(void *handle, int job, int economy, int m, int n,    \
                                    const void *a, int a_step, const void *s,            \
                                    const void *u, int u_step, const void *v,            \
                                    int v_step, int *size, void *parameters)             \
    {                                                                                    \
        (void)handle, (void)job, (void)economy, (void)a, (void)a_step, (void)s;          \
        (void)u, (void)u_step, (void)v, (void)v_step, (void)parameters;                  \
        return library_put_size(size, gesvdj_elements(m, n));                            \
    }
FOR_TYPES(GESVDJ_SIZE, cusolverDn, gesvdj_bufferSize)

#define GESVDJ_BATCH_SIZE(name)                                                          \
    EXPORT enum library_status name(void *handle, int job, int m, int n, const void *a,  \
                                    int a_step, const void *s, const void *u,            \
                                    int u_step, const void *v, int v_step, int *size,    \
                                    void *parameters, int batch)                         \
    {                                                                                    \
        (void)handle, (void)job, (void)a, (void)a_step, (void)s, (void)u;                \
        (void)u_step, (void)v, (void)v_step, (void)parameters;                           \
        return library_put_size(size, gesvdj_elements(m, n) * batch);                    \
    }
FOR_TYPES(GESVDJ_BATCH_SIZE, cusolverDn, gesvdjBatched_bufferSize)

#define GESVDA_SIZE(name)                                                                \
    EXPORT enum library_status name(                                                     \
        void *handle, int job, int rank, int m, int n, const void *a, int a_step,        \
        long long a_stride, const void *s, long long s_stride, const void *u,            \
        int u_step, long long u_stride, const void *v, int v_step, long long v_stride,   \
        int *size, int batch)                                                            \
    {                                                                                    \
        (void)handle, (void)job, (void)rank, (void)a, (void)a_step, (void)a_stride;      \
        (void)s, (void)s_stride, (void)u, (void)u_step, (void)u_stride, (void)v;         \
        (void)v_step, (void)v_stride;                                                    \
        return library_put_size(size, gesvda_elements(m, n) * batch);                    \
    }
FOR_TYPES(GESVDA_SIZE, cusolverDn, gesvdaStridedBatched_bufferSize)

#define SYEVD_SIZE(name, is_complex)                                                     \
    EXPORT enum library_status name(void *handle, int job, int triangle, int n,          \
                                    const void *a, int a_step, const void *w, int *size) \
    {                                                                                    \
        (void)handle, (void)job, (void)triangle, (void)a, (void)a_step, (void)w;         \
        return library_put_size(size, syevd_elements(n, is_complex));                    \
    }
SYEVD_SIZE(cusolverDnSsyevd_bufferSize, false)
SYEVD_SIZE(cusolverDnDsyevd_bufferSize, false)
SYEVD_SIZE(cusolverDnCheevd_bufferSize, true)
SYEVD_SIZE(cusolverDnZheevd_bufferSize, true)

#define SYEVJ_BATCH_SIZE(name)                                                           \
    EXPORT enum library_status name(void *handle, int job, int triangle, int n,          \
                                    const void *a, int a_step, const void *w, int *size, \
                                    void *parameters, int batch)                         \
    {                                                                                    \
        (void)handle, (void)job, (void)triangle, (void)a, (void)a_step, (void)w;         \
        (void)parameters;                                                                \
        return library_put_size(size, syev_elements(n) * batch);                         \
    }
FOR_REAL(SYEVJ_BATCH_SIZE, cusolverDn, syevjBatched_bufferSize)
FOR_COMPLEX(SYEVJ_BATCH_SIZE, cusolverDn, heevjBatched_bufferSize)

/* --- sizes of the functions that take a type ------------------------------------------------ */

EXPORT enum library_status
cusolverDnXgeqrf_bufferSize(void *handle, void *parameters, int64_t m, int64_t n,
                            int a_type, const void *a, int64_t a_step, int tau_type,
                            const void *tau, int compute_type, size_t *device,
                            size_t *host)
{
    (void)handle, (void)parameters, (void)m, (void)a_type, (void)a, (void)a_step;
    (void)tau_type, (void)tau;
    return put_bytes(device, host, block_elements(n), compute_type);
}

EXPORT enum library_status
cusolverDnXpotrf_bufferSize(void *handle, void *parameters, int triangle, int64_t n,
                            int a_type, const void *a, int64_t a_step, int compute_type,
                            size_t *device, size_t *host)
{
    (void)handle, (void)parameters, (void)triangle, (void)a_type, (void)a, (void)a_step;
    return put_bytes(device, host, block_elements(n), compute_type);
}

EXPORT enum library_status
cusolverDnXsyevd_bufferSize(void *handle, void *parameters, int job, int triangle,
                            int64_t n, int a_type, const void *a, int64_t a_step,
                            int w_type, const void *w, int compute_type, size_t *device,
                            size_t *host)
{
    (void)handle, (void)parameters, (void)job, (void)triangle, (void)a_type, (void)a;
    (void)a_step, (void)w_type, (void)w;
    int64_t elements = syevd_elements(n, library_is_complex(compute_type));
    return put_bytes(device, host, elements, compute_type);
}

EXPORT enum library_status
cusolverDnXsyevBatched_bufferSize(void *handle, void *parameters, int job, int triangle,
                                  int64_t n, int a_type, const void *a, int64_t a_step,
                                  int w_type, const void *w, int compute_type,
                                  size_t *device, size_t *host, int64_t batch)
{
    (void)handle, (void)parameters, (void)job, (void)triangle, (void)a_type, (void)a;
    (void)a_step, (void)w_type, (void)w;
    return put_bytes(device, host, syev_elements(n) * batch, compute_type);
}

EXPORT enum library_status
cusolverDnXgeev_bufferSize(void *handle, void *parameters, int left, int right, int64_t n,
                           int a_type, const void *a, int64_t a_step, int w_type,
                           const void *w, int left_type, const void *left_vectors,
                           int64_t left_step, int right_type, const void *right_vectors,
                           int64_t right_step, int compute_type, size_t *device,
                           size_t *host)
{
    (void)handle, (void)parameters, (void)left, (void)right, (void)a_type, (void)a;
    (void)a_step, (void)w_type, (void)w, (void)left_type, (void)left_vectors;
    (void)left_step, (void)right_type, (void)right_vectors, (void)right_step;
    return put_bytes(device, host, syev_elements(n), compute_type);
}

EXPORT enum library_status
cusolverDnXsytrs_bufferSize(void *handle, int triangle, int64_t n, int64_t right_sides,
                            int a_type, const void *a, int64_t a_step,
                            const int64_t *pivots, int b_type, void *b, int64_t b_step,
                            size_t *device, size_t *host)
{
    (void)handle, (void)triangle, (void)right_sides, (void)a, (void)a_step;
    (void)pivots, (void)b_type, (void)b, (void)b_step;
    return put_bytes(device, host, most(1, n), a_type); /* the same size as sytrs2 */
}

/* --- workers -------------------------------------------------------------------------------- */

/* The host's residuals, one for each matrix, are zero. */
#define GESVDA(name)                                                                     \
    EXPORT enum library_status name(                                                     \
        struct library_handle *handle, int job, int rank, int m, int n, const void *a,   \
        int a_step, long long a_stride, void *s, long long s_stride, void *u,            \
        int u_step, long long u_stride, void *v, int v_step, long long v_stride,         \
        void *work, int size, int *info, double *residuals, int batch)                   \
    {                                                                                    \
        (void)job, (void)rank, (void)m, (void)n, (void)a, (void)a_step, (void)a_stride;  \
        (void)s, (void)s_stride, (void)u, (void)u_step, (void)u_stride, (void)v;         \
        (void)v_step, (void)v_stride, (void)work, (void)size, (void)info;                \
        library_zero(residuals, batch > 0 ? (size_t)batch * sizeof *residuals : 0);      \
        return library_work(handle);                                                     \
    }
FOR_TYPES(GESVDA, cusolverDn, gesvdaStridedBatched)

FOR_TYPES(WORKER, cusolverDn, geqrf)
FOR_TYPES(WORKER, cusolverDn, getrf)
FOR_TYPES(WORKER, cusolverDn, getrs)
FOR_TYPES(WORKER, cusolverDn, potrf)
FOR_TYPES(WORKER, cusolverDn, potrfBatched)
FOR_TYPES(WORKER, cusolverDn, potrs)
FOR_TYPES(WORKER, cusolverDn, potrsBatched)
FOR_TYPES(WORKER, cusolverDn, sytrf)
FOR_TYPES(WORKER, cusolverDn, gesvd)
FOR_TYPES(WORKER, cusolverDn, gesvdj)
FOR_TYPES(WORKER, cusolverDn, gesvdjBatched)
FOR_REAL(WORKER, cusolverDn, orgqr)
FOR_REAL(WORKER, cusolverDn, ormqr)
FOR_REAL(WORKER, cusolverDn, syevd)
FOR_REAL(WORKER, cusolverDn, syevjBatched)
FOR_COMPLEX(WORKER, cusolverDn, ungqr)
FOR_COMPLEX(WORKER, cusolverDn, unmqr)
FOR_COMPLEX(WORKER, cusolverDn, heevd)
FOR_COMPLEX(WORKER, cusolverDn, heevjBatched)
WORKER(cusolverDnXgeqrf)
WORKER(cusolverDnXpotrf)
WORKER(cusolverDnXpotrs)
WORKER(cusolverDnXsyevd)
WORKER(cusolverDnXsyevBatched)
WORKER(cusolverDnXgeev)
WORKER(cusolverDnXsytrs)
