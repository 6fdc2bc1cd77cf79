"""More than the card has: PyTorch's own error, which ends it.

card: v100-16
expect: oom
"""
import torch

kept = []
while True:
    kept.append(torch.empty(300 << 20, device="cuda"))
