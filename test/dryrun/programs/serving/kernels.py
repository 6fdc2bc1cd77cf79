"""Packages compile kernels while the program runs. Where CUDA's compiler is not there they do nothing, and
this is said; what has no kernels is compiled as ever. CUTLASS's language brings a compiler and a runtime.

notes: kernels that flashinfer compiles do nothing
"""
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "engine"))

if __name__ == "__main__":
    os.environ.update(CUDA_HOME="/nowhere", PATH="/nowhere")  # this machine may have a compiler
    import deep_gemm
    import torch
    import tvm_ffi.cpp
    from cutlass.base_dsl.dsl import BaseDSL
    from flashinfer.jit.core import JitSpec
    from flashinfer.jit.cubin_loader import setup_cubin_loader

    x = torch.empty(1024, device="cuda")
    assert JitSpec().build_and_load().rmsnorm(x, x, 1e-5) is None
    assert setup_cubin_loader("/nowhere/fmha.so") is None
    assert tvm_ffi.cpp.load_inline("scale", cuda_sources=["kernel"])["scale"](x) is None
    assert tvm_ffi.cpp.load_inline("add", cpp_sources=["code"]) == "compiled"
    language = BaseDSL()
    assert language._func(print, x, compile_only=True)(x) is None
    assert language._func(print, x) is None
    assert deep_gemm.fp8_gemm_nt(x, x, x) is None and deep_gemm.get_num_sms() == 132
