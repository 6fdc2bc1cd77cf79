"""SGD by hand has no optimizer: each backward pass after an update ends a step.

unseen: None
"""
import torch
from torch import nn
from torch.nn import functional as F

model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
weight = torch.randn(256, 10, device="cuda", requires_grad=True)


def update_in_place():
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.1 * p.grad
    model.zero_grad()


def update_data():
    for p in model.parameters():
        p.data.add_(p.grad.data, alpha=-0.1)
        p.grad.zero_()


turns = 0
for update in (update_in_place, update_data):
    for _ in range(1000000):
        for _ in range(2):  # gradients of two parts add up: no step ends between them
            x = torch.randn(64, 256, device="cuda")
            F.cross_entropy(model(x), torch.arange(64, device="cuda") % 10).backward()
        update()
        turns += 1
for _ in range(1000000):
    (torch.randn(64, 256, device="cuda") @ weight).square().mean().backward()
    weight = (weight - 0.1 * weight.grad).detach().requires_grad_()
    turns += 1
assert turns < 200, turns
torch.empty(1 << 30, device="cuda")  # what follows is seen
