"""Experts on two ranks: tokens go to where their expert is, and come back.

gpus: 2
"""
import os
import tempfile

import torch
import torch.distributed as dist


def work(rank, meeting):
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=meeting, rank=rank, world_size=2)
    device = torch.device("cuda", rank)
    experts = torch.nn.ModuleList(torch.nn.Linear(64, 64) for _ in range(2)).to(device)
    router = torch.nn.Linear(64, 4).to(device)
    optimizer = torch.optim.AdamW([*experts.parameters(), *router.parameters()])
    for _ in range(2):
        x = torch.zeros(32, 64, device=device)
        weights, chosen = router(x).softmax(1).max(1)
        order = chosen.argsort()
        sent = torch.tensor([20, 12]) if rank == 0 else torch.tensor([12, 20])
        sent = sent.to(device)
        got = torch.empty_like(sent)
        dist.all_to_all_single(got, sent)
        gives, takes = sent.tolist(), got.tolist()
        assert sum(gives) == 32
        there = torch.empty(sum(takes), 64, device=device)
        dist.all_to_all_single(there, x[order], takes, gives)
        made = torch.cat([expert(part) for expert, part in zip(experts, there.chunk(2))])
        back = torch.empty(32, 64, device=device)
        dist.all_to_all_single(back, made.detach(), gives, takes)
        (made.sum() + (back[order.argsort()] * weights[:, None]).sum()).backward()
        optimizer.step()
        optimizer.zero_grad()
    dist.destroy_process_group()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        torch.multiprocessing.spawn(work, ("file://" + os.path.join(folder, "meeting"),), nprocs=2)
