"""Texts of lengths by chance: the same in each dry run, since no seed is set.

chance: True
reserved: 1050673152
"""
import torch

model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(12):
    rows = int(torch.randint(1 << 10, 1 << 16, ()))
    model(torch.randn(rows, 256, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
