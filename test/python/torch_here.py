# SPDX-License-Identifier: Apache-2.0
"""PyTorch for tests: installed, or in the folder $DRY_TEST_PYTHON; else they are skipped.

scripts/get_torch.py makes such a folder. Its CUDA libraries are empty: only what is called is
then looked up, which TORCH_USE_RTLD_GLOBAL asks for.
"""
import os
import pathlib
import sys

SKIPPED = 77

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "test/support")]
if os.environ.get("DRY_TEST_PYTHON"):
    sys.path.insert(0, os.environ["DRY_TEST_PYTHON"])
    os.environ.setdefault("TORCH_USE_RTLD_GLOBAL", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")  # threads that wait for each other spin
os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")

try:
    import torch
except (ImportError, OSError) as why:
    print(f"SKIPPED: no torch: {why}")
    sys.exit(SKIPPED)
torch.set_num_threads(1)

from said import main  # noqa: E402, F401
