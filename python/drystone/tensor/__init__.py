# SPDX-License-Identifier: Apache-2.0
"""Tensors on huge pages, on chosen nodes, page-locked where wanted; handed on without a copy.

    import drystone

    weights = drystone.empty((1024,) * 3, "float32", pages="2M", node=0)
    array = numpy.asarray(weights)         # the same memory, in NumPy
    tensor = torch.from_dlpack(weights)    # and in PyTorch; JAX and CuPy do likewise

Every page is there before a call returns, so a machine without enough is a refusal with a reason
and never a signal later. The library is libdrystone, found as drystone.plan finds it.
"""
from ._create import empty, from_file, zeros
from ._pinned import clear_pinned
from ._proof import Attempt, Pages, Proof
from ._tensor import Tensor

__all__ = ["Attempt", "Pages", "Proof", "Tensor", "clear_pinned", "empty", "from_file", "zeros"]
