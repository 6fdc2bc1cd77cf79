# SPDX-License-Identifier: Apache-2.0
"""A training loop with streams, record_stream, empty_cache and two devices: figures of PyTorch."""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import support

support.begin()
import torch
from torch import nn

torch.cuda.memory._record_memory_history(stacks="python")
torch.empty(1, device="cuda:1")  # a device is opened by its first request
model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
side = torch.cuda.Stream()
for step in range(6):
    batch = torch.empty(256 + 64 * (step % 3), 512, device="cuda")
    with torch.cuda.stream(side):
        beside = torch.empty(1 << 20, device="cuda")
        beside.record_stream(torch.cuda.current_stream(0))
        batch.record_stream(side)
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    del batch, beside
    if step == 3:
        torch.cuda.empty_cache()
other = [torch.empty(size << 12, device="cuda:1") for size in range(1, 40)]
del other[::2]
torch.cuda.reset_peak_memory_stats(1)
torch.cuda.synchronize()
support.dump(torch)
support.passed()
