# SPDX-License-Identifier: Apache-2.0
"""Exceptions in the middle of work with pinned memory: nothing is lost, the next step runs."""
import gc

from pinned_here import MIB, check, enable_pinned, pinned, pinned_clear, pinned_stats, raises, torch

enable_pinned(block_count=0)
device = torch.empty(MIB, dtype=torch.uint8, device="cuda")


def step(number):
    batch = [pinned(MIB) for _ in range(4)]
    device.copy_(batch[0], non_blocking=True)
    if number % 3 == 1:
        device.copy_(batch[1][:10], non_blocking=True)  # sizes differ: PyTorch refuses
    if number % 3 == 2:
        raise KeyError("the program's own")
    return batch


for number in range(60):
    try:
        step(number)
        assert number % 3 == 0
    except (RuntimeError, KeyError):
        assert number % 3 != 0
gc.collect()
torch.cuda.synchronize()

# Too much at once is an error of PyTorch's, and what is there can be used.
raises(torch.cuda.OutOfMemoryError, "more than 4 TiB", pinned, 1 << 45)
raises(torch.cuda.OutOfMemoryError, "no room for 2199023255552 bytes", pinned, 1 << 41)
raises(RuntimeError, "", pinned, -1)
assert pinned(MIB).is_pinned()
gc.collect()
pinned_clear()
assert pinned_stats()["allocated_bytes.current"] == 0, pinned_stats()
check()
