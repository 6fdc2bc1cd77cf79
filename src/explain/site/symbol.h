/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DRYI_SYMBOL_H
#define DRYI_SYMBOL_H

/*
 * The name of a C++ frame: what kind of code it is, and which operation it names.
 *
 *     at::_ops::div_Tensor::call(at::Tensor const&, ...)             operation  div
 *     at::native::empty_cuda(...)                                    operation  empty_cuda
 *     torch::autograd::generated::DivBackward0::apply(...)           autograd   DivBackward0
 *     _object* torch::autograd::THPVariable_relu(_object*, ...)      operation  relu
 *     void mine::Model::forward(...)                                 native     mine::Model::forward
 *
 * Names of ATen's operations: torchgen's generated Operators_*.h (at::_ops::NAME_OVERLOAD),
 * python_torch_functions_*.cpp (THPVariable_NAME). O(4,096): no more of a name is looked at.
 */

#include <stddef.h>
#include <stdint.h>

#include "explain/site/path.h"

/* How much an operation says. */
enum dryi_operation {
    DRYI_OPERATION_NONE,
    DRYI_OPERATION_INSIDE,   /* a function of the implementation */
    DRYI_OPERATION_BINDING,  /* a method or function of Python */
    DRYI_OPERATION_NAMED,    /* an operator of ATen */
    DRYI_OPERATION_WORKSPACE /* memory that a library asked for on the side */
};

struct dryi_symbol {
    enum dryi_code code;
    enum dryi_operation operation;
    uint32_t begin, length;       /* in the name: what to show of it */
    uint32_t op_begin, op_length; /* the operation, without namespace and overload */
};

void dryi_symbol_read(struct dryi_symbol *symbol, const char *name, size_t length);

#endif
