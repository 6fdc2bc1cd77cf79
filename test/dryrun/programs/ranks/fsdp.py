"""Two ranks that each hold half of all weights; layers are gathered as they are needed.

gpus: 2
"""
import os
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard


def work(rank, meeting):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=meeting, rank=rank, world_size=2)
    model = torch.nn.Sequential(*(torch.nn.Linear(512, 512, bias=False) for _ in range(4)))
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    model.cuda()
    half = 4 * 512 * 512 * 4 // 2
    assert half <= torch.cuda.memory_allocated() < half + (1 << 16)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(4):
        y = model(torch.zeros(8, 512, device="cuda"))
        assert y.dtype == torch.bfloat16
        y.sum().backward()
        assert model[0].weight.to_local().shape == model[0].weight.grad.to_local().shape == (256, 512)
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, ("file://" + os.path.join(folder, "meeting"),), nprocs=2)
