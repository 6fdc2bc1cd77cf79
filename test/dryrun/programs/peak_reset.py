"""It resets the peaks after its largest need; the headline has them anyway.

reserved: 1073741824
"""
import torch

large = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
del large
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
small = torch.empty(1 << 20, device="cuda")
assert torch.cuda.max_memory_reserved() < 100 << 20
