"""Large blocks are not split above a limit: a smaller request does not get a part of one.

conf: max_split_size_mb:32
rules: torch
"""
import torch

MIB = 1 << 20
large = torch.empty(200 * MIB, dtype=torch.uint8, device="cuda")
del large
assert torch.cuda.memory_reserved() == 200 * MIB
small = torch.empty(24 * MIB, dtype=torch.uint8, device="cuda")
assert torch.cuda.memory_reserved() == 224 * MIB
again = torch.empty(190 * MIB, dtype=torch.uint8, device="cuda")
assert torch.cuda.memory_reserved() == 224 * MIB  # near enough in size to have it whole
