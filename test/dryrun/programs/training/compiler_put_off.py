# SPDX-License-Identifier: Apache-2.0
"""PyTorch's compiler is loaded by programs that compile, not by every optimizer.

expect: fits
"""
import inspect
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode


class Mode(TorchDispatchMode):
    def __torch_dispatch__(self, operation, types, given=(), named=None):
        return operation(*given, **(named or {}))


model = torch.nn.Linear(64, 64).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def step():
    with Mode():
        model(torch.ones(8, 64, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


step()
if "__dynamo_disable" in inspect.getsource(sys.modules["torch._compile"]):  # PyTorch 2.3 and later
    assert "torch._dynamo" not in sys.modules
seen = []


@torch.compile(backend=lambda graph, _: seen.append(graph) or graph.forward)
def clear(x):
    optimizer.zero_grad()
    return x + 1


assert clear(torch.ones(1)).item() == 2
assert len(seen) == 1 and "torch._dynamo" in sys.modules
optimizer.state_dict()
step()
