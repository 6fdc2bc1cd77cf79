"""The report tells which module owns what at the peak: an OOM after a step, with states.

card: rtx3060-12
expect: oom
owners: layers.1.up 4194304 4194304 8388608 16777216, layers.1 0 0 0 16777216
"""
import torch
from torch import nn


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(1024, 1024, bias=False)

    def forward(self, x):
        return self.up(x).square()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.buffers = []  # some frameworks use the name for lists of their own
        self.layers = nn.ModuleList(Block() for _ in range(3))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


net = Net().cuda()
optimizer = torch.optim.Adam(net.parameters())
for _ in range(2):
    net(torch.randn(4096, 1024, device="cuda")).mean().backward()
    optimizer.step()
y = net(torch.randn(4096, 1024, device="cuda"))
torch.empty(1 << 33, device="cuda")
