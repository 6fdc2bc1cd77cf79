/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STANDIN_DNN_H
#define STANDIN_DNN_H

/*
 * cuDNN 9: handles, descriptors, plans, recurrent networks. Nothing is computed.
 *
 *     handle      a library context: the stream that its work goes to
 *     tensor      a legacy descriptor of a tensor or of a filter: type, sizes, strides
 *     part        a descriptor of the graph API; it holds attributes (dnn_backend.c)
 *     workspace   memory that an operation needs; the program asks for its size
 *
 * A workspace's true size depends on cuDNN's kernels. Every size that this library
 * returns is a MODEL, either in dnn_plan.c (convolutions, attention) or in dnn_rnn.c.
 *
 * Sources   Names, numbers and documented semantics of cuDNN's public headers.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "standin.h"

enum dnn_status { DNN_OK = 0, DNN_BAD_PARAM = 2000, DNN_NO_HOST_MEMORY = 4003 };

#define DNN_DIMENSIONS_MAX 8
#define DNN_FLOAT 0

struct dnn_handle {
    void *stream;
};

struct dnn_tensor {
    int type; /* type of elements, by cuDNN's numbers */
    int format;
    int count; /* number of dimensions */
    int sizes[DNN_DIMENSIONS_MAX], strides[DNN_DIMENSIONS_MAX];
};

/* Return the bits of an element of this type; 32 if the type is unknown. */
int dnn_type_bits(int type);

/* --- parts of the graph API ----------------------------------------------------------------- */

/* Kinds of parts that the stand-in uses. */
enum dnn_kind {
    DNN_ENGINE = 2,
    DNN_ENGINE_CONFIG = 3,
    DNN_PLAN = 5,
    DNN_CONVOLUTION_FORWARD = 10,
    DNN_CONVOLUTION_WEIGHT = 11,
    DNN_CONVOLUTION_DATA = 12,
    DNN_MATMUL = 19,
    DNN_REDUCTION = 22,
    DNN_ATTENTION_FORWARD = 41,
    DNN_ATTENTION_BACKWARD = 43,
};

/* Names of attributes that the stand-in uses. */
enum dnn_name {
    DNN_CONVOLUTION_STRIDES = 103,
    DNN_HEURISTICS_GRAPH = 201,
    DNN_HEURISTICS_RESULTS = 202,
    DNN_CONFIG_ENGINE = 300,
    DNN_CONFIG_WORKSPACE = 303,
    DNN_CONFIG_SHARED_MEMORY = 304,
    DNN_PLAN_CONFIG = 401,
    DNN_PLAN_WORKSPACE = 402,
    DNN_FORWARD_HOW = 702,
    DNN_FORWARD_FILTER = 703,
    DNN_DATA_HOW = 708,
    DNN_DATA_FILTER = 709,
    DNN_WEIGHT_HOW = 714,
    DNN_WEIGHT_FILTER = 715,
    DNN_GRAPH_OPERATIONS = 801,
    DNN_GRAPH_ENGINE_COUNT = 802,
    DNN_TENSOR_TYPE = 901,
    DNN_TENSOR_SIZES = 902,
    DNN_ENGINE_GRAPH = 1300,
    DNN_ENGINE_INDEX = 1301,
    DNN_REDUCTION_FROM = 1610,
    DNN_REDUCTION_TO = 1611,
    DNN_ATTENTION_BACKWARD_QUERY = 2851,
};

struct dnn_part;

int dnn_part_kind(const struct dnn_part *part);
/* Return part `index` of an attribute; NULL: it was never written, or has fewer parts. */
const struct dnn_part *dnn_part_child(const struct dnn_part *part, int name,
                                      int64_t index);
/* Return the numbers that an attribute holds, and their count; NULL: it was never written. */
const int64_t *dnn_part_numbers(const struct dnn_part *part, int name, int64_t *count);
/* Return the type of a tensor's elements, by cuDNN's numbers; -1: it was never written. */
int dnn_part_type(const struct dnn_part *part);

/* --- models (dnn_plan.c) -------------------------------------------------------------------- */

/* Return the workspace of an operation graph, in bytes. `graph` may be NULL. */
uint64_t dnn_graph_workspace(const struct dnn_part *graph);
/* Return the workspace of a convolution through the legacy API, with a filter like `filter`. */
uint64_t dnn_filter_workspace(const struct dnn_tensor *filter);

#endif
