/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MODELS of workspaces, in place of cuDNN's kernels.
 *
 * A convolution with a filter of one point multiplies matrices and takes none. Any other takes
 * 128 KiB. True ones were reported between 50 and 205 KB a plan, and up to 26 MB for some plans
 * of ResNet-50. The model does not tell these apart.
 *
 * Attention forward takes 256 bytes, as was reported. Backward takes the query's gradient and
 * the sums of rows in 32 bits. This makes the other figure reported, 24.4 MiB, if its shape was
 * 8 x 12 x 1,024 x 64, which nobody noted. A program that builds attention from matrix products
 * accounts for these two itself.
 *
 * Cost: one look at each operation of a graph, when a plan is made.
 */
#include "dnn.h"

#define CONVOLUTION_BYTES (UINT64_C(128) << 10)
#define ATTENTION_BYTES UINT64_C(256)

static uint64_t
convolution_workspace(const struct dnn_part *operation, int filter_name)
{
    const struct dnn_part *filter = dnn_part_child(operation, filter_name, 0);
    int64_t count;
    const int64_t *sizes =
        filter ? dnn_part_numbers(filter, DNN_TENSOR_SIZES, &count) : NULL;
    for (int64_t i = 2; sizes && i < count; i++) {
        if (sizes[i] != 1)
            return CONVOLUTION_BYTES;
    }
    return 0;
}

static uint64_t
attention_workspace(const struct dnn_part *operation)
{
    const struct dnn_part *query =
        dnn_part_child(operation, DNN_ATTENTION_BACKWARD_QUERY, 0);
    int64_t count;
    const int64_t *sizes =
        query ? dnn_part_numbers(query, DNN_TENSOR_SIZES, &count) : NULL;
    if (!sizes || count != 4)
        return ATTENTION_BYTES;
    uint64_t rows = (uint64_t)sizes[0] * (uint64_t)sizes[1] * (uint64_t)sizes[2];
    return rows * ((uint64_t)sizes[3] + 1) * sizeof(float);
}

static uint64_t
operation_workspace(const struct dnn_part *operation)
{
    switch (dnn_part_kind(operation)) {
    case DNN_CONVOLUTION_FORWARD:
        return convolution_workspace(operation, DNN_FORWARD_FILTER);
    case DNN_CONVOLUTION_DATA:
        return convolution_workspace(operation, DNN_DATA_FILTER);
    case DNN_CONVOLUTION_WEIGHT:
        return convolution_workspace(operation, DNN_WEIGHT_FILTER);
    case DNN_MATMUL:
    case DNN_ATTENTION_FORWARD:
        return ATTENTION_BYTES;
    case DNN_ATTENTION_BACKWARD:
        return attention_workspace(operation);
    default:
        return 0;
    }
}

uint64_t
dnn_graph_workspace(const struct dnn_part *graph)
{
    uint64_t most = 0;
    const struct dnn_part *operation;
    for (int64_t i = 0;
         graph && (operation = dnn_part_child(graph, DNN_GRAPH_OPERATIONS, i)) != NULL;
         i++) {
        uint64_t bytes = operation_workspace(operation);
        most = bytes > most ? bytes : most;
    }
    return most;
}

uint64_t
dnn_filter_workspace(const struct dnn_tensor *filter)
{
    for (int i = 2; i < filter->count; i++) {
        if (filter->sizes[i] != 1)
            return CONVOLUTION_BYTES;
    }
    return 0;
}
