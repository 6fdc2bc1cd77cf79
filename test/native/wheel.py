# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own allocator for programs in C: a wheel's libc10_cuda over our CUDA runtime

The wheel is in the folder $DRY_TEST_TORCH, made by scripts/get_torch.py; of its libraries
libc10_cuda and libc10 alone are loaded. The compiler for C++ is $CXX, else c++.
"""
import os
import pathlib
import re
import shutil
import subprocess

HERE = pathlib.Path(__file__).resolve().parent
# Of the driver, what PyTorch looks up and never calls here.
REFUSED = """cuMemGetAddressRange cuMemExportToShareableHandle cuMemImportFromShareableHandle
cuMemRetainAllocationHandle cuMemGetAllocationPropertiesFromHandle cuMemsetD32Async
cuStreamWriteValue32 cuMulticastAddDevice cuMulticastBindMem cuMulticastCreate cuMulticastUnbind
cuCtxFromGreenCtx cuCtxGetCurrent cuCtxPopCurrent cuCtxPushCurrent cuCtxSetCurrent
cuGreenCtxCreate cuGreenCtxDestroy cuGreenCtxStreamCreate cuDevSmResourceSplitByCount
cuDeviceGetDevResource cuDevResourceGenerateDesc cuLogsRegisterCallback
cuLogsUnregisterCallback""".split()
ROOT = HERE.parents[1]
INCLUDE = ROOT / "include"
STANDIN = ROOT / "standin"


def run(*words):
    subprocess.run([str(word) for word in words], check=True)


class Wheel:
    """`why` says what is missing; None: nothing."""

    def __init__(self):
        folder = pathlib.Path(os.environ.get("DRY_TEST_TORCH") or "nowhere").resolve()
        self.libraries = folder / "torch/lib"
        self.includes = [folder / "torch/include", *folder.glob("nvidia/*/include")]
        self.cxx = shutil.which(os.environ.get("CXX", "c++"))
        self.why = None
        if not (self.libraries / "libc10_cuda.so").is_file():
            self.why = "no PyTorch in DRY_TEST_TORCH (scripts/get_torch.py makes a folder)"
        elif not any((path / "crt").is_dir() for path in self.includes):
            self.why = f"{folder} is without CUDA's headers (scripts/get_torch.py has them)"
        elif not self.cxx:
            self.why = "no C++ compiler"
        else:
            self.read(folder)

    def read(self, folder):
        text = (folder / "torch/version.py").read_text()
        self.version = re.search(r"__version__ = '([^']+)'", text).group(1)
        needed = subprocess.run(["readelf", "-dW", self.libraries / "libc10_cuda.so"],
                                capture_output=True, text=True, check=True).stdout
        symbols = subprocess.run(["readelf", "-W", "--dyn-syms", self.libraries / "libc10.so"],
                                 capture_output=True, text=True, check=True).stdout
        # Before 2.7, strings are those of before GCC 5.
        self.is_old = not re.search(r"_ZN3c105ErrorC.*__cxx11", symbols)
        self.runtime = re.search(r"\[(libcudart\.so\.[\d.]+)\]", needed).group(1)

    def build(self, folder, cc):
        """The words that link a program with native.h in this folder."""
        folder = folder.resolve()
        folder.mkdir(parents=True, exist_ok=True)
        script = folder / "runtime.map"
        script.write_text(f"{self.runtime} {{ global: cu*; nvml*; native_*; local: *; }};\n")
        includes = [f"-I{INCLUDE}", f"-I{HERE}", *(f"-isystem{path}" for path in self.includes)]
        shared = ["-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", *includes]
        runtime = folder / self.runtime
        # Functions that PyTorch never calls here are nowhere, and looked up when called.
        found_at = ["-Wl,--allow-shlib-undefined", "-Wl,-z,lazy", "-Wl,--disable-new-dtags",
                    f"-Wl,-rpath,{folder}:{self.libraries}"]
        run(*cc, *shared, STANDIN / "over_device/runtime.c", "-o", runtime,
            f"-Wl,-soname,{runtime.name}", f"-Wl,--version-script={script}", "-ldl",
            *(f"-Wl,--defsym={name}=native_refuse" for name in REFUSED))
        others = [folder / name for name in ("libcuda.so.1", "libnvidia-ml.so.1")]
        for other in others:
            run(*cc, "-shared", "-nostdlib", "-Wl,--no-as-needed", runtime, "-o", other,
                f"-Wl,-soname,{other.name}", f"-Wl,-rpath,{folder}")
        abi = f"-D_GLIBCXX_USE_CXX11_ABI={int(not self.is_old)}"
        run(self.cxx, "-std=c++20", abi, *shared, HERE / "native.cc", "-o", folder / "libnative.so",
            f"-L{self.libraries}", "-lc10_cuda", "-lc10", *found_at)
        return [folder / "libnative.so", runtime, "-Wl,--no-as-needed", *others, *found_at,
                "-lz", "-lzstd", "-lm", "-ldl", "-pthread"]
