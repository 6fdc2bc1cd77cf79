"""A list of losses grows by a little each step: the steps repeat, and what they leave is told.

unseen: each step leaves 512 B more
"""
import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
losses = []
for _ in range(1000000):
    loss = model(torch.randn(64, 256, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    losses.append(loss.detach())
assert len(losses) < 100
