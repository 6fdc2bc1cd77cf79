"""Layers cut across two ranks, by columns and then by rows, along a mesh.

gpus: 2
"""
import os
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (ColwiseParallel, RowwiseParallel,
                                               parallelize_module)


def work(rank, meeting):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=meeting, rank=rank, world_size=2)
    mesh = init_device_mesh("cuda", (2,), mesh_dim_names=("across",))
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.GELU(),
                                torch.nn.Linear(1024, 256)).cuda()
    parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    assert model[0].weight.to_local().shape == (512, 256)
    assert model[2].weight.to_local().shape == (256, 512)
    optimizer = torch.optim.AdamW(model.parameters(), foreach=True)
    for _ in range(2):
        y = model(torch.zeros(8, 256, device="cuda"))
        assert y.shape == (8, 256)
        y.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    whole = distribute_tensor(torch.zeros(8, 6, device="cuda"), mesh, [Shard(0)])
    assert whole.to_local().shape == (4, 6)
    assert whole.redistribute(mesh, [Shard(1)]).to_local().shape == (8, 3)
    assert whole.redistribute(mesh, [Replicate()]).to_local().shape == (8, 6)
    assert isinstance(whole @ whole.t(), DTensor) and whole.full_tensor().shape == (8, 6)
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, ("file://" + os.path.join(folder, "meeting"),), nprocs=2)
