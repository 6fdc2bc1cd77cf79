"""There is no way out of this loop but the function's end: what follows is not run.

unseen: what follows
"""
import torch

model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def train():
    for _ in range(1000000):
        loss = model(torch.randn(8, 256, device="cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train()
print("evaluated")
