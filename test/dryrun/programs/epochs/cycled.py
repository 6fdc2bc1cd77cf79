"""A loader that begins anew for ever; a count of steps ends the loop, and an evaluation follows.

card: v100-16
expect: oom
"""
import torch
from torch.utils.data import DataLoader, TensorDataset


def cycle(loader):
    while True:
        yield from loader


model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.AdamW(model.parameters())
batches = cycle(DataLoader(TensorDataset(torch.randn(1000, 64)), batch_size=8))
for step in range(100000):
    (x,) = next(batches)
    model(x.cuda()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
torch.empty(20 << 30, dtype=torch.uint8, device="cuda")
