"""The first way of sharding, which keeps a flat tensor for each wrapped part.

gpus: 2
"""
import os
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.distributed.fsdp.wrap import ModuleWrapPolicy


def work(rank, meeting):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=meeting, rank=rank, world_size=2)
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(4)))
    model = FullyShardedDataParallel(model, device_id=rank, use_orig_params=True,
                                     auto_wrap_policy=ModuleWrapPolicy({torch.nn.Linear}))
    half = 4 * 512 * 513 * 4 // 2
    assert half <= torch.cuda.memory_allocated() < half + (1 << 16)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(2):
        model(torch.zeros(8, 512, device="cuda")).sum().backward()
        model.clip_grad_norm_(1.0)
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, ("file://" + os.path.join(folder, "meeting"),), nprocs=2)
