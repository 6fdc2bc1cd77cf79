"""Both ways of checkpointing, and by segments: each holds less than the plain pass."""
import torch
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

COUNT = 8
blocks = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(),
                                                   torch.nn.Linear(1024, 256))
                               for _ in range(COUNT))).cuda()


def each(x, **kind):
    for block in blocks:
        x = checkpoint(block, x, **kind)
    return x


WAYS = {
    "plain": blocks,
    "new": lambda x: each(x, use_reentrant=False),
    "reentrant": lambda x: each(x, use_reentrant=True),
    "segments": lambda x: checkpoint_sequential(blocks, 2, x, use_reentrant=False),
}
held = {}
for _ in range(2):
    for name, way in WAYS.items():
        x = torch.zeros(512, 256, device="cuda", requires_grad=True)
        before = torch.cuda.memory_allocated()
        y = way(x)
        held[name] = torch.cuda.memory_allocated() - before
        y.sum().backward()
        assert x.grad.shape == x.shape
        blocks.zero_grad()
assert held["new"] == held["reentrant"] < held["plain"] / 4, held
assert held["segments"] < held["plain"], held
