"""Expandable segments: virtual memory is reserved, mapped, unmapped.

conf: expandable_segments:True
"""
import torch

kept = []
for i in range(60):
    kept.append(torch.empty((i % 7 + 1) << 20, device="cuda"))
    if i % 3 == 0:
        kept.pop(0)
kept.clear()
torch.cuda.empty_cache()
assert torch.cuda.memory_reserved() == 0
kept = torch.empty(64 << 20, device="cuda")
