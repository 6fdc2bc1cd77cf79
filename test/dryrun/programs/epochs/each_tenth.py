"""Nine steps of ten are alike; the tenth has an evaluation that is too much.

card: v100-16
expect: oom
"""
import torch

model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0
for step in range(1, 1000):
    loss = model(torch.randn(8, 256, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.detach()
    if step % 10 == 0:
        model(torch.empty(10_000_000, 256, device="cuda")).relu()
        total = 0
