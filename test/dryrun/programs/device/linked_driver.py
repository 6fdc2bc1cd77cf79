"""Libraries are there without a number: one that links with -lcuda, as old releases of Triton do, and
those that a package opens, as Transformer Engine does.
"""
import ctypes
import os
import pathlib
import subprocess
import tempfile

import torch

x = torch.empty(1 << 20, device="cuda")
with tempfile.TemporaryDirectory() as folder:
    source, library = pathlib.Path(folder, "count.c"), pathlib.Path(folder, "count.so")
    source.write_text("int cuDeviceGetCount(int *);\n"
                      "int count(void) { int n; return cuDeviceGetCount(&n) == 0 ? n : -1; }\n")
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source, "-Wl,--no-as-needed",
                    "-lcuda", f"-L{os.environ['TRITON_LIBCUDA_PATH']}"], check=True)
    assert ctypes.CDLL(str(library)).count() == 1
for name in ("libcuda.so", "libcudnn.so", "libcublas.so", "libcudart.so", "libcurand.so"):
    assert ctypes.CDLL(name)
