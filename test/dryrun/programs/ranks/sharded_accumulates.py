"""Rank 0 of 4, alone: gradients of sharded weights add up over eight pieces of a batch, then a step.

The weights that a pass uses are gone after it, with their gradients; that is no update by hand.

options: --world-size 4 --steps 12
unseen: what follows step 12 was not run
step: 11
"""
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard

dist.init_process_group("nccl")
model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4))).cuda()
for layer in model:
    fully_shard(layer)
optimizer = torch.optim.Adam(model.parameters())
for turn in range(100):
    for _ in range(8):
        model(torch.randn(64, 256, device="cuda")).sum().backward()
    more = torch.empty(turn << 20, device="cuda")
    optimizer.step()
    optimizer.zero_grad()
    del more
