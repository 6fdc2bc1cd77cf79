/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SYMBOL_H
#define DRYI_SYMBOL_H

/*
 * The name of a C++ frame: the kind of its code, and the operation that it names.
 *
 *     at::_ops::div_Tensor::call(at::Tensor const&, ...)             operation  div
 *     at::native::empty_cuda(...)                                    operation  empty_cuda
 *     torch::autograd::generated::DivBackward0::apply(...)           autograd   DivBackward0
 *     _object* torch::autograd::THPVariable_relu(_object*, ...)      operation  relu
 *     void mine::Model::forward(...)                                 native     mine::Model::forward
 *
 * Sources for ATen's operations: torchgen's generated Operators_*.h (at::_ops::NAME_OVERLOAD),
 * python_torch_functions_*.cpp (THPVariable_NAME). Cost: O(4096), since only the first 4096
 * bytes of a name are read.
 */

#include <stddef.h>
#include <stdint.h>

#include "explain/site/path.h"

/* How specific an operation is; higher values are preferred. */
enum dryi_operation {
    DRYI_OPERATION_NONE,
    DRYI_OPERATION_INSIDE,   /* a function of the implementation */
    DRYI_OPERATION_BINDING,  /* a method or function of PyTorch's Python API */
    DRYI_OPERATION_NAMED,    /* an operator of ATen */
    DRYI_OPERATION_WORKSPACE /* memory that a library requests for its own use */
};

struct dryi_symbol {
    enum dryi_code code;
    enum dryi_operation operation;
    uint32_t begin, length;       /* range of the name to show */
    uint32_t op_begin, op_length; /* range of the operation, without
                                     namespace and overload */
};

void dryi_symbol_read(struct dryi_symbol *symbol, const char *name, size_t length);

#endif
