# SPDX-License-Identifier: Apache-2.0
"""The helpers of the folder above, and this one's models."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import torch_here  # noqa: F401  (skips where there is no torch)
