"""Two ranks whose loops end at the same step, and both are there for what follows.

gpus: 2
"""
import os
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def work(rank, meeting):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=meeting, rank=rank, world_size=2)
    model = DistributedDataParallel(torch.nn.Linear(256, 256).cuda(), device_ids=[rank])
    optimizer = torch.optim.AdamW(model.parameters())
    data = TensorDataset(torch.randn(20000, 256))
    epochs = 0
    for epoch in range(1000):
        sampler = DistributedSampler(data)
        for (x,) in DataLoader(data, batch_size=4, sampler=sampler):
            model(x.cuda()).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
        losses = [torch.empty(64, device="cuda") for _ in range(2)]
        dist.all_gather(losses, torch.zeros(64, device="cuda"))
        epochs += 1
    assert epochs == 2
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, ("file://" + os.path.join(folder, "meeting"),), nprocs=2)
