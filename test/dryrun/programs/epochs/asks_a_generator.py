"""A generator hands out what a loader has, and whoever asks it by next() knows of no end.

unseen: None
"""
import torch
from torch.utils.data import DataLoader, IterableDataset


class Endless(IterableDataset):
    def __iter__(self):
        while True:
            yield torch.zeros(64)


def iterate():
    for batch in DataLoader(Endless(), batch_size=8):
        yield batch.cuda()


model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches, turns = iterate(), 0
batch = next(batches)
while turns < 1000000:
    model(batch).square().mean().backward()
    batch = next(batches)
    optimizer.step()
    optimizer.zero_grad()
    turns += 1
assert turns < 1000
