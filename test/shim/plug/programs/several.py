# SPDX-License-Identifier: Apache-2.0
"""Several GPUs have a pool each. A dry run does not say that they reserve nothing.

gpus: 3
expect: what it reserves is not known
"""
import torch

import drystone.torch as dt

GIB = 1 << 30
dt.enable(seam="pluggable")
here = torch.empty(70 * GIB, dtype=torch.uint8, device="cuda:0")
there = torch.empty(70 * GIB, dtype=torch.uint8, device="cuda:2")
assert here.data_ptr() != there.data_ptr()
with torch.cuda.device(1):
    between = torch.ones(1 << 20, device="cuda")
    side = torch.cuda.Stream(1)
    between.record_stream(side)
assert between.device.index == 1
moved = between.to("cuda:2", non_blocking=True)
moved.to("cuda:0")
try:
    torch.empty(20 * GIB, dtype=torch.uint8, device="cuda:2")
    raise AssertionError("nothing has failed")
except torch.OutOfMemoryError as why:
    assert "GPU 2 has a total capacity" in str(why), why
torch.empty(70 * GIB, dtype=torch.uint8, device="cuda:1")
del there
torch.cuda.empty_cache()
torch.empty(75 * GIB, dtype=torch.uint8, device="cuda:2")
