# SPDX-License-Identifier: Apache-2.0
"""Graphs, MemPool and a memory fraction: figures of PyTorch."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import support

support.begin()
import torch

torch.cuda.memory._record_memory_history(stacks="python")
torch.empty(1, device="cuda:1")  # a device is opened by its first request
x = torch.empty(1 << 16, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph):
    y = (x * 2 + 1).relu()
again = torch.cuda.CUDAGraph()
with torch.cuda.graph(again, pool=graph.pool()):
    z = y * 3
graph.replay()
again.replay()
pool = torch.cuda.MemPool()
with torch.cuda.use_mem_pool(pool):
    inside = [torch.empty(size << 18, device="cuda") for size in range(1, 8)]
del inside[::2]
outside = torch.empty(1 << 22, device="cuda")
assert pool.use_count() == 1
del inside, y, z, graph, again
torch.cuda.set_per_process_memory_fraction(0.5)
try:
    torch.empty(50 << 30, dtype=torch.uint8, device="cuda")
    raise AssertionError("a request beyond the fraction was served")
except torch.OutOfMemoryError as error:
    assert "CUDA out of memory. Tried to allocate 50.00 GiB" in str(error), error
support.dump(torch)
support.passed()
