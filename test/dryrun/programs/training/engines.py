"""Engines that wrap an optimizer: their steps count, and a loop of them ends early.

unseen: None
"""
import torch
from torch import nn


class Inner(torch.optim.Optimizer):
    """One of a package's own, with a fused kernel of its own."""

    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                state = self.state[p]
                state.setdefault("moment", torch.zeros_like(p)).add_(p.grad)
                p.sub_(state["moment"], alpha=0.1)


class Wrapped:
    """As Megatron's: float masters of half weights, and an optimizer inside."""

    def __init__(self, model):
        self.pairs = [(p, p.detach().float()) for p in model.parameters()]
        self.inner = Inner([master for _, master in self.pairs])

    def step(self):
        for p, master in self.pairs:
            master.grad = p.grad.float()
        norm = torch.nn.utils.clip_grad_norm_([master for _, master in self.pairs], 1.0)
        if not torch.isfinite(norm):
            return False
        self.inner.step()
        for p, master in self.pairs:
            p.data.copy_(master)
            p.grad = master.grad = None
        return True


model = nn.Sequential(nn.Linear(256, 512), nn.GELU(), nn.Linear(512, 10)).cuda().bfloat16()
wrapped, turns = Wrapped(model), 0
for _ in range(1000000):
    for _ in range(4):
        x = torch.randn(32, 256, device="cuda", dtype=torch.bfloat16)
        model(x).float().square().mean().backward()
    assert wrapped.step()
    turns += 1
assert turns < 100, turns
