# SPDX-License-Identifier: Apache-2.0
"""Figures of a device before its first use, and after its last: figures of PyTorch. Each call of
empty_cache() counts as one wait of every device, with any placement."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import support

support.begin()
import torch

DEVICES = ("cuda:0", "cuda:1")


def count(device):
    return torch.cuda.memory_stats(device)["num_sync_all_streams"]


def empty_cache():
    before = [count(device) for device in DEVICES]
    torch.cuda.empty_cache()
    assert [count(device) for device in DEVICES] == [waits + 1 for waits in before], before


def look(device):
    """What is asked of a device at any time; a peak that begins again is what there is."""
    torch.cuda.reset_peak_memory_stats(device)
    assert torch.cuda.max_memory_allocated(device) == torch.cuda.memory_allocated(device)
    assert torch.cuda.max_memory_reserved(device) == torch.cuda.memory_reserved(device)
    assert torch.cuda.get_per_process_memory_fraction(device) == 1.0


assert torch.cuda.memory_stats(0) == {} and torch.cuda.memory_allocated(0) == 0
try:
    torch.cuda.reset_peak_memory_stats(0)
    raise AssertionError("a device was there before torch.cuda.init()")
except RuntimeError:
    pass
torch.cuda.init()
torch.cuda.memory._record_memory_history(stacks="python")
for _ in range(3):
    for device in DEVICES:
        look(device)
    empty_cache()
for used in DEVICES:  # the other one has not been used before; both are empty in the end
    kept = [torch.empty(size << 18, device=used) for size in (1, 3, 9, 45)]
    empty_cache()
    del kept[::2]
    empty_cache()
    del kept
    for device in DEVICES:
        look(device)
    empty_cache()
    empty_cache()
torch.cuda.reset_accumulated_memory_stats(1)
assert count(0) > 0 == count(1)
empty_cache()
support.dump(torch)
support.passed()
