"""A program that lets itself have half of a card, and runs out of that half.

expect: oom
"""
import torch

torch.cuda.set_per_process_memory_fraction(0.5)
kept = [torch.empty(30 << 30, dtype=torch.uint8, device="cuda")]
try:
    kept.append(torch.empty(20 << 30, dtype=torch.uint8, device="cuda"))
    raise AssertionError("more than the half that was allowed")
except torch.OutOfMemoryError:
    pass
free, total = torch.cuda.mem_get_info()
assert free > total // 2
torch.cuda.set_per_process_memory_fraction(1.0)
kept.append(torch.empty(20 << 30, dtype=torch.uint8, device="cuda"))
