# SPDX-License-Identifier: Apache-2.0
"""What the tests beside it need from the machine."""
import os
import pathlib
import sys

SKIPPED = 77


def find_torch():
    """Return the folder of a PyTorch with CUDA; without one the test ends, and says so."""
    torch = pathlib.Path(os.environ.get("DRY_TEST_TORCH") or "nowhere").resolve()
    if not (torch / "torch/lib/libtorch_cuda.so").is_file():
        print("SKIPPED: no PyTorch with CUDA in DRY_TEST_TORCH (scripts/get_torch.py makes one)")
        sys.exit(SKIPPED)
    return torch
