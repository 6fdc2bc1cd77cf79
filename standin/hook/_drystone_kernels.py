# SPDX-License-Identifier: Apache-2.0
"""Kernels that are compiled while the program runs.

Where there is no compiler of CUDA's, a module of kernels is stood in for: its functions do nothing
and return None, as kernels do nothing here. They get the tensors that they write, so that what they
allocate is the caller's. Triton's kernels are compiled to the assembler's language, which decides
their shared memory. The assembler does not run: nobody reads the machine's code. CUTLASS's language
has a runtime of its own, which wants functions of the driver without names: its kernels are not
compiled.
"""
import fnmatch
import functools
import os
import shutil

CODE = b"no code"


class Kernels:
    """A module of kernels: whatever its functions are."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: None

    def __call__(self, *_, **__):
        return None

    def __getitem__(self, name):
        return getattr(self, name)


# where packages get such modules, or kernels that write to a tensor of the caller:
# {module: (class or "", pattern of functions, their parameters of sources, what they return)}
SOURCES = {"deep_gemm": [("", "*gemm_[nt]*", (), type(None))],
           "flashinfer.jit.core": [("JitSpec", "build_and_load", (), Kernels)],
           "flashinfer.jit.cubin_loader": [("", "setup_cubin_loader", (), type(None))],
           "tvm_ffi.cpp": [("", "load", ("cuda_files",), Kernels),
                           ("", "load_inline", ("cuda_sources",), Kernels)]}


@functools.cache
def has_compiler():
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH") or "/usr/local/cuda"
    return bool(shutil.which("nvcc") or os.path.exists(os.path.join(home, "bin", "nvcc")))


def stand_in(owner, name, parameters, kind, note):
    load = getattr(owner, name)

    @functools.wraps(load)
    def run(*args, **kwargs):
        is_built = getattr(args[0], "is_compiled", False) if args else False
        is_of_cuda = not parameters or any(kwargs.get(one) for one in parameters)
        if is_built or not is_of_cuda or has_compiler():
            return load(*args, **kwargs)
        package = load.__module__.partition(".")[0]
        note(f"kernels that {package} compiles do nothing: there is no nvcc")
        return kind()

    setattr(owner, name, run)


def end_assembly(compiler):
    """Give Triton a code that is none. The assembler takes seconds, and 130 MiB of the host."""
    backend = getattr(compiler, "CUDABackend", None)
    if hasattr(backend, "make_cubin"):
        backend.make_cubin = lambda *_: CODE


def end_language(module):
    """Have nothing compiled or run where functions of CUTLASS's language are."""
    def run(*_, compile_only=False, **__):
        return Kernels() if compile_only else None

    if hasattr(getattr(module, "BaseDSL", None), "_func"):
        module.BaseDSL._func = run


def find_watched(note):
    """Return {module: function(module)}."""
    def watch(owners, module):
        for place, pattern, parameters, kind in owners:
            owner = getattr(module, place) if place else module
            for name in fnmatch.filter(dir(owner), pattern):
                stand_in(owner, name, parameters, kind, note)
    return {"triton.backends.nvidia.compiler": end_assembly, "cutlass.base_dsl.dsl": end_language,
            **{name: functools.partial(watch, owners) for name, owners in SOURCES.items()}}
