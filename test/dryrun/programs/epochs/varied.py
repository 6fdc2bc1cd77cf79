"""Batches have lengths by chance, so that no steps repeat: loops end, and the report says it.

options: --patience 8
unseen: its steps differ in size, and a later one may need more
"""
import random

import torch
from torch import nn

chance = random.Random(0)
model = nn.Sequential(nn.Linear(64, 256), nn.GELU(), nn.Linear(256, 64)).cuda()
optimizer, evaluations, longest = torch.optim.AdamW(model.parameters()), 0, 500
for epoch in range(1000):
    for step in range(1000000):
        length = longest if step < 2 else chance.randrange(1, longest)
        x = torch.randn(length, 64, device="cuda")
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    with torch.no_grad():
        model(torch.randn(50000, 64, device="cuda"))
    evaluations += 1
assert 0 < evaluations < 20, evaluations
assert torch.cuda.max_memory_allocated() > 50000 * 256 * 4
