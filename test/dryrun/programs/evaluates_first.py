"""It evaluates for longer than the dry run's patience before it trains, and training is too much.

options: --patience 3
card: v100-16
expect: oom
"""
import time

import torch

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.AdamW(model.parameters())
with torch.no_grad():
    for _ in range(40):
        model(torch.zeros(8, 64, device="cuda"))
        time.sleep(0.2)
model(torch.zeros(80_000_000, 64, device="cuda")).mean().backward()
optimizer.step()
