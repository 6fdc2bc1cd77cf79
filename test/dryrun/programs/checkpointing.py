"""Activations that are made again in the backward pass."""
import torch
from torch.utils.checkpoint import checkpoint

layers = torch.nn.ModuleList(torch.nn.Linear(1024, 1024) for _ in range(8)).cuda()
optimizer = torch.optim.AdamW(layers.parameters())
for _ in range(6):
    x = torch.randn(512, 1024, device="cuda", requires_grad=True)
    for layer in layers:
        x = checkpoint(lambda y, l=layer: torch.relu(l(y)), x, use_reentrant=False)
    x.sum().backward()
    optimizer.step()
    optimizer.zero_grad()
