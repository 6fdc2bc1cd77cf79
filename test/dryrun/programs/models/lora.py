"""Small matrices beside frozen ones: gradients and states of the small ones alone."""
import torch
from torch import nn

WIDTH, RANK, COUNT = 512, 4, 6


class Lora(nn.Module):
    def __init__(self, base):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.down = nn.Linear(WIDTH, RANK, bias=False)
        self.up = nn.Linear(RANK, WIDTH, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x)) * 2


def grown(adapted):
    layers = [nn.Linear(WIDTH, WIDTH) for _ in range(COUNT)]
    model = nn.Sequential(*(Lora(layer) if adapted else layer for layer in layers)).cuda()
    optimizer = torch.optim.AdamW(p for p in model.parameters() if p.requires_grad)
    before = torch.cuda.memory_allocated()
    model(torch.zeros(16, WIDTH, device="cuda")).sum().backward()
    optimizer.step()
    return torch.cuda.memory_allocated() - before


grown(False)
full, small = grown(False), grown(True)
assert full >= 3 * COUNT * WIDTH * WIDTH * 4
assert small <= full / 20, (full, small)
model = Lora(nn.Linear(WIDTH, WIDTH)).cuda()
with torch.no_grad():
    model.base.weight += model.up.weight @ model.down.weight * 2
assert model.base.weight.grad is None
