# SPDX-License-Identifier: Apache-2.0
"""A few steps on one of two devices, on two streams, with a private pool and pinned memory."""
import os

if os.environ["TEST_WAY"] == "call":
    import drystone.torch as dt

    if os.environ["TEST_ALLOCATOR"] != "native":
        dt.enable(os.environ["TEST_ALLOCATOR"])
    page = dt.publish(interval=0.05, folder=os.environ["TEST_PAGES"], labels={"team": "vision"},
                      snapshots=2)
    assert dt.publish() is page

import here
import torch

if os.environ["TEST_WAY"] == "call":
    assert not torch.cuda.is_initialized(), "publishing has initialized CUDA"
    assert page.folder == here.PAGES and os.listdir(here.PAGES) == [page.file]

if os.environ.get("TEST_HISTORY") == "none":
    here.switch_history_off(torch)
else:
    torch.cuda.memory._record_memory_history(stacks="python")
model = torch.nn.Sequential(torch.nn.Linear(3000, 3000), torch.nn.ReLU(),
                            torch.nn.Linear(3000, 10)).to("cuda:1")
optimizer = torch.optim.AdamW(model.parameters())


def train(steps):
    for step in range(steps):
        model(torch.randn(64 + 300 * step, 3000, device="cuda:1")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


def fill():
    return [torch.empty(size << 20, dtype=torch.uint8, device="cuda:1")
            for size in (3, 25, 7, 41, 1, 9, 30, 30, 30)]


train(3)
held = fill()
pool, stream = torch.cuda.MemPool(), torch.cuda.Stream("cuda:1")
with torch.cuda.device(1), torch.cuda.use_mem_pool(pool):
    own = [torch.empty(5 << 20, dtype=torch.uint8, device="cuda:1") for _ in range(4)]
del own[1], held[1::2]
with torch.cuda.stream(stream):
    beside = [torch.empty(11 << 20, dtype=torch.uint8, device="cuda:1") for _ in range(3)]
del beside[1]
pinned = [torch.empty(3 << 20, dtype=torch.uint8).pin_memory() for _ in range(3)]
del pinned[1]
torch.cuda.synchronize()
here.stop("trained", here.facts(torch, 1))
if os.environ["TEST_WAY"] == "call":
    page.stop()
    page.stop()
    assert page.file is None and os.listdir(here.PAGES) == []
    again = dt.publish(folder=here.PAGES)
    assert again is not page and os.listdir(here.PAGES) == [again.file]
