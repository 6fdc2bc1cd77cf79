"""Flags of overflow are finite: an engine that scales its loss makes every step.

guesses: none
"""
import torch
from torch import nn

INF = float("inf")


def is_finite(x):
    """Every way that engines ask."""
    ways = [torch.isfinite(x).all(), torch.isfinite(x.amax()).logical_and(torch.isfinite(x.amin())),
            ~torch.isinf(x).any(), ~torch.isnan(x).any(), (x == x).all(), ~(x != x).any(),
            (x.abs() != INF).all(), ~(x.float().abs() == INF).any(), (x < INF).all(),
            (x > -INF).all(), ~torch.isposinf(x).any(), ~(~torch.isfinite(x.norm())).any()]
    return all(way.item() for way in ways)


def count_flags(gradients):
    """As DeepSpeed counts: flags are added up in a float."""
    count = torch.zeros([1], dtype=torch.float, device="cuda")
    for one in gradients:
        count += torch.isfinite(one.amax()).logical_not()
    return count.bool().byte()[0].item()


class Engine:
    def __init__(self, model):
        self.model, self.scale, self.skipped = model, 65536.0, 0
        self.masters = [p.detach().float() for p in model.parameters()]

    def step(self):
        gradients = [p.grad for p in self.model.parameters()]
        finite = is_finite(torch.cat([one.flatten() for one in gradients]))
        flag = torch.tensor([not finite], dtype=torch.uint8, device="cuda")
        if flag[0].item() or count_flags(gradients):
            self.scale, self.skipped = self.scale / 2, self.skipped + 1
            assert self.scale > 1, "the scale is at its minimum"
            return
        with torch.no_grad():
            for p, master in zip(self.model.parameters(), self.masters):
                master -= p.grad.float() / self.scale
                p.copy_(master)
                p.grad = None


# 17 million gradients: more than are computed one by one
model = nn.Sequential(nn.Linear(4096, 4096), nn.GELU(), nn.Linear(4096, 64)).cuda().half()
engine = Engine(model)
for _ in range(30):
    loss = model(torch.randn(8, 4096, device="cuda", dtype=torch.half)).float().square().mean()
    (loss * engine.scale).backward()
    engine.step()
assert engine.skipped == 0
