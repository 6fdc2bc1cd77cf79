"""Stops where the steps of the second epoch repeat, as it is asked.

options: --until epoch
unseen: what follows the second epoch was not run
"""
import torch

model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(10):
    for _ in range(100000):
        loss = model(torch.randn(8, 256, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert epoch == 0
