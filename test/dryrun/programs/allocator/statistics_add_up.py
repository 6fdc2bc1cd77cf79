"""Peaks, counts and summaries add up; a peak starts again where it is told to."""
import torch

MIB = 1 << 20
a = torch.empty(10 * MIB, dtype=torch.uint8, device="cuda")
b = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
del b
assert torch.cuda.max_memory_allocated() == 40 * MIB
torch.cuda.reset_peak_memory_stats()
assert torch.cuda.max_memory_allocated() == 10 * MIB
stats = torch.cuda.memory_stats()
assert stats["allocation.all.allocated"] == 2 and stats["allocation.all.freed"] == 1
assert stats["allocated_bytes.all.freed"] == 30 * MIB
torch.cuda.reset_accumulated_memory_stats()
assert torch.cuda.memory_stats()["allocation.all.allocated"] == 0
segments = torch.cuda.memory_snapshot()
assert sum(s["total_size"] for s in segments) == torch.cuda.memory_reserved()
assert sum(s["allocated_size"] for s in segments) == torch.cuda.memory_allocated()
assert "Allocated memory" in torch.cuda.memory_summary()
place = torch.cuda.caching_allocator_alloc(5 * MIB)
assert torch.cuda.memory_allocated() == 15 * MIB
torch.cuda.caching_allocator_delete(place)
assert torch.cuda.memory_allocated() == 10 * MIB
