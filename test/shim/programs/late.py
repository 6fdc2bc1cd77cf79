# SPDX-License-Identifier: Apache-2.0
"""The allocator is refused once memory of a GPU was used; dt.record() works without it."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import support

import torch

import drystone.torch as dt

try:
    dt.enable("other")
    raise AssertionError("an unknown placement was taken")
except dt.ShimError as error:
    assert 'not "other"' in str(error), error
dt.record(support.OUT / "plain-{pid}.pickle")
torch.empty(1, device="cuda")
try:
    dt.enable(support.PLACEMENT)
    raise AssertionError("it was enabled late")
except dt.ShimError as error:
    assert "before the first tensor" in str(error), error
assert dt.enabled() is None and torch.cuda.get_allocator_backend() == "native"
try:
    torch.empty(1 << 40, device="cuda")
except torch.OutOfMemoryError:
    pass
assert len(list(support.OUT.glob("plain-*.pickle"))) == 1
assert "torch._inductor" not in sys.modules, "a snapshot loads the compiler"
support.passed()
