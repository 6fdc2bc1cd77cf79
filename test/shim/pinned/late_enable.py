# SPDX-License-Identifier: Apache-2.0
"""Enabled when PyTorch's own blocks are out: those stay PyTorch's, with their events."""
import gc

from pinned_here import (MIB, address_of_freed, check, comes_again, enable_pinned, pinned,
                         pinned_clear, pinned_stats, raises, torch, with_standin)
from drystone._errors import Error

with_standin("late=1")
target = torch.empty(MIB, dtype=torch.uint8, device="cuda")
kept, freed = pinned(MIB), pinned(MIB)
before = torch.cuda.host_memory_stats()["num_host_alloc"]
target.copy_(kept, non_blocking=True)
enable_pinned(block_count=0)
assert enable_pinned(block_count=0) == 0  # again: nothing happens
raises(Error, "pinned memory is enabled already: block_count is 0, and None is asked for",
       enable_pinned)
assert torch.cuda.host_memory_stats()["num_host_alloc"] == before == 2

# A use of the old block is the old allocator's to know: its memory stays pinned until then.
target.copy_(freed, non_blocking=True)
target.copy_(kept, non_blocking=True)
address = freed.data_ptr()
del freed
gc.collect()
pinned_clear()
assert torch.cuda.host_memory_stats()["num_host_free"] == 0, "freed while a copy may use it"
torch.cuda.synchronize()
pinned_clear()
assert torch.cuda.host_memory_stats()["num_host_free"] == 1
assert kept.is_pinned()

new = pinned(MIB)
assert pinned_stats()["active_requests.current"] == 1
ours = address_of_freed(lambda t: target.copy_(t, non_blocking=True))
assert not comes_again(ours)
torch.cuda.synchronize()
assert comes_again(ours)
del kept, new
torch.cuda.synchronize()
pinned_clear()
stats = torch.cuda.host_memory_stats()
assert stats["num_host_free"] == stats["num_host_alloc"], stats
check()
