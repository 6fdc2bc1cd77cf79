"""A model whose halves lie on two ranks; four small batches go through one by one.

gpus: 2
"""
import os
import tempfile

import torch
import torch.distributed as dist
from torch.distributed.pipelining import PipelineStage, Schedule1F1B


def work(rank, meeting):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=meeting, rank=rank, world_size=2)
    part = torch.nn.Sequential(torch.nn.Linear(128, 128), torch.nn.ReLU()).cuda()
    device = torch.device("cuda", rank)
    # given shapes need not be asked of the rank before
    like = torch.zeros(8, 128, device=device, requires_grad=True)
    stage = PipelineStage(part, rank, 2, device, input_args=(like,), output_args=(like,))
    schedule = Schedule1F1B(stage, n_microbatches=4,
                            loss_fn=lambda y, wanted: (y - wanted).square().mean())
    optimizer = torch.optim.SGD(part.parameters(), lr=0.1)
    for _ in range(2):
        if rank == 0:
            schedule.step(torch.zeros(32, 128, device=device))
        else:
            losses = []
            y = schedule.step(target=torch.zeros(32, 128, device=device), losses=losses)
            assert y.shape == (32, 128) and len(losses) == 4
        assert part[0].weight.grad.shape == (128, 128)
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, ("file://" + os.path.join(folder, "meeting"),), nprocs=2)
