"""What comes each thousandth step is not reached, and the first line says so.

unseen: each_thousandth.py:15 waits for a later turn
"""
import torch

EACH = 1000
model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(100000):
    loss = model(torch.randn(8, 256, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % EACH == EACH - 1:
        print(model(torch.randn(8, 256, device="cuda")).mean().item())
