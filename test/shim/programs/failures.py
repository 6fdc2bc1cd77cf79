# SPDX-License-Identifier: Apache-2.0
"""Out of memory: PyTorch's error with our lines, observers, the snapshot, and life after it."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import support

dt = support.begin(on_oom=str(support.OUT / "oom-{rank}.pickle"))
import torch

import drystone

seen = []
torch._C._cuda_attach_out_of_memory_observer(lambda *what: seen.append(what))
held = torch.empty(60 << 30, dtype=torch.uint8, device="cuda")
try:
    torch.empty(30 << 30, dtype=torch.uint8, device="cuda")
    raise AssertionError("it fitted")
except torch.OutOfMemoryError as error:
    text = str(error)
assert text.startswith("CUDA out of memory. Tried to allocate 30.00 GiB. GPU 0 has a total"), text
assert "Request: 30.00 GiB." in text, text
assert re.search(r"is free\. Including non-PyTorch memory, this process has [67]\d\.\d\d GiB "
                 r"memory in use\. Of the allocated", text), text
assert seen and seen[0][0] == 0 and seen[0][1] == 30 << 30, seen
kept = support.OUT / "oom-0.pickle"
assert drystone.open(kept).explain().oom, kept
assert torch.cuda.memory_stats()["num_ooms"] == 1
del held
again = torch.empty(30 << 30, dtype=torch.uint8, device="cuda")  # there is room now
try:
    torch.empty(1 << 61, dtype=torch.uint8, device="cuda")
    raise AssertionError("two exbibytes fitted")
except torch.OutOfMemoryError as error:
    assert "1EB" in str(error), error
support.begin(on_oom=support.OUT / "oom-{rank}.pickle")  # as before: nothing happens
try:
    dt.enable(support.PLACEMENT)
    raise AssertionError("it was enabled twice")
except dt.ShimError as error:
    assert "enabled already: on_oom is" in str(error), error
try:
    dt.record("{name}.pickle")
    raise AssertionError("a name that nobody knows was taken")
except drystone.Error as error:
    assert "only {rank} and {pid}" in str(error), error
support.passed()
