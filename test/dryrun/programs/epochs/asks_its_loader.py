"""It asks its loader for each batch and knows of no end: the loop ends, not the data.

reserved: 2183135232
"""
import torch
from torch.utils.data import DataLoader, TensorDataset


class Batches:
    def __init__(self, loader):
        self.iterator, self.is_over = iter(loader), False

    def __next__(self):
        try:  # as torchdata's loader does: it passes the end on
            return next(self.iterator)
        except StopIteration:
            self.is_over = True
            raise


def step(batches):
    loss = model(next(batches)[0].cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = Batches(DataLoader(TensorDataset(torch.zeros(80_000, 256)), batch_size=8))
iteration = 0
while iteration < 10_000:
    step(batches)
    iteration += 1
print(model(torch.zeros(1 << 20, 256, device="cuda")).shape)
