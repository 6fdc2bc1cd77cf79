/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuSPARSELt: the size of a matrix after compression, which keeps two elements of each four.
 *
 * Half of the values stay, with 2 bits of position each. PyTorch computes with the same fractions:
 * 9 / 16 of the bytes, 10 / 16 for 1-byte types. Workspaces are empty, which is a model, not a
 * measurement. Objects are in the caller's memory, 512 bytes or more; the first bytes of a matrix
 * hold its size.
 */
#include <string.h>

#include "library.h"
#include "stream.h"

struct matrix {
    int64_t rows, columns;
    int type;
};

/* The attribute of an algorithm that holds the highest valid number. */
#define ATTRIBUTE_MAX_ID 1

#define NOTHING(name)                                                                    \
    EXPORT enum library_status name(void *object)                                        \
    {                                                                                    \
        (void)object;                                                                    \
        return LIBRARY_OK;                                                               \
    }
NOTHING(cusparseLtInit)
NOTHING(cusparseLtDestroy)
NOTHING(cusparseLtMatDescriptorDestroy)
NOTHING(cusparseLtMatmulPlanDestroy)
NOTHING(cusparseLtMatmulDescriptorInit)
NOTHING(cusparseLtMatmulDescSetAttribute)
NOTHING(cusparseLtMatmulAlgSelectionInit)
NOTHING(cusparseLtMatmulAlgSetAttribute)
NOTHING(cusparseLtMatmulPlanInit)

EXPORT enum library_status
cusparseLtGetVersion(const void *handle, int *version)
{
    (void)handle;
    *version = 801;
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseLtDenseDescriptorInit(const void *handle, struct matrix *matrix, int64_t rows,
                              int64_t columns, int64_t step, uint32_t alignment, int type,
                              int order)
{
    (void)handle, (void)step, (void)alignment, (void)order;
    *matrix = (struct matrix){rows, columns, type};
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseLtStructuredDescriptorInit(const void *handle, struct matrix *matrix,
                                   int64_t rows, int64_t columns, int64_t step,
                                   uint32_t alignment, int type, int order, int sparsity)
{
    (void)handle, (void)step, (void)alignment, (void)order, (void)sparsity;
    *matrix = (struct matrix){rows, columns, type};
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseLtSpMMACompressedSize2(const void *handle, const struct matrix *matrix,
                               size_t *compressed, size_t *buffer)
{
    (void)handle;
    size_t element = library_element(matrix->type);
    size_t bytes = (size_t)matrix->rows * (size_t)matrix->columns * element;
    *compressed = bytes / 16 * (element == 1 ? 10 : 9);
    *buffer = 0;
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseLtSpMMACompress2(const void *handle, const void *matrix, int is_a, int transpose,
                         const void *dense, void *compressed, void *buffer, void *stream)
{
    (void)handle, (void)matrix, (void)is_a, (void)transpose, (void)dense;
    (void)compressed, (void)buffer;
    standin_work(stream);
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseLtMatmulGetWorkspace(const void *handle, const void *plan, size_t *bytes)
{
    (void)handle, (void)plan;
    *bytes = 0;
    return LIBRARY_OK;
}

EXPORT enum library_status
cusparseLtMatmulAlgGetAttribute(const void *handle, const void *selection, int attribute,
                                void *value, size_t bytes)
{
    int one = attribute == ATTRIBUTE_MAX_ID;
    (void)handle, (void)selection;
    memset(value, 0, bytes);
    if (bytes >= sizeof one)
        memcpy(value, &one, sizeof one);
    return LIBRARY_OK;
}

/* Work goes to the first of the streams, or to the default one. */
#define MULTIPLY(name)                                                                   \
    EXPORT enum library_status name(                                                     \
        const void *handle, const void *plan, const void *alpha, const void *a,          \
        const void *b, const void *beta, const void *c, void *d, void *workspace,        \
        void **streams, int32_t stream_count)                                            \
    {                                                                                    \
        (void)handle, (void)plan, (void)alpha, (void)a, (void)b, (void)beta, (void)c;    \
        (void)d, (void)workspace;                                                        \
        standin_work(stream_count > 0 ? streams[0] : NULL);                              \
        return LIBRARY_OK;                                                               \
    }
MULTIPLY(cusparseLtMatmul)
MULTIPLY(cusparseLtMatmulSearch)
