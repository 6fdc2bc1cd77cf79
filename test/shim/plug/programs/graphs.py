# SPDX-License-Identifier: Apache-2.0
"""Graphs are captured into private pools of ours, shared, replayed and ended."""
import gc

import torch

import drystone.torch as dt

dt.enable(seam="pluggable")
fixed = torch.ones(1 << 20, device="cuda")
pool = torch.cuda.graph_pool_handle()
graphs, results = [], []
for _ in range(3):
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, pool=pool):
        results.append((fixed * 2 + 1).relu())
    graphs.append(graph)
outside = torch.empty(1 << 20, device="cuda")
addresses = {tensor.data_ptr() for tensor in [fixed, outside, *results]}
assert len(addresses) == 5, addresses
for _ in range(10):
    for graph in graphs:
        graph.replay()
torch.cuda.synchronize()

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).cuda()
graphed = torch.cuda.make_graphed_callables(model, (torch.randn(8, 64, device="cuda"),))
for _ in range(3):
    graphed(torch.randn(8, 64, device="cuda")).sum().backward()

del graphs, graph, results, graphed, model
gc.collect()
torch.cuda.empty_cache()
torch.empty(70 << 30, dtype=torch.uint8, device="cuda")  # pools of graphs gave their memory back
