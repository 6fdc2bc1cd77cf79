"""A loop that waits for a number which no kernel computes: it is ended, and its line is named.

options: --patience 2
expect: unknown
unseen: waits.py:1
"""
import torch

x = torch.ones(10, device="cuda")
while x.sum().item() == 0:
    x = x + 1
