"""Its loop over a loader ends a function; the evaluation after the first epoch is too much.

card: v100-16
expect: oom
"""
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def train(loader):
    for x, y in loader:
        torch.nn.functional.mse_loss(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
        optimizer.zero_grad()


def evaluate(rows):
    with torch.no_grad():
        return model(torch.empty(rows, 256, device="cuda")).relu().sum().item()


data = TensorDataset(torch.randn(80000, 256), torch.randn(80000, 256))
for epoch in range(1000):
    train(DataLoader(data, batch_size=8, shuffle=True))
    evaluate(10_000_000)
