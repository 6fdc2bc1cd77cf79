"""Gradients of four small batches summed: the weights' memory once, a quarter of the rest."""
import torch
from torch import nn

model = nn.Sequential(*(nn.Sequential(nn.Linear(256, 256), nn.GELU()) for _ in range(6))).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def peak_of(parts):
    torch.cuda.reset_peak_memory_stats()
    for _ in range(parts):
        x = torch.zeros(4096 // parts, 256, device="cuda")
        (model(x).sum() / parts).backward()
        del x
    optimizer.step()
    optimizer.zero_grad()
    return torch.cuda.max_memory_allocated()


peak_of(1)
whole, parts = peak_of(1), peak_of(4)
assert whole - parts > 30 << 20, (whole, parts)
