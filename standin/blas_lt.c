/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cublasLt: descriptors without contents, and one algorithm that always fits.
 *
 * PyTorch allocates the workspace before it asks for algorithms. So an algorithm that needs no
 * workspace changes no allocation. One algorithm must be returned: with none, PyTorch leaves the
 * fused path and warns. Programs read no attribute back, so none is stored.
 */
#include <stdlib.h>
#include <string.h>

#include "library.h"
#include "setup.h"
#include "stream.h"

/* An algorithm and the heuristic's result for it, in cublasLt's documented layout. */
struct algorithm {
    uint64_t data[8];
};

struct heuristic {
    struct algorithm algorithm;
    size_t workspace_bytes;
    int state;
    float waves;
    int reserved[4];
};

/* --- versions and handles ------------------------------------------------------------------- */

/*
 * Versions of cuBLAS by CUDA release. For other releases CUDA's number is used, which is
 * never above the true version.
 */
static const struct {
    int cuda, blas;
} versions[] = {{13000, 130100}, {13020, 130401}};

EXPORT size_t
cublasLtGetVersion(void)
{
    int cuda = standin_setup()->cuda_version;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
        if (versions[i].cuda == cuda)
            return (size_t)versions[i].blas;
    }
    return (size_t)cuda / 1000 * 10000 + (size_t)cuda % 1000 / 10 * 100;
}

EXPORT enum library_status
cublasGetVersion_v2(const void *handle, int *version)
{
    (void)handle;
    *version = (int)cublasLtGetVersion();
    return LIBRARY_OK;
}

/* Return a component of the version: 0 is the major, 1 the minor, 2 the patch. */
EXPORT enum library_status
cublasGetProperty(int part, int *value)
{
    int version = (int)cublasLtGetVersion();
    if (part < 0 || part > 2)
        return BLAS_INVALID;
    *value = part == 0   ? version / 10000
             : part == 1 ? version / 100 % 100
                         : version % 100;
    return LIBRARY_OK;
}

EXPORT enum library_status
cublasLtCreate(void **handle)
{
    return library_create(handle, sizeof(struct library_handle));
}

EXPORT enum library_status
cublasLtDestroy(struct library_handle *handle)
{
    free(handle);
    return LIBRARY_OK;
}

/* --- descriptors ---------------------------------------------------------------------------- */

struct descriptor {
    int type;
};

EXPORT enum library_status
cublasLtMatmulDescCreate(void **descriptor, int compute_type, int scale_type)
{
    (void)compute_type, (void)scale_type;
    return library_create(descriptor, sizeof(struct descriptor));
}

EXPORT enum library_status
cublasLtMatrixLayoutCreate(void **layout, int type, uint64_t rows, uint64_t columns,
                           int64_t step)
{
    (void)type, (void)rows, (void)columns, (void)step;
    return library_create(layout, sizeof(struct descriptor));
}

EXPORT enum library_status
cublasLtMatmulPreferenceCreate(void **preference)
{
    return library_create(preference, sizeof(struct descriptor));
}

#define DESTROY(name)                                                                    \
    EXPORT enum library_status name(struct descriptor *descriptor)                       \
    {                                                                                    \
        free(descriptor);                                                                \
        return LIBRARY_OK;                                                               \
    }
DESTROY(cublasLtMatmulDescDestroy)
DESTROY(cublasLtMatrixLayoutDestroy)
DESTROY(cublasLtMatmulPreferenceDestroy)

#define SET(name)                                                                        \
    EXPORT enum library_status name(struct descriptor *descriptor, int attribute,        \
                                    const void *value, size_t bytes)                     \
    {                                                                                    \
        (void)descriptor, (void)attribute, (void)value, (void)bytes;                     \
        return LIBRARY_OK;                                                               \
    }
SET(cublasLtMatmulDescSetAttribute)
SET(cublasLtMatrixLayoutSetAttribute)
SET(cublasLtMatmulPreferenceSetAttribute)

/* --- algorithms ----------------------------------------------------------------------------- */

EXPORT enum library_status
cublasLtMatmulAlgoGetHeuristic(void *handle, void *operation, void *a, void *b, void *c,
                               void *d, void *preference, int wanted,
                               struct heuristic *results, int *count)
{
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference;
    if (wanted < 1)
        return BLAS_INVALID;
    results[0] = (struct heuristic){.state = LIBRARY_OK, .waves = 1.0f};
    *count = 1;
    return LIBRARY_OK;
}

EXPORT enum library_status
cublasLtMatmulAlgoCheck(void *handle, void *operation, void *a, void *b, void *c, void *d,
                        const struct algorithm *algorithm, struct heuristic *result)
{
    (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d;
    *result = (struct heuristic){.algorithm = *algorithm, .waves = 1.0f};
    return LIBRARY_OK;
}

EXPORT enum library_status
cublasLtMatmulAlgoInit(void *handle, int compute, int scale, int a, int b, int c, int d,
                       int id, struct algorithm *algorithm)
{
    (void)handle, (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
    *algorithm = (struct algorithm){{(uint64_t)id}};
    return LIBRARY_OK;
}

EXPORT enum library_status
cublasLtMatmulAlgoConfigGetAttribute(const struct algorithm *algorithm, int attribute,
                                     void *value, size_t bytes, size_t *written)
{
    (void)algorithm, (void)attribute;
    memset(value, 0, bytes);
    if (written)
        *written = bytes;
    return LIBRARY_OK;
}

EXPORT enum library_status
cublasLtMatmulAlgoConfigSetAttribute(struct algorithm *algorithm, int attribute,
                                     const void *value, size_t bytes)
{
    (void)algorithm, (void)attribute, (void)value, (void)bytes;
    return LIBRARY_OK;
}

EXPORT enum library_status
cublasLtMatmul(void *handle, void *operation, const void *alpha, const void *a,
               void *a_layout, const void *b, void *b_layout, const void *beta,
               const void *c, void *c_layout, void *d, void *d_layout,
               const struct algorithm *algorithm, void *workspace, size_t bytes,
               void *stream)
{
    (void)handle, (void)operation, (void)alpha, (void)a, (void)a_layout, (void)b;
    (void)b_layout, (void)beta, (void)c, (void)c_layout, (void)d, (void)d_layout;
    (void)algorithm, (void)workspace, (void)bytes;
    standin_work(stream);
    return LIBRARY_OK;
}
