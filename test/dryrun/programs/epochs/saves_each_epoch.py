"""What follows the loop over the data came after each epoch; nothing follows the epochs."""
import io

import torch
from torch.utils.data import DataLoader, TensorDataset

model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(1000):
    for (x,) in DataLoader(TensorDataset(torch.randn(1000, 64)), batch_size=8):
        model(x.cuda()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    torch.save(model.state_dict(), io.BytesIO())
