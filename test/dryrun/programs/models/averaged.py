"""Weights that follow slowly: one more model's memory, and no gradients for it."""
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

model = nn.Sequential(nn.Linear(256, 1024), nn.BatchNorm1d(1024), nn.ReLU(), nn.Linear(1024, 10)).cuda()
size = sum(p.numel() * 4 for p in model.parameters())
before = torch.cuda.memory_allocated()
slow = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.999))
assert size <= torch.cuda.memory_allocated() - before <= size + (1 << 14)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    model(torch.zeros(64, 256, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
    slow.update_parameters(model)
assert slow(torch.zeros(64, 256, device="cuda")).shape == (64, 10)
assert slow.module[0].weight.data_ptr() != model[0].weight.data_ptr()
assert all(p.grad is None for p in slow.parameters())
