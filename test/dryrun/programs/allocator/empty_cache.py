"""The cache is given back where nothing lies, and only there.

rules: torch
"""
import torch

kept = [torch.empty(256, device="cuda") for _ in range(3)]
large = torch.empty(64 << 20, dtype=torch.uint8, device="cuda")
stats = torch.cuda.memory_stats()
assert stats["segment.small_pool.current"] == 1 and stats["segment.large_pool.current"] == 1
assert torch.cuda.memory_reserved() == (2 << 20) + (64 << 20)
free = torch.cuda.mem_get_info()[0]
del large
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() == 2 << 20
assert torch.cuda.mem_get_info()[0] == free + (64 << 20)
assert torch.cuda.memory_allocated() == 3 * 1024
assert torch.cuda.memory_stats()["num_alloc_retries"] == 0
