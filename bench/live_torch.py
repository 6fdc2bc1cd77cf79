# SPDX-License-Identifier: Apache-2.0
"""Steps of a model with and without drystone.torch.publish(), in turns: live_torch.py TURNS FILE

Turns are of processor time of the whole process, its page's thread included. FILE gets
{"name": {"with": [ms a step], "without": [...]}}. Blocks are kept beside the model, for the walk.
"""
import json
import sys
import time

import drystone.torch as dt
import torch

SECONDS = 11.0  # two walks at least

torch.cuda.init()
torch.cuda.memory._record_memory_history_impl(None)  # the dry run has switched it on
model = torch.nn.Sequential(*[torch.nn.Linear(256, 256) for _ in range(24)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())


def step():
    model(torch.randn(32, 256, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


def measure():
    """Milliseconds of processor time a step."""
    steps, end = 0, time.monotonic() + SECONDS
    begun = time.process_time()
    while time.monotonic() < end:
        step()
        steps += 1
    return (time.process_time() - begun) / steps * 1e3


for _ in range(20):
    step()
told = {}
for name, count in (("300 blocks", 0), ("20,000 blocks more", 20000)):
    kept = [torch.empty(1 << (9 + at % 8), dtype=torch.uint8, device="cuda") for at in range(count)]
    found = told[name] = {"with": [], "without": []}
    for turn in range(int(sys.argv[1])):
        for way in ("with", "without") if turn % 2 else ("without", "with"):
            page = dt.publish() if way == "with" else None
            found[way].append(measure())
            if page:
                page.stop()
with open(sys.argv[2], "w") as file:
    json.dump(told, file)
