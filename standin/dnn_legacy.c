/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN's operations with legacy descriptors: convolutions, batch norm, CTC, poolings.
 * Each is work on its handle's stream; their workspace sizes are models (dnn_plan.c).
 */
#include "dnn.h"
#include "stream.h"

/* --- operations ----------------------------------------------------------------------------- */

/* Define an operation. It reads only its handle, so it declares no other parameter. */
#define OPERATION(name)                                                                  \
    EXPORT int name(struct dnn_handle *handle)                                           \
    {                                                                                    \
        standin_work(handle->stream);                                                    \
        return DNN_OK;                                                                   \
    }

OPERATION(cudnnConvolutionForward)
OPERATION(cudnnConvolutionBackwardData)
OPERATION(cudnnConvolutionBackwardFilter)
OPERATION(cudnnConvolutionBiasActivationForward)
OPERATION(cudnnBatchNormalizationForwardTraining)
OPERATION(cudnnBatchNormalizationForwardTrainingEx)
OPERATION(cudnnBatchNormalizationForwardInference)
OPERATION(cudnnBatchNormalizationBackward)
OPERATION(cudnnBatchNormalizationBackwardEx)
OPERATION(cudnnCTCLoss)
OPERATION(cudnnCTCLoss_v8)
OPERATION(cudnnPoolingForward)
OPERATION(cudnnSpatialTfGridGeneratorForward)
OPERATION(cudnnSpatialTfGridGeneratorBackward)
OPERATION(cudnnSpatialTfSamplerForward)
OPERATION(cudnnSpatialTfSamplerBackward)

/* --- convolutions: one algorithm, number 1 of each kind ------------------------------------- */

/* The result for an algorithm; the layout is the same for the three kinds. */
struct performance {
    int algorithm;
    int status;
    float time_ms;
    size_t bytes;
    int is_deterministic;
    int math;
    int reserved[3];
};

static int
propose(const struct dnn_tensor *filter, int wanted, int *count,
        struct performance *results)
{
    *count = wanted > 0;
    if (wanted > 0) {
        *results = (struct performance){
            .algorithm = 1,
            .time_ms = 1,
            .bytes = dnn_filter_workspace(filter),
            .is_deterministic = 1,
        };
    }
    return DNN_OK;
}

EXPORT int
cudnnGetConvolutionForwardAlgorithm_v7(struct dnn_handle *handle, const void *x,
                                       const struct dnn_tensor *filter, const void *how,
                                       const void *y, int wanted, int *count,
                                       struct performance *results)
{
    (void)handle, (void)x, (void)how, (void)y;
    return propose(filter, wanted, count, results);
}

EXPORT int
cudnnGetConvolutionBackwardDataAlgorithm_v7(struct dnn_handle *handle,
                                            const struct dnn_tensor *filter,
                                            const void *dy, const void *how,
                                            const void *dx, int wanted, int *count,
                                            struct performance *results)
{
    (void)handle, (void)dy, (void)how, (void)dx;
    return propose(filter, wanted, count, results);
}

EXPORT int
cudnnGetConvolutionBackwardFilterAlgorithm_v7(struct dnn_handle *handle, const void *x,
                                              const void *dy, const void *how,
                                              const struct dnn_tensor *filter, int wanted,
                                              int *count, struct performance *results)
{
    (void)handle, (void)x, (void)dy, (void)how;
    return propose(filter, wanted, count, results);
}

/* Finding an algorithm runs it, which is work on the stream. */
EXPORT int
cudnnFindConvolutionForwardAlgorithmEx(struct dnn_handle *handle, const void *x_shape,
                                       const void *x, const struct dnn_tensor *filter,
                                       const void *w, const void *how,
                                       const void *y_shape, void *y, int wanted,
                                       int *count, struct performance *results)
{
    (void)x_shape, (void)x, (void)w, (void)how, (void)y_shape, (void)y;
    standin_work(handle->stream);
    return propose(filter, wanted, count, results);
}

EXPORT int
cudnnFindConvolutionBackwardDataAlgorithmEx(struct dnn_handle *handle,
                                            const struct dnn_tensor *filter,
                                            const void *w, const void *dy_shape,
                                            const void *dy, const void *how,
                                            const void *dx_shape, void *dx, int wanted,
                                            int *count, struct performance *results)
{
    (void)w, (void)dy_shape, (void)dy, (void)how, (void)dx_shape, (void)dx;
    standin_work(handle->stream);
    return propose(filter, wanted, count, results);
}

EXPORT int
cudnnFindConvolutionBackwardFilterAlgorithmEx(
    struct dnn_handle *handle, const void *x_shape, const void *x, const void *dy_shape,
    const void *dy, const void *how, const struct dnn_tensor *filter, void *dw,
    int wanted, int *count, struct performance *results)
{
    (void)x_shape, (void)x, (void)dy_shape, (void)dy, (void)how, (void)dw;
    standin_work(handle->stream);
    return propose(filter, wanted, count, results);
}

EXPORT int
cudnnGetConvolutionForwardWorkspaceSize(struct dnn_handle *handle, const void *x,
                                        const struct dnn_tensor *filter, const void *how,
                                        const void *y, int algorithm, size_t *bytes)
{
    (void)handle, (void)x, (void)how, (void)y, (void)algorithm;
    *bytes = dnn_filter_workspace(filter);
    return DNN_OK;
}

EXPORT int
cudnnGetConvolutionBackwardDataWorkspaceSize(struct dnn_handle *handle,
                                             const struct dnn_tensor *filter,
                                             const void *dy, const void *how,
                                             const void *dx, int algorithm, size_t *bytes)
{
    (void)handle, (void)dy, (void)how, (void)dx, (void)algorithm;
    *bytes = dnn_filter_workspace(filter);
    return DNN_OK;
}

EXPORT int
cudnnGetConvolutionBackwardFilterWorkspaceSize(struct dnn_handle *handle, const void *x,
                                               const void *dy, const void *how,
                                               const struct dnn_tensor *filter,
                                               int algorithm, size_t *bytes)
{
    (void)handle, (void)x, (void)dy, (void)how, (void)algorithm;
    *bytes = dnn_filter_workspace(filter);
    return DNN_OK;
}

/* --- batch norm ----------------------------------------------------------------------------- */

#define PERSISTENT_MODE 2

/*
 * A MODEL: nothing if channels come first, as recordings of BatchNorm2d and BatchNorm3d show,
 * forward and backward. The persistent mode is for channels that come last: 2 floats each.
 */
static size_t
norm_bytes(int mode, const struct dnn_tensor *x)
{
    int channels = x->count > 1 ? x->sizes[1] : 1;
    return mode == PERSISTENT_MODE ? (size_t)channels * 2 * sizeof(float) : 0;
}

EXPORT int
cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    struct dnn_handle *handle, int mode, int operations, const struct dnn_tensor *x,
    const void *z, const void *y, const void *scale, const void *activation,
    size_t *bytes)
{
    (void)handle, (void)operations, (void)z, (void)y, (void)scale;
    (void)activation;
    *bytes = norm_bytes(mode, x);
    return DNN_OK;
}

EXPORT int
cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    struct dnn_handle *handle, int mode, int operations, const struct dnn_tensor *x,
    const void *y, const void *dy, const void *dz, const void *dx, const void *scale,
    const void *activation, size_t *bytes)
{
    (void)handle, (void)operations, (void)y, (void)dy, (void)dz, (void)dx;
    (void)scale, (void)activation;
    *bytes = norm_bytes(mode, x);
    return DNN_OK;
}

/* A MODEL: a fused activation keeps one bit for each element; without one nothing is kept. */
EXPORT int
cudnnGetBatchNormalizationTrainingExReserveSpaceSize(struct dnn_handle *handle, int mode,
                                                     int operations,
                                                     const void *activation,
                                                     const struct dnn_tensor *x,
                                                     size_t *bytes)
{
    (void)handle, (void)mode, (void)activation;
    size_t elements = 1;
    for (int i = 0; i < x->count; i++)
        elements *= (size_t)x->sizes[i];
    *bytes = operations == 0 ? 0 : (elements + 31) / 32 * 4;
    return DNN_OK;
}

/* --- CTC ------------------------------------------------------------------------------------ */

/*
 * A MODEL: alphas and betas of a lattice of T x (2 L + 1) floats for each sequence.
 * Without a given length, labels count as 256 long: PyTorch passes none that is longer.
 */
static size_t
ctc_bytes(const struct dnn_tensor *probabilities, size_t length)
{
    size_t steps = (size_t)probabilities->sizes[0],
           batch = (size_t)probabilities->sizes[1];
    return steps * batch * (2 * length + 1) * 2 * sizeof(float);
}

EXPORT int
cudnnGetCTCLossWorkspaceSize(struct dnn_handle *handle,
                             const struct dnn_tensor *probabilities,
                             const void *gradients, const int *labels, const int *lengths,
                             const int *input_lengths, int algorithm, const void *how,
                             size_t *bytes)
{
    (void)handle, (void)gradients, (void)labels, (void)input_lengths, (void)algorithm;
    (void)how;
    int longest = 0;
    for (int i = 0; i < probabilities->sizes[1]; i++)
        longest = lengths[i] > longest ? lengths[i] : longest;
    *bytes = ctc_bytes(probabilities, (size_t)longest);
    return DNN_OK;
}

EXPORT int
cudnnGetCTCLossWorkspaceSize_v8(struct dnn_handle *handle, int algorithm, const void *how,
                                const struct dnn_tensor *probabilities,
                                const void *gradients, size_t *bytes)
{
    (void)handle, (void)algorithm, (void)how, (void)gradients;
    *bytes = ctc_bytes(probabilities, 256);
    return DNN_OK;
}
