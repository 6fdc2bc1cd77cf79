"""Epochs over a slow loader with no way out of their loop: a few are enough.

options: --patience 4
"""
import time

import torch
from torch.utils.data import DataLoader


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 800

    def __getitem__(self, index):
        time.sleep(0.05)
        return torch.randn(64)


model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(100):
    assert epoch < 7, "it takes too long"
    for x in DataLoader(Slow(), batch_size=8):
        model(x.cuda()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
