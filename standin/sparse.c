/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuSPARSE: handles, descriptors that know their sizes, buffers; nothing is multiplied.
 *
 * It is a model, not a measurement: NVIDIA documents no formula for the buffers. The number of
 * elements of a sparse result depends on data that does not exist here. In bytes:
 *
 *     SpMV, SpMM, SDDMM    4 a row of the sparse matrix
 *     SpSV, bsrsv2         4 a row and 4 an element
 *     SpSM, bsrsm2         as SpSV, and a copy of the right sides
 *     SpGEMM               4 an element of A; then 4 and a value for each product
 *     coosort, csrsort     16 an element: keys and places, twice
 *     csrgeam2             4 a row
 *
 * SpGEMM's number of products assumes that B's elements are evenly spread over its rows: nnz(A) *
 * nnz(B) / rows(B). The result has as many elements, at most rows times columns. A sum has those
 * of both.
 */
#include <stdlib.h>

#include "library.h"

struct matrix {
    int64_t rows, columns, elements;
    int type;
    int batch;
};

/* --- handles -------------------------------------------------------------------------------- */

EXPORT enum library_status
cusparseCreate(void **handle)
{
    return library_create(handle, sizeof(struct library_handle));
}

EXPORT enum library_status
cusparseDestroy(struct library_handle *handle)
{
    free(handle);
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseSetStream(struct library_handle *handle, void *stream)
{
    handle->stream = stream;
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseSetPointerMode(struct library_handle *handle, int mode)
{
    handle->pointer_mode = mode;
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseGetVersion(const void *handle, int *version)
{
    (void)handle;
    *version = 12710;
    return LIBRARY_OK;
}

EXPORT const char *
cusparseGetErrorName(int status)
{
    return status == LIBRARY_OK ? "CUSPARSE_STATUS_SUCCESS" : "CUSPARSE_STATUS_UNKNOWN";
}

EXPORT const char *
cusparseGetErrorString(int status)
{
    return status == LIBRARY_OK ? "success" : "the requested operation failed";
}

/* --- descriptors ---------------------------------------------------------------------------- */

static enum library_status
create_matrix(void **made, const struct matrix *matrix)
{
    library_create(made, sizeof *matrix);
    *(struct matrix *)*made = *matrix;
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseCreateCoo(void **matrix, int64_t rows, int64_t columns, int64_t elements,
                  void *row_indices, void *column_indices, void *values, int index_type,
                  int base, int type)
{
    (void)row_indices, (void)column_indices, (void)values, (void)index_type, (void)base;
    return create_matrix(matrix, &(struct matrix){rows, columns, elements, type, 1});
}

EXPORT enum library_status
cusparseCreateCsr(void **matrix, int64_t rows, int64_t columns, int64_t elements,
                  void *row_offsets, void *column_indices, void *values, int offset_type,
                  int index_type, int base, int type)
{
    (void)row_offsets, (void)column_indices, (void)values, (void)offset_type;
    (void)index_type, (void)base;
    return create_matrix(matrix, &(struct matrix){rows, columns, elements, type, 1});
}

EXPORT enum library_status
cusparseCreateDnMat(void **matrix, int64_t rows, int64_t columns, int64_t step,
                    void *values, int type, int order)
{
    (void)step, (void)values, (void)order;
    return create_matrix(matrix,
                         &(struct matrix){rows, columns, rows * columns, type, 1});
}

EXPORT enum library_status
cusparseCreateDnVec(void **vector, int64_t size, void *values, int type)
{
    (void)values;
    return create_matrix(vector, &(struct matrix){size, 1, size, type, 1});
}

EXPORT enum library_status
cusparseCsrSetStridedBatch(struct matrix *matrix, int batch, int64_t offsets_stride,
                           int64_t values_stride)
{
    (void)offsets_stride, (void)values_stride;
    matrix->batch = batch;
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseDnMatSetStridedBatch(struct matrix *matrix, int batch, int64_t stride)
{
    (void)stride;
    matrix->batch = batch;
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseCsrSetPointers(struct matrix *matrix, void *offsets, void *indices, void *values)
{
    (void)matrix, (void)offsets, (void)indices, (void)values;
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseSpMatSetAttribute(struct matrix *matrix, int attribute, void *value, size_t bytes)
{
    (void)matrix, (void)attribute, (void)value, (void)bytes;
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseSpMatGetSize(const struct matrix *matrix, int64_t *rows, int64_t *columns,
                     int64_t *elements)
{
    *rows = matrix->rows;
    *columns = matrix->columns;
    *elements = matrix->elements;
    return LIBRARY_OK;
}

/* Objects without contents. */
struct opaque {
    int unused;
};

#define CREATE(name)                                                                     \
    EXPORT enum library_status name(void **object)                                       \
    {                                                                                    \
        return library_create(object, sizeof(struct opaque));                            \
    }
CREATE(cusparseCreateMatDescr)
CREATE(cusparseCreateBsrsm2Info)
CREATE(cusparseCreateBsrsv2Info)
CREATE(cusparseSpGEMM_createDescr)
CREATE(cusparseSpSM_createDescr)
CREATE(cusparseSpSV_createDescr)

#define DESTROY(name)                                                                    \
    EXPORT enum library_status name(void *object)                                        \
    {                                                                                    \
        free(object);                                                                    \
        return LIBRARY_OK;                                                               \
    }
DESTROY(cusparseDestroySpMat)
DESTROY(cusparseDestroyDnMat)
DESTROY(cusparseDestroyDnVec)
DESTROY(cusparseDestroyMatDescr)
DESTROY(cusparseDestroyBsrsm2Info)
DESTROY(cusparseDestroyBsrsv2Info)
DESTROY(cusparseSpGEMM_destroyDescr)
DESTROY(cusparseSpSM_destroyDescr)
DESTROY(cusparseSpSV_destroyDescr)

#define SET(name)                                                                        \
    EXPORT enum library_status name(void *descriptor, int value)                         \
    {                                                                                    \
        (void)descriptor, (void)value;                                                   \
        return LIBRARY_OK;                                                               \
    }
SET(cusparseSetMatType)
SET(cusparseSetMatFillMode)
SET(cusparseSetMatDiagType)
SET(cusparseSetMatIndexBase)

/* --- the model, in bytes -------------------------------------------------------------------- */

static size_t
row_bytes(const struct matrix *matrix)
{
    return 4 * (size_t)matrix->rows * (size_t)matrix->batch;
}

static size_t
solve_bytes(const struct matrix *matrix)
{
    return row_bytes(matrix) + 4 * (size_t)matrix->elements * (size_t)matrix->batch;
}

static size_t
right_side_bytes(const struct matrix *sides)
{
    return (size_t)sides->elements * (size_t)sides->batch * library_element(sides->type);
}

/* Return the number of products of `a` and `b`; as an integer it could overflow. */
static double
count_products(const struct matrix *a, const struct matrix *b)
{
    return b->rows > 0 ? (double)a->elements * (double)b->elements / (double)b->rows : 0;
}

/* --- buffers -------------------------------------------------------------------------------- */

EXPORT enum library_status
cusparseSpMV_bufferSize(void *handle, int transpose, const void *alpha,
                        const struct matrix *a, const void *x, const void *beta, void *y,
                        int compute, int algorithm, size_t *bytes)
{
    (void)handle, (void)transpose, (void)alpha, (void)x, (void)beta, (void)y;
    (void)compute, (void)algorithm;
    *bytes = row_bytes(a);
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseSpMM_bufferSize(void *handle, int a_transpose, int b_transpose, const void *alpha,
                        const struct matrix *a, const void *b, const void *beta, void *c,
                        int compute, int algorithm, size_t *bytes)
{
    (void)handle, (void)a_transpose, (void)b_transpose, (void)alpha, (void)b, (void)beta;
    (void)c, (void)compute, (void)algorithm;
    *bytes = row_bytes(a);
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseSDDMM_bufferSize(void *handle, int a_transpose, int b_transpose,
                         const void *alpha, const void *a, const void *b,
                         const void *beta, const struct matrix *c, int compute,
                         int algorithm, size_t *bytes)
{
    (void)handle, (void)a_transpose, (void)b_transpose, (void)alpha, (void)a, (void)b;
    (void)beta, (void)compute, (void)algorithm;
    *bytes = row_bytes(c);
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseSpSV_bufferSize(void *handle, int transpose, const void *alpha,
                        const struct matrix *a, const void *x, void *y, int compute,
                        int algorithm, void *descriptor, size_t *bytes)
{
    (void)handle, (void)transpose, (void)alpha, (void)x, (void)y, (void)compute;
    (void)algorithm, (void)descriptor;
    *bytes = solve_bytes(a);
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseSpSM_bufferSize(void *handle, int a_transpose, int b_transpose, const void *alpha,
                        const struct matrix *a, const struct matrix *b, void *c,
                        int compute, int algorithm, void *descriptor, size_t *bytes)
{
    (void)handle, (void)a_transpose, (void)b_transpose, (void)alpha, (void)c;
    (void)compute, (void)algorithm, (void)descriptor;
    *bytes = solve_bytes(a) + right_side_bytes(b);
    return LIBRARY_OK;
}

/* --- products of sparse matrices ------------------------------------------------------------ */

/* Without a buffer the call only asks for its size; with one it estimates. */
EXPORT enum library_status
cusparseSpGEMM_workEstimation(struct library_handle *handle, int a_transpose,
                              int b_transpose, const void *alpha, const struct matrix *a,
                              const struct matrix *b, const void *beta, void *c,
                              int compute, int algorithm, void *descriptor, size_t *bytes,
                              void *buffer)
{
    (void)a_transpose, (void)b_transpose, (void)alpha, (void)b, (void)beta, (void)c;
    (void)compute, (void)algorithm, (void)descriptor;
    if (!buffer)
        *bytes = 4 * (size_t)a->elements;
    return library_work(handle);
}

/* Without a buffer the call only asks for its size; with one it sets the size of C. */
EXPORT enum library_status
cusparseSpGEMM_compute(struct library_handle *handle, int a_transpose, int b_transpose,
                       const void *alpha, const struct matrix *a, const struct matrix *b,
                       const void *beta, struct matrix *c, int compute, int algorithm,
                       void *descriptor, size_t *bytes, void *buffer)
{
    (void)a_transpose, (void)b_transpose, (void)alpha, (void)beta, (void)compute;
    (void)algorithm, (void)descriptor;
    double products = count_products(a, b), most = (double)a->rows * (double)b->columns;
    if (!buffer)
        *bytes = (size_t)products * (4 + library_element(a->type));
    c->elements = (int64_t)(products < most ? products : most);
    return library_work(handle);
}

/* --- sorts ---------------------------------------------------------------------------------- */

EXPORT enum library_status
cusparseXcoosort_bufferSizeExt(void *handle, int m, int n, int elements, const int *rows,
                               const int *columns, size_t *bytes)
{
    (void)handle, (void)m, (void)n, (void)rows, (void)columns;
    *bytes = 16 * (size_t)elements;
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseXcsrsort_bufferSizeExt(void *handle, int m, int n, int elements,
                               const int *offsets, const int *columns, size_t *bytes)
{
    (void)handle, (void)m, (void)n, (void)offsets, (void)columns;
    *bytes = 16 * (size_t)elements;
    return LIBRARY_OK;
}

/* --- sums ----------------------------------------------------------------------------------- */

#define GEAM_SIZE(name)                                                                  \
    EXPORT enum library_status name(                                                     \
        void *handle, int m, int n, const void *alpha, const void *a, int a_elements,    \
        const void *a_values, const int *a_offsets, const int *a_columns,                \
        const void *beta, const void *b, int b_elements, const void *b_values,           \
        const int *b_offsets, const int *b_columns, const void *c, const void *c_values, \
        const int *c_offsets, const int *c_columns, size_t *bytes)                       \
    {                                                                                    \
        (void)handle, (void)n, (void)alpha, (void)a, (void)a_elements, (void)a_values;   \
        (void)a_offsets, (void)a_columns, (void)beta, (void)b, (void)b_elements;         \
        (void)b_values, (void)b_offsets, (void)b_columns, (void)c, (void)c_values;       \
        (void)c_offsets, (void)c_columns;                                                \
        *bytes = 4 * (size_t)m;                                                          \
        return LIBRARY_OK;                                                               \
    }
FOR_TYPES(GEAM_SIZE, cusparse, csrgeam2_bufferSizeExt)

EXPORT enum library_status
cusparseXcsrgeam2Nnz(struct library_handle *handle, int m, int n, const void *a,
                     int a_elements, const int *a_offsets, const int *a_columns,
                     const void *b, int b_elements, const int *b_offsets,
                     const int *b_columns, const void *c, int *c_offsets, int *elements,
                     void *workspace)
{
    (void)a, (void)a_offsets, (void)a_columns, (void)b, (void)b_offsets;
    (void)b_columns, (void)c, (void)c_offsets, (void)workspace;
    int64_t sum = (int64_t)a_elements + b_elements, most = (int64_t)m * n;
    int found = (int)(sum < most ? sum : most);
    library_put(elements, &found, sizeof found);
    return library_work(handle);
}

/* --- triangles of blocks -------------------------------------------------------------------- */

#define BSRSV_SIZE(name)                                                                 \
    EXPORT enum library_status name(void *handle, int direction, int transpose,          \
                                    int rows, int elements, const void *a, void *values, \
                                    const int *offsets, const int *columns, int block,   \
                                    void *info, int *size)                               \
    {                                                                                    \
        (void)handle, (void)direction, (void)transpose, (void)a, (void)values;           \
        (void)offsets, (void)columns, (void)block, (void)info;                           \
        return library_put_size(size, 4 * ((int64_t)rows + elements));                   \
    }
FOR_TYPES(BSRSV_SIZE, cusparse, bsrsv2_bufferSize)

#define BSRSM_SIZE(name, value_bytes)                                                    \
    EXPORT enum library_status name(                                                     \
        void *handle, int direction, int a_transpose, int x_transpose, int rows, int n,  \
        int elements, const void *a, void *values, const int *offsets,                   \
        const int *columns, int block, void *info, int *size)                            \
    {                                                                                    \
        (void)handle, (void)direction, (void)a_transpose, (void)x_transpose, (void)a;    \
        (void)values, (void)offsets, (void)columns, (void)info;                          \
        int64_t sides = (int64_t)rows * block * n * (value_bytes);                       \
        return library_put_size(size, 4 * ((int64_t)rows + elements) + sides);           \
    }
BSRSM_SIZE(cusparseSbsrsm2_bufferSize, 4)
BSRSM_SIZE(cusparseDbsrsm2_bufferSize, 8)
BSRSM_SIZE(cusparseCbsrsm2_bufferSize, 8)
BSRSM_SIZE(cusparseZbsrsm2_bufferSize, 16)

/* No pivot is zero: -1 says so. */
#define ZERO_PIVOT(name)                                                                 \
    EXPORT enum library_status name(void *handle, void *info, int *position)             \
    {                                                                                    \
        int none = -1;                                                                   \
        (void)handle, (void)info;                                                        \
        library_put(position, &none, sizeof none);                                       \
        return LIBRARY_OK;                                                               \
    }
ZERO_PIVOT(cusparseXbsrsm2_zeroPivot)
ZERO_PIVOT(cusparseXbsrsv2_zeroPivot)

/* --- workers -------------------------------------------------------------------------------- */

WORKER(cusparseSpMV)
WORKER(cusparseSpMM)
WORKER(cusparseSDDMM)
WORKER(cusparseSDDMM_preprocess)
WORKER(cusparseSpGEMM_copy)
WORKER(cusparseSpSV_analysis)
WORKER(cusparseSpSV_solve)
WORKER(cusparseSpSM_analysis)
WORKER(cusparseSpSM_solve)
WORKER(cusparseXcoo2csr)
WORKER(cusparseXcoosortByRow)
WORKER(cusparseXcsrsort)
WORKER(cusparseCreateIdentityPermutation)
FOR_TYPES(WORKER, cusparse, csrgeam2)
FOR_TYPES(WORKER, cusparse, bsrmm)
FOR_TYPES(WORKER, cusparse, bsrmv)
FOR_TYPES(WORKER, cusparse, bsrsm2_analysis)
FOR_TYPES(WORKER, cusparse, bsrsm2_solve)
FOR_TYPES(WORKER, cusparse, bsrsv2_analysis)
FOR_TYPES(WORKER, cusparse, bsrsv2_solve)
