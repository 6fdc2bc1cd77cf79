"""A loader that needs longer for one batch than the dry run's patience: that is no waiting for ever.

options: --patience 3
"""
import time

import torch
from torch.utils.data import DataLoader


class Slow(torch.utils.data.Dataset):
    def __len__(self):
        return 16

    def __getitem__(self, index):
        time.sleep(0.8)
        return torch.randn(64)


model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in DataLoader(Slow(), batch_size=8):
    model(x.cuda()).square().mean().backward()
    optimizer.step()
