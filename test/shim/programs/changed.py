# SPDX-License-Identifier: Apache-2.0
"""drystone.fit makes the placement paged, whatever the caller asks for."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import drystone.fit

drystone.fit.apply({"paged": True})

import support  # noqa: E402  (imports PyTorch)
import torch  # noqa: E402

kept = torch.empty(1 << 20, device="cuda")
assert torch.cuda.get_allocator_backend() == "drystone"
assert torch.cuda.memory_allocated() == 4 << 20
assert "paged" in drystone.fit.tell()["applied"], drystone.fit.tell()
support.passed()
