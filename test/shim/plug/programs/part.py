# SPDX-License-Identifier: Apache-2.0
"""A part of a program has Drystone's memory, and PyTorch's statistics.

gpus: 2
needs: 2.8
"""
import gc
import threading

import torch

import drystone.torch as dt

MIB = 1 << 20


def make(mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def segments():
    return {s["address"]: s for s in torch.cuda.memory_snapshot() if s["segment_pool_id"] != (0, 0)}


before = make(10)
free = torch.cuda.mem_get_info()[0]
part = dt.pool()
assert dt.enabled() is None and dt.enabled_seam() is None
with part:
    first = make(100)
assert torch.cuda.memory_allocated() == 110 * MIB
assert first.data_ptr() in segments() and before.data_ptr() not in segments()
after = make(10)
assert after.data_ptr() not in segments()

address = first.data_ptr()
del first
with part:  # again: memory of before serves
    again = make(90)
assert again.data_ptr() == address

other = dt.pool()
with part, other, part:  # nested, also in itself
    nested = make(50)
    raised = None
    try:
        make(1 << 30)
    except torch.OutOfMemoryError as why:
        raised = str(why)
assert raised and raised.startswith("CUDA out of memory. Tried to allocate"), raised
outside = make(1)
assert not any(a <= outside.data_ptr() < a + s["total_size"] for a, s in segments().items())

threads_have = []


def work():
    with part:
        threads_have.append(make(30))


threads = [threading.Thread(target=work) for _ in range(4)]
with part:
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
assert len(threads_have) == 4
try:
    with part:
        raise KeyError("the part's own")
except KeyError:
    pass
with torch.cuda.device(1), part:
    second = make(20)
assert second.device.index == 1 and torch.cuda.memory_allocated(1) == 20 * MIB

try:
    dt.pool("torch")
    raise AssertionError("two placements at once")
except dt.ShimError as why:
    assert "another placement" in str(why), why

del part, other, threads_have, again, second, nested, outside
gc.collect()
torch.cuda.empty_cache()
assert not segments(), segments()
assert torch.cuda.mem_get_info()[0] >= free - 10 * MIB - 2 * MIB
