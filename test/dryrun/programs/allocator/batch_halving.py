"""The batch is halved until it fits, as trainers do; each try is an error that is caught.

card: l4-24
expect: oom
"""
import gc

import torch

model = torch.nn.Sequential(*(torch.nn.Linear(4096, 4096) for _ in range(4))).cuda()


def step(batch):
    model(torch.empty(batch, 4096, device="cuda")).sum().backward()
    model.zero_grad()


batch, tries = 1 << 20, 0
while True:
    try:
        step(batch)
        break
    except torch.OutOfMemoryError:
        batch, tries = batch // 2, tries + 1
    gc.collect()
    torch.cuda.empty_cache()
assert 1 <= tries <= 4, tries
assert torch.cuda.memory_stats()["num_ooms"] == tries
