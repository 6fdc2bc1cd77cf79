/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN's recurrent networks: the layout of weights, and the memory of a run.
 *
 * A network has `layers` times `directions` pseudo layers. The weight space holds, without gaps,
 * the matrices of all pseudo layers, then their biases. A pseudo layer's matrices, and its
 * biases, come in the order of their numbers: for the input, for the state, the projection.
 *
 * MODEL of the memory of a run. It counts elements for each step of each sequence and each
 * direction, with G gates, H values of the state, and P output values of a layer.
 *
 *     reserve     (training) a layer keeps its gates, the cell's state and its squashed value
 *                 (LSTM), and its output: G H + 2 H + P. GRU keeps its recurrent sum, too: H.
 *                 Dropout between layers keeps a byte for each output.
 *     workspace   one layer's gates before they are squashed, forward. Training adds their
 *                 gradients, and the gradient of an output.
 *
 * The reserve lives from forward to backward, so it counts in a peak. No real one was measured.
 */
#include <stdlib.h>

#include "dnn.h"
#include "stream.h"

enum cell { CELL_RELU, CELL_TANH, CELL_LSTM, CELL_GRU };
enum bias { BIAS_NONE, BIAS_INPUT, BIAS_BOTH, BIAS_STATE };

struct rnn {
    enum cell cell;
    enum bias bias;
    int directions;
    bool is_skipping; /* the first layer uses its input directly, without a matrix */
    int type;
    int input, hidden, projection, layers;
};

struct rnn_data {
    int steps, batch;
    int64_t rows; /* sum of the sequences' lengths */
};

/* --- descriptors ---------------------------------------------------------------------------- */

EXPORT int
cudnnCreateRNNDescriptor(struct rnn **rnn)
{
    *rnn = calloc(1, sizeof **rnn);
    return *rnn ? DNN_OK : DNN_NO_HOST_MEMORY;
}

EXPORT int
cudnnDestroyRNNDescriptor(struct rnn *rnn)
{
    free(rnn);
    return DNN_OK;
}

EXPORT int
cudnnSetRNNDescriptor_v8(struct rnn *rnn, int algorithm, enum cell cell, enum bias bias,
                         int direction, int input_mode, int type, int precision, int math,
                         int input, int hidden, int projection, int layers,
                         const void *dropout, unsigned flags)
{
    (void)algorithm, (void)precision, (void)math, (void)dropout, (void)flags;
    *rnn = (struct rnn){.cell = cell,
                        .bias = bias,
                        .directions = direction + 1,
                        .is_skipping = input_mode == 1,
                        .type = type,
                        .input = input,
                        .hidden = hidden,
                        .projection = projection > 0 ? projection : hidden,
                        .layers = layers};
    return DNN_OK;
}

EXPORT int
cudnnCreateRNNDataDescriptor(struct rnn_data **data)
{
    *data = calloc(1, sizeof **data);
    return *data ? DNN_OK : DNN_NO_HOST_MEMORY;
}

EXPORT int
cudnnDestroyRNNDataDescriptor(struct rnn_data *data)
{
    free(data);
    return DNN_OK;
}

EXPORT int
cudnnSetRNNDataDescriptor(struct rnn_data *data, int type, int layout, int steps,
                          int batch, int width, const int *lengths, const void *padding)
{
    (void)type, (void)layout, (void)width, (void)padding;
    *data = (struct rnn_data){.steps = steps, .batch = batch};
    for (int i = 0; i < batch; i++)
        data->rows += lengths[i];
    return DNN_OK;
}

/* --- weights -------------------------------------------------------------------------------- */

static int
gate_count(const struct rnn *rnn)
{
    return rnn->cell == CELL_LSTM ? 4 : rnn->cell == CELL_GRU ? 3 : 1;
}

static bool
has_projection(const struct rnn *rnn)
{
    return rnn->cell == CELL_LSTM && rnn->projection != rnn->hidden;
}

/* Return the number of a layer's inputs: the network's input, or both directions' outputs. */
static int
layer_input(const struct rnn *rnn, int pseudo_layer)
{
    if (pseudo_layer < rnn->directions)
        return rnn->is_skipping ? 0 : rnn->input;
    return rnn->projection * rnn->directions;
}

/* A matrix or a bias: its offset in the weight space, in elements, and its size. */
struct place {
    uint64_t begin;
    int rows, columns; /* 0: it does not exist */
};

static uint64_t
elements(const struct place *place)
{
    return (uint64_t)place->rows * (uint64_t)place->columns;
}

/*
 * Return the size of a pseudo layer's matrix; `number` counts 2 for each gate, then the
 * projection.
 */
static struct place
matrix_size(const struct rnn *rnn, int pseudo_layer, int number)
{
    int gates = gate_count(rnn);
    if (number < gates)
        return (struct place){0, rnn->hidden, layer_input(rnn, pseudo_layer)};
    if (number < 2 * gates)
        return (struct place){0, rnn->hidden, rnn->projection};
    if (number == 2 * gates && has_projection(rnn))
        return (struct place){0, rnn->projection, rnn->hidden};
    return (struct place){0, 0, 0};
}

static struct place
bias_size(const struct rnn *rnn, int number)
{
    int gates = gate_count(rnn);
    bool is_input = number < gates, is_state = !is_input && number < 2 * gates;
    bool is_there = (is_input && (rnn->bias == BIAS_INPUT || rnn->bias == BIAS_BOTH)) ||
                    (is_state && (rnn->bias == BIAS_STATE || rnn->bias == BIAS_BOTH));
    return (struct place){0, is_there ? rnn->hidden : 0, 1};
}

/* Return the elements of a pseudo layer's matrices before `number`. */
static uint64_t
matrices_before(const struct rnn *rnn, int pseudo_layer, int number)
{
    uint64_t sum = 0;
    for (int i = 0; i < number; i++) {
        struct place place = matrix_size(rnn, pseudo_layer, i);
        sum += elements(&place);
    }
    return sum;
}

static uint64_t
biases_before(const struct rnn *rnn, int number)
{
    uint64_t sum = 0;
    for (int i = 0; i < number; i++) {
        struct place place = bias_size(rnn, i);
        sum += elements(&place);
    }
    return sum;
}

/* Return the elements of all matrices of earlier pseudo layers. */
static uint64_t
layers_before(const struct rnn *rnn, int pseudo_layer)
{
    uint64_t sum = 0;
    for (int i = 0; i < pseudo_layer; i++)
        sum += matrices_before(rnn, i, 2 * gate_count(rnn) + 1);
    return sum;
}

static struct place
find_matrix(const struct rnn *rnn, int pseudo_layer, int number)
{
    struct place place = matrix_size(rnn, pseudo_layer, number);
    place.begin =
        layers_before(rnn, pseudo_layer) + matrices_before(rnn, pseudo_layer, number);
    return place;
}

static struct place
find_bias(const struct rnn *rnn, int pseudo_layer, int number)
{
    struct place place = bias_size(rnn, number);
    place.begin = layers_before(rnn, rnn->layers * rnn->directions) +
                  (uint64_t)pseudo_layer * biases_before(rnn, 2 * gate_count(rnn)) +
                  biases_before(rnn, number);
    return place;
}

static size_t
element_bytes(const struct rnn *rnn)
{
    return (size_t)dnn_type_bits(rnn->type) / 8;
}

EXPORT int
cudnnGetRNNWeightSpaceSize(struct dnn_handle *handle, const struct rnn *rnn,
                           size_t *bytes)
{
    (void)handle;
    struct place end = find_bias(rnn, rnn->layers * rnn->directions, 0);
    *bytes = end.begin * element_bytes(rnn);
    return DNN_OK;
}

/* Describe a matrix or bias: as a tensor of 1 x rows x columns, and by its address. */
static void
describe(const struct rnn *rnn, const struct place *place, const char *space,
         struct dnn_tensor *shape, void **address)
{
    bool is_there = elements(place) > 0;
    if (shape) {
        *shape = (struct dnn_tensor){
            .type = rnn->type,
            .count = is_there ? 3 : 0,
            .sizes = {1, place->rows, place->columns},
            .strides = {place->rows * place->columns, place->columns, 1},
        };
    }
    if (address) {
        uintptr_t at = (uintptr_t)space + place->begin * element_bytes(rnn);
        *address = is_there ? (void *)at : NULL;
    }
}

EXPORT int
cudnnGetRNNWeightParams(struct dnn_handle *handle, const struct rnn *rnn,
                        int pseudo_layer, size_t bytes, const char *space, int number,
                        struct dnn_tensor *matrix_shape, void **matrix,
                        struct dnn_tensor *bias_shape, void **bias)
{
    (void)handle, (void)bytes;
    if (number < 0 || pseudo_layer < 0 || pseudo_layer >= rnn->layers * rnn->directions)
        return DNN_BAD_PARAM;
    struct place place = find_matrix(rnn, pseudo_layer, number);
    describe(rnn, &place, space, matrix_shape, matrix);
    place = find_bias(rnn, pseudo_layer, number);
    describe(rnn, &place, space, bias_shape, bias);
    return DNN_OK;
}

/* --- runs ----------------------------------------------------------------------------------- */

/* Return the elements that training keeps of a sequence's step, for one layer and direction. */
static uint64_t
kept_elements(const struct rnn *rnn)
{
    uint64_t hidden = (uint64_t)rnn->hidden, gates = (uint64_t)gate_count(rnn) * hidden;
    uint64_t cell = rnn->cell == CELL_LSTM  ? 2 * hidden
                    : rnn->cell == CELL_GRU ? hidden
                                            : 0;
    return gates + cell + (uint64_t)rnn->projection;
}

EXPORT int
cudnnGetRNNTempSpaceSizes(struct dnn_handle *handle, const struct rnn *rnn,
                          int is_training, const struct rnn_data *data, size_t *workspace,
                          size_t *reserve)
{
    (void)handle;
    uint64_t rows = (uint64_t)data->rows * (uint64_t)rnn->directions;
    uint64_t gates = (uint64_t)gate_count(rnn) * (uint64_t)rnn->hidden;
    uint64_t output = (uint64_t)rnn->projection, layers = (uint64_t)rnn->layers;
    uint64_t used = is_training ? 2 * gates + output : gates;
    if (workspace)
        *workspace = rows * used * element_bytes(rnn);
    if (reserve) {
        uint64_t kept = layers * kept_elements(rnn) * element_bytes(rnn);
        uint64_t masks = (layers - 1) * output;
        *reserve = is_training ? rows * (kept + masks) : 0;
    }
    return DNN_OK;
}

EXPORT int
cudnnRNNForward(struct dnn_handle *handle)
{
    standin_work(handle->stream);
    return DNN_OK;
}

EXPORT int
cudnnRNNBackwardData_v8(struct dnn_handle *handle)
{
    standin_work(handle->stream);
    return DNN_OK;
}

EXPORT int
cudnnRNNBackwardWeights_v8(struct dnn_handle *handle)
{
    standin_work(handle->stream);
    return DNN_OK;
}
