/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MODELS of workspaces, in place of cuDNN's kernels.
 *
 * A convolution with a 1 x 1 filter is a matrix product and takes none.
 *
 * A 3 x 3 filter of floats with stride 1 uses Winograd's method, forward and for the data's
 * gradient. It keeps the filter once reordered and once transformed, and a number for each output:
 *
 *     bytes = 4 * (9 K C + 16 ceil32(K) ceil16(C) + K),  K outputs, C inputs of that direction
 *
 * The formula was fitted to six plans of one CNN, recorded with cuDNN 8.9 on a card of capability
 * 8. It agrees with them to the byte. The largest of ResNet-50, 512 x 512, comes to 26.2 MB; about
 * that was reported. It has not been compared with recordings of cuDNN 9.
 *
 * Any other takes 128 KiB: the gradient of a filter, half floats, strides, other sizes. Real ones
 * in bf16 take from 131 bytes to 51 MB: ResNet-50's peaks were 0.06 % off with cuDNN 9.19.
 *
 * Attention forward takes 256 bytes, as was reported. Backward takes the query's gradient and the
 * sums of rows in 32 bits. This gives the other reported figure, 24.4 MiB, if its shape was 8 x 12
 * x 1,024 x 64, which the report does not say. A program that builds attention from matrix
 * products accounts for these two itself. If several heads of the query share a key, the gradients
 * of key and value are sums over these heads, and cuDNN keeps the summands: this agrees to the
 * byte with cuDNN 9.19 on an H100 (32 heads, 4 keys).
 *
 * Cost: a pass over the operations of a graph, when a plan is made.
 */
#include "dnn.h"

#include <stdatomic.h>

#define CONVOLUTION_BYTES (UINT64_C(128) << 10)
#define ATTENTION_BYTES UINT64_C(256)

#define OF_HALVES 1U
#define OF_FLOATS 2U

static atomic_uint planned; /* OF_... of the convolutions whose workspace was asked for */

/* Tell which numbers convolutions had: OF_... of this process. */
EXPORT unsigned
drystone_standin_convolutions(void)
{
    return atomic_load(&planned);
}

static void
note_convolution(int type)
{
    atomic_fetch_or(&planned, dnn_type_bits(type) <= 16 ? OF_HALVES : OF_FLOATS);
}

static bool
is_all(const int64_t *numbers, int64_t count, int64_t wanted)
{
    for (int64_t i = 0; i < count; i++) {
        if (numbers[i] != wanted)
            return false;
    }
    return true;
}

static uint64_t
round_up(uint64_t number, uint64_t step)
{
    return (number + step - 1) / step * step;
}

static uint64_t
winograd_workspace(uint64_t outputs, uint64_t inputs)
{
    uint64_t transformed = 16 * round_up(outputs, 32) * round_up(inputs, 16);
    return sizeof(float) * (9 * outputs * inputs + transformed + outputs);
}

/* Names of the attributes of one direction of a convolution. */
struct direction {
    int filter, how;
    bool is_gradient; /* it computes the filter's gradient */
    bool is_turned;   /* inputs and outputs are swapped */
};

static uint64_t
convolution_workspace(const struct dnn_part *operation, const struct direction *direction)
{
    int64_t count, strides_count;
    const struct dnn_part *filter = dnn_part_child(operation, direction->filter, 0);
    const struct dnn_part *how = dnn_part_child(operation, direction->how, 0);
    const int64_t *sizes =
        filter ? dnn_part_numbers(filter, DNN_TENSOR_SIZES, &count) : NULL;
    const int64_t *strides =
        how ? dnn_part_numbers(how, DNN_CONVOLUTION_STRIDES, &strides_count) : NULL;
    if (filter)
        note_convolution(dnn_part_type(filter));
    if (!sizes || count < 3 || is_all(sizes + 2, count - 2, 1))
        return 0;
    if (direction->is_gradient || dnn_part_type(filter) != DNN_FLOAT || count != 4 ||
        !is_all(sizes + 2, 2, 3) || !strides || !is_all(strides, strides_count, 1))
        return CONVOLUTION_BYTES;
    return winograd_workspace((uint64_t)sizes[direction->is_turned],
                              (uint64_t)sizes[!direction->is_turned]);
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
    static const struct direction forward = {.filter = DNN_FORWARD_FILTER,
                                             .how = DNN_FORWARD_HOW};
    static const struct direction data = {
        .filter = DNN_DATA_FILTER, .how = DNN_DATA_HOW, .is_turned = true};
    static const struct direction weight = {
        .filter = DNN_WEIGHT_FILTER, .how = DNN_WEIGHT_HOW, .is_gradient = true};
    switch (dnn_part_kind(operation)) {
    case DNN_CONVOLUTION_FORWARD:
        return convolution_workspace(operation, &forward);
    case DNN_CONVOLUTION_DATA:
        return convolution_workspace(operation, &data);
    case DNN_CONVOLUTION_WEIGHT:
        return convolution_workspace(operation, &weight);
    case DNN_MATMUL:
    case DNN_ATTENTION_FORWARD:
        return ATTENTION_BYTES;
    case DNN_ATTENTION_BACKWARD:
        return attention_workspace(operation);
    default:
        return 0;
    }
}

/*
 * Return the bytes that a sum over heads keeps of its summands, in elements of its
 * result; 0 if the operation is no such sum.
 */
static uint64_t
heads_workspace(const struct dnn_part *operation)
{
    int64_t from_count, to_count;
    const struct dnn_part *from = dnn_part_child(operation, DNN_REDUCTION_FROM, 0);
    const struct dnn_part *to = dnn_part_child(operation, DNN_REDUCTION_TO, 0);
    const int64_t *many =
        from ? dnn_part_numbers(from, DNN_TENSOR_SIZES, &from_count) : NULL;
    const int64_t *few = to ? dnn_part_numbers(to, DNN_TENSOR_SIZES, &to_count) : NULL;
    if (!many || !few || from_count != 4 || to_count != 4 || few[1] >= many[1] ||
        few[0] != many[0] || few[2] != many[2] || few[3] != many[3])
        return 0;
    uint64_t rows = (uint64_t)many[0] * (uint64_t)many[1] * (uint64_t)many[2];
    return rows * (uint64_t)many[3] * (uint64_t)dnn_type_bits(dnn_part_type(to)) / 8;
}

uint64_t
dnn_graph_workspace(const struct dnn_part *graph)
{
    uint64_t most = 0, kept = 0;
    const struct dnn_part *operation;
    for (int64_t i = 0;
         graph && (operation = dnn_part_child(graph, DNN_GRAPH_OPERATIONS, i)) != NULL;
         i++) {
        uint64_t bytes = operation_workspace(operation);
        most = bytes > most ? bytes : most;
        if (dnn_part_kind(operation) == DNN_REDUCTION)
            kept += heads_workspace(operation);
    }
    return most + kept;
}

uint64_t
dnn_filter_workspace(const struct dnn_tensor *filter)
{
    note_convolution(filter->type);
    for (int i = 2; i < filter->count; i++) {
        if (filter->sizes[i] != 1)
            return CONVOLUTION_BYTES;
    }
    return 0;
}
