"""Two ranks with the same model: gradients in buckets, reduced while others are made.

gpus: 2
"""
import os
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel


def work(rank, meeting):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=meeting, rank=rank, world_size=2)
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4))).cuda()
    size = sum(p.numel() * 4 for p in model.parameters())
    before = torch.cuda.memory_allocated()
    model = DistributedDataParallel(model, device_ids=[rank], gradient_as_bucket_view=True)
    assert torch.cuda.memory_allocated() - before >= size  # the buckets
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(4):
        with model.no_sync():
            model(torch.zeros(8, 256, device="cuda")).sum().backward()
        model(torch.zeros(8, 256, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, ("file://" + os.path.join(folder, "meeting"),), nprocs=2)
