# SPDX-License-Identifier: Apache-2.0
"""A forked child has no pinned memory of ours, says so, and leaves the parent's alone."""
import os
import warnings

from pinned_here import MIB, check, enable_pinned, pinned, pinned_stats, raises, torch

enable_pinned(block_size_mb=16, block_count=4)
device = torch.empty(MIB, dtype=torch.uint8, device="cuda")
tensor = pinned(MIB)
tensor.fill_(7)
device.copy_(tensor, non_blocking=True)
warnings.simplefilter("ignore")
child = os.fork()
if child == 0:
    try:
        raises(RuntimeError, "forked child", pinned, MIB)
        del tensor  # the parent's
        assert torch.ones(10).sum() == 10
        os._exit(0)
    finally:
        os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the child found otherwise"
assert tensor[0] == tensor[-1] == 7 and tensor.is_pinned()
more = pinned(MIB)
assert pinned_stats()["active_requests.current"] == 2
check()
