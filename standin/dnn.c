/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN's handles, versions and legacy descriptors. Descriptors that can be read back
 * keep their values. For the others only the address matters, and setters do nothing.
 */
#include "dnn.h"

#include <stdlib.h>

#include "setup.h"
#include "stream.h"

/* --- the library ---------------------------------------------------------------------------- */

EXPORT size_t
cudnnGetVersion(void)
{
    return (size_t)standin_setup()->cudnn_version;
}

EXPORT size_t
cudnnGetCudartVersion(void)
{
    return (size_t)standin_setup()->cuda_version;
}

EXPORT size_t
cudnnGetMaxDeviceVersion(void)
{
    return (size_t)standin_setup()->major * 100 + (size_t)standin_setup()->minor * 10;
}

enum property { PROPERTY_MAJOR, PROPERTY_MINOR, PROPERTY_PATCH };

EXPORT int
cudnnGetProperty(enum property property, int *value)
{
    int version = standin_setup()->cudnn_version;
    switch (property) {
    case PROPERTY_MAJOR:
        *value = version / 10000;
        return DNN_OK;
    case PROPERTY_MINOR:
        *value = version / 100 % 100;
        return DNN_OK;
    case PROPERTY_PATCH:
        *value = version % 100;
        return DNN_OK;
    }
    return DNN_BAD_PARAM;
}

EXPORT const char *
cudnnGetErrorString(int status)
{
    return status == DNN_OK ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_BAD_PARAM";
}

EXPORT void
cudnnGetLastErrorString(char *message, size_t size)
{
    if (size)
        *message = '\0';
}

int
dnn_type_bits(int type)
{
    static const unsigned short bits[] = {
        32, 64, 16, 8, 32, 32, 8, 32, 256, 16,  64, 1,
        8,  8,  32, 8, 4,  4,  4, 32, 64,  128, 8,  8,
    };
    bool is_known = type >= 0 && type < (int)(sizeof bits / sizeof *bits);
    return is_known ? bits[type] : 32;
}

/* --- handles -------------------------------------------------------------------------------- */

EXPORT int
cudnnCreate(struct dnn_handle **handle)
{
    *handle = calloc(1, sizeof **handle);
    return *handle ? DNN_OK : DNN_NO_HOST_MEMORY;
}

EXPORT int
cudnnDestroy(struct dnn_handle *handle)
{
    free(handle);
    return DNN_OK;
}

EXPORT int
cudnnSetStream(struct dnn_handle *handle, void *stream)
{
    handle->stream = stream;
    return DNN_OK;
}

EXPORT int
cudnnGetStream(struct dnn_handle *handle, void **stream)
{
    *stream = handle->stream;
    return DNN_OK;
}

/* --- tensors and filters -------------------------------------------------------------------- */

static int
set_sizes(struct dnn_tensor *tensor, int type, int count, const int *sizes)
{
    if (count < 0 || count > DNN_DIMENSIONS_MAX)
        return DNN_BAD_PARAM;
    tensor->type = type;
    tensor->count = count;
    int64_t step = 1;
    for (int i = count - 1; i >= 0; i--) {
        tensor->sizes[i] = sizes[i];
        tensor->strides[i] = (int)step;
        step *= sizes[i];
    }
    return DNN_OK;
}

/* Return how many dimensions can be read: at most those the tensor has. */
static int
readable(const struct dnn_tensor *tensor, int wanted)
{
    return wanted < tensor->count ? wanted : tensor->count;
}

EXPORT int
cudnnCreateTensorDescriptor(struct dnn_tensor **tensor)
{
    *tensor = calloc(1, sizeof **tensor);
    return *tensor ? DNN_OK : DNN_NO_HOST_MEMORY;
}

EXPORT int
cudnnDestroyTensorDescriptor(struct dnn_tensor *tensor)
{
    free(tensor);
    return DNN_OK;
}

EXPORT int
cudnnSetTensorNdDescriptor(struct dnn_tensor *tensor, int type, int count,
                           const int *sizes, const int *strides)
{
    int status = set_sizes(tensor, type, count, sizes);
    for (int i = 0; status == DNN_OK && i < count; i++)
        tensor->strides[i] = strides[i];
    return status;
}

EXPORT int
cudnnSetTensor4dDescriptor(struct dnn_tensor *tensor, int format, int type, int n, int c,
                           int h, int w)
{
    tensor->format = format;
    return set_sizes(tensor, type, 4, (const int[]){n, c, h, w});
}

EXPORT int
cudnnGetTensorNdDescriptor(const struct dnn_tensor *tensor, int wanted, int *type,
                           int *count, int *sizes, int *strides)
{
    *type = tensor->type;
    *count = tensor->count;
    for (int i = 0; i < readable(tensor, wanted); i++) {
        sizes[i] = tensor->sizes[i];
        strides[i] = tensor->strides[i];
    }
    return DNN_OK;
}

EXPORT int
cudnnCreateFilterDescriptor(struct dnn_tensor **filter)
{
    return cudnnCreateTensorDescriptor(filter);
}

EXPORT int
cudnnDestroyFilterDescriptor(struct dnn_tensor *filter)
{
    return cudnnDestroyTensorDescriptor(filter);
}

EXPORT int
cudnnSetFilterNdDescriptor(struct dnn_tensor *filter, int type, int format, int count,
                           const int *sizes)
{
    filter->format = format;
    return set_sizes(filter, type, count, sizes);
}

EXPORT int
cudnnGetFilterNdDescriptor(const struct dnn_tensor *filter, int wanted, int *type,
                           int *format, int *count, int *sizes)
{
    *type = filter->type;
    *format = filter->format;
    *count = filter->count;
    for (int i = 0; i < readable(filter, wanted); i++)
        sizes[i] = filter->sizes[i];
    return DNN_OK;
}

/* --- descriptors without contents ----------------------------------------------------------- */

struct blank {
    char unused;
};

static int
create_blank(struct blank **blank)
{
    *blank = calloc(1, sizeof **blank);
    return *blank ? DNN_OK : DNN_NO_HOST_MEMORY;
}

static int
destroy_blank(struct blank *blank)
{
    free(blank);
    return DNN_OK;
}

#define BLANK(noun)                                                                      \
    EXPORT int cudnnCreate##noun##Descriptor(struct blank **blank)                       \
    {                                                                                    \
        return create_blank(blank);                                                      \
    }                                                                                    \
    EXPORT int cudnnDestroy##noun##Descriptor(struct blank *blank)                       \
    {                                                                                    \
        return destroy_blank(blank);                                                     \
    }

BLANK(Activation)
BLANK(Convolution)
BLANK(CTCLoss)
BLANK(Dropout)
BLANK(Pooling)
BLANK(SpatialTransformer)

/* Define a setter. It reads no parameter, so it declares none: a callee may leave them alone. */
#define SETTER(name)                                                                     \
    EXPORT int name(void)                                                                \
    {                                                                                    \
        return DNN_OK;                                                                   \
    }

SETTER(cudnnSetActivationDescriptor)
SETTER(cudnnSetConvolutionGroupCount)
SETTER(cudnnSetConvolutionMathType)
SETTER(cudnnSetConvolutionNdDescriptor)
SETTER(cudnnSetCTCLossDescriptor)
SETTER(cudnnSetCTCLossDescriptorEx)
SETTER(cudnnSetCTCLossDescriptor_v8)
SETTER(cudnnSetCTCLossDescriptor_v9)
SETTER(cudnnSetPooling2dDescriptor)
SETTER(cudnnSetSpatialTransformerNdDescriptor)

/* --- dropout -------------------------------------------------------------------------------- */

/*
 * A MODEL: 1,024 generators for each multiprocessor, of 48 bytes, the size of cuRAND's
 * XORWOW state.
 */
EXPORT int
cudnnDropoutGetStatesSize(struct dnn_handle *handle, size_t *bytes)
{
    (void)handle;
    *bytes = (size_t)standin_setup()->sm_count * 1024 * 48;
    return DNN_OK;
}

/* Seed the generators, which is work on the stream. */
EXPORT int
cudnnSetDropoutDescriptor(struct blank *dropout, struct dnn_handle *handle)
{
    (void)dropout;
    standin_work(handle->stream);
    return DNN_OK;
}

SETTER(cudnnRestoreDropoutDescriptor)
