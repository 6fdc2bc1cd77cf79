"""It asks its loader for each batch and begins again at the end, ten thousand times.

reserved: 2183135232
"""
import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(torch.zeros(80_000, 256)), batch_size=8)
batches = iter(loader)
for _ in range(10_000):
    try:
        batch = next(batches)
    except StopIteration:
        batches = iter(loader)
        batch = next(batches)
    loss = model(batch[0].cuda()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(model(torch.zeros(1 << 20, 256, device="cuda")).shape)
