# SPDX-License-Identifier: Apache-2.0
"""A process ends within a part, with tensors of it alive; graphs are captured in it.

needs: 2.8
"""
import torch

import drystone.torch as dt

part = dt.pool()
part.__enter__()
kept = torch.ones(1 << 20, device="cuda")
part.__exit__(None, None, None)
with part:
    model = torch.nn.Linear(256, 256).cuda()
    for _ in range(3):
        model(torch.randn(16, 256, device="cuda")).sum().backward()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    result = kept * 2
graph.replay()
part.__enter__()
last = torch.ones(1 << 20, device="cuda")
