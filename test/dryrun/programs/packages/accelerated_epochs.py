"""Accelerate's loaders end early, and its epochs; what follows them is too much.

needs: accelerate
card: v100-16
expect: oom
"""
import torch
from accelerate import Accelerator
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

accelerator = Accelerator(gradient_accumulation_steps=4)
model = nn.Linear(64, 64)
optimizer = torch.optim.AdamW(model.parameters())
data = DataLoader(TensorDataset(torch.randn(100000, 64)), batch_size=4)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
for _ in range(1000):
    for (x,) in data:
        with accelerator.accumulate(model):
            accelerator.backward(model(x).square().mean())
            optimizer.step()
            optimizer.zero_grad()
    torch.empty(1 << 20, device="cuda")
torch.empty(20 << 30, dtype=torch.uint8, device="cuda")
