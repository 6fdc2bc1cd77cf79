# SPDX-License-Identifier: Apache-2.0
"""Process groups of NCCL work, and end with their process, used or not.

gpus: 2
"""
import os
import tempfile

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

import drystone.torch as dt


def train():
    model = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(4))).cuda()
    model = DistributedDataParallel(model, device_ids=[torch.cuda.current_device()])
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(3):
        model(torch.zeros(8, 256, device="cuda")).sum().backward()
        optimizer.step()


def has_failed(backend):
    try:
        dist.new_group(backend=backend)
    except RuntimeError as why:
        assert "snapshots" in str(why), why
        return True
    return False


def work(rank, folder):
    dt.enable("torch", seam="pluggable")
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    train()
    everywhere = torch.empty(2 << 20, device="cuda")
    dist.all_gather_into_tensor(everywhere, torch.empty(1 << 20, device="cuda"))
    unused = dist.new_group()
    if "nccl2" in dist.Backend.backend_list:
        assert has_failed("nccl2") and has_failed("nccl-lazy")
    dist.destroy_process_group()
    del unused
    open(os.path.join(folder, f"ended-{rank}"), "w", encoding="utf-8").close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as meeting_folder:
        torch.multiprocessing.spawn(work, (meeting_folder,), nprocs=2)
        assert len([name for name in os.listdir(meeting_folder) if name.startswith("ended")]) == 2
