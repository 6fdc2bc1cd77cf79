"""Weights of engines lie in one flat buffer, with masters in an optimizer: a module owns its part.

card: rtx3060-12
expect: oom
owners: 0 4194304 0 0 0, 1 8388608 0 0 0, (no module) 25165824 25165824 50331648 0
"""
import torch
from torch import nn

net = nn.Sequential(nn.Linear(1024, 2048, bias=False), nn.Linear(2048, 2048, bias=False))
net.cuda().half()
weights = list(net.parameters())
flat = torch.nn.utils.parameters_to_vector(weights).detach()
torch.nn.utils.vector_to_parameters(flat, weights)  # views of it
master = flat.float().requires_grad_()
optimizer = torch.optim.Adam([master])
for _ in range(2):
    net(torch.randn(16, 1024, device="cuda", dtype=torch.half)).mean().backward()
    master.grad = torch.nn.utils.parameters_to_vector([one.grad for one in weights]).float()
    net.zero_grad()
    optimizer.step()
    flat.copy_(master.detach())
torch.empty(1 << 33, device="cuda")
