"""Triton's kernels run without its assembler: that of this program fails.

needs: triton
"""
import os
import pathlib
import tempfile

import torch
import triton
import triton.language as tl


@triton.jit
def double(x, n: tl.constexpr):
    at = tl.arange(0, n)
    tl.store(x + at, 2 * tl.load(x + at))


with tempfile.TemporaryDirectory() as folder:
    assembler = pathlib.Path(folder) / "ptxas"
    assembler.write_text("#!/bin/sh\n"
                         "[ \"$*\" = --version ] && echo 'release 12.8, V12.8.93' && exit\n"
                         "exit 1\n")
    assembler.chmod(0o755)
    os.environ.update(dict.fromkeys(("TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"),
                                    str(assembler)))
    x = torch.ones(1024, device="cuda")
    double[(1,)](x, 1024)
