"""It does not bear that its loop ended early: what followed is not known, what ran fits.

unseen: AssertionError at
"""
import torch

model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
steps = 0
while steps < 5000:
    loss = model(torch.randn(8, 256, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    steps += 1
assert steps == 5000
