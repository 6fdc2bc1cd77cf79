"""Steps of lengths by chance keep the lines of the forward pass, which cost a look-up each.

peak: backward, backward of forward_stacks.py:21 weigh
"""
import linecache
import random

import torch

looks = []
look = linecache.checkcache


def count(*names):
    looks.append(names)
    return look(*names)


def weigh(x):
    y = x.exp()
    z = torch.where(y > 1, y, x)
    return (
        z * y).sum()


linecache.checkcache = count
weight = torch.nn.Parameter(torch.randn(1 << 20, device="cuda"))
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(30):
    weigh(weight[:random.randrange(1 << 19, 1 << 20)]).backward()
    optimizer.step()
    optimizer.zero_grad()
assert len(looks) < 30, f"the age of sources was asked for {len(looks)} times"
snapshot = torch.cuda.memory._snapshot()
forward = [event["forward_frames"] for trace in snapshot["device_traces"] for event in trace
           if "forward_frames" in event]
assert len({id(one) for one in forward}) < 30, "each event has a stack of its own"
