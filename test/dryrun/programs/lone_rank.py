"""Rank 17 of 256, alone: FSDP over all of them, a group of gloo's, objects.

options: --world-size 256 --rank 17
"""
import os

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

dist.init_process_group()
world = dist.get_world_size()
assert (dist.get_rank(), world) == (17, 256)
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
store = dist.distributed_c10d._get_default_store()
assert store.check(["from_another"]) and not store.check(["exception_dump"])
dist.barrier(dist.new_group(list(range(world)), backend="gloo"))
found = [None] * world
dist.all_gather_object(found, {"rank": 17})
assert found == [{"rank": 17}] * world
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(4)]).cuda()
mesh = init_device_mesh("cuda", (world,))
for layer in model:
    fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(8):
    model(torch.randn(32, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
dist.destroy_process_group()
