# SPDX-License-Identifier: Apache-2.0
"""What programs/serving/kernels has in the place of TVM's interface."""


def load_inline(name, *, cpp_sources=None, cuda_sources=None):
    if cuda_sources:
        raise RuntimeError(f"{name}: nvcc: not found")
    return "compiled"
