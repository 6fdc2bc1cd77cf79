# SPDX-License-Identifier: Apache-2.0
"""Training for long: steps with NCCL and a graph, evaluation, checkpoints. Memory comes to rest.

$TEST_STEPS steps, 120 unless it says otherwise. In the last fifth nothing grows, and no page moves.
"""
import io
import os
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "gpu"))
import support

support.begin()
import torch
import torch.distributed as dist

import train

STEPS = int(os.environ.get("TEST_STEPS", "120"))
EVALUATE, SAVE = 30, 60

train.LENGTH = 128
dist.init_process_group("nccl", init_method=f"file://{tempfile.mkdtemp()}/store", rank=0,
                        world_size=1)
half = dist.new_group([0])
model = train.Language(4096, 4, 256, heads=4, groups=4, hidden=1024).cuda()
optimizer = torch.optim.AdamW(model.parameters())

graph, ahead = torch.cuda.CUDAGraph(), torch.zeros(64, 1024, device="cuda")
with torch.cuda.graph(graph):
    behind = (ahead @ ahead.T).relu().sum()


def batch(count):
    return torch.randint(4096, (count, train.LENGTH)).cuda()


def step():
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(batch(8))
    optimizer.zero_grad()
    loss.backward()
    for number, weight in enumerate(model.parameters()):
        dist.all_reduce(weight.grad, group=half if number % 2 else None)
    optimizer.step()
    graph.replay()


def evaluate():
    with torch.no_grad():
        return sum(model(batch(24)).item() for _ in range(3))


def figures():
    stats = torch.cuda.memory_stats()
    return stats["reserved_bytes.all.current"], stats["drystone.pages_moved"]


reserved, moved = [], []
for number in range(1, STEPS + 1):
    before = figures()[1]
    step()
    moved.append(figures()[1] - before)
    if number % EVALUATE == 0:
        evaluate()
    if number % SAVE == 0:
        torch.save(model.state_dict(), io.BytesIO())
    reserved.append(figures()[0])
early = STEPS // 5 * 4
assert max(reserved[early:]) <= max(reserved[:early]), reserved
assert sum(moved[early:]) == 0, moved
dist.destroy_process_group()
support.passed()
