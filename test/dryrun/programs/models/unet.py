"""A U-net: pictures down and up again, with bridges that hold the large ones for long."""
import torch
from torch import nn


def pair(given, made):
    return nn.Sequential(nn.Conv2d(given, made, 3, padding=1), nn.GroupNorm(4, made), nn.SiLU(),
                         nn.Conv2d(made, made, 3, padding=1), nn.GroupNorm(4, made), nn.SiLU())


class Model(nn.Module):
    def __init__(self, widths=(8, 16, 32)):
        super().__init__()
        self.downs = nn.ModuleList(map(pair, (3, *widths[:-1]), widths))
        self.ups = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in widths[-2::-1])
        self.joins = nn.ModuleList(pair(2 * w, w) for w in widths[-2::-1])
        self.head = nn.Conv2d(widths[0], 2, 1)

    def forward(self, x):
        bridges = []
        for down in self.downs:
            x = down(x)
            bridges.append(x)
            x = nn.functional.max_pool2d(x, 2)
        x = bridges.pop()
        for up, join in zip(self.ups, self.joins):
            x = join(torch.cat((up(x), bridges.pop()), 1))
        return self.head(x)


model = Model().cuda()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4, momentum=0.9)
for _ in range(4):
    y = model(torch.zeros(2, 3, 64, 64, device="cuda"))
    assert y.shape == (2, 2, 64, 64)
    labels = torch.zeros(2, 64, 64, dtype=torch.long, device="cuda")
    loss = nn.functional.cross_entropy(y, labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
