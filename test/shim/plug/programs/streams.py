# SPDX-License-Identifier: Apache-2.0
"""Streams and threads: record_stream, memory of others, errors in the middle."""
import threading

import torch

import drystone.torch as dt

dt.enable(seam="pluggable")
side = torch.cuda.Stream()
for _ in range(100):
    tensor = torch.empty(1 << 20, device="cuda")
    with torch.cuda.stream(side):
        tensor.mul_(2)
        tensor[10:].record_stream(side)
        tensor.record_stream(torch.cuda.current_stream())
    del tensor
side.synchronize()
torch.empty(0, device="cuda").record_stream(side)  # no memory at all

faults = []


def work(seed):
    try:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            kept = []
            for i in range(300):
                kept.append(torch.empty((seed * 7919 + i * 104729) % 5_000_000 + 1, device="cuda"))
                if i % 3 == 0:
                    kept.pop(i % len(kept)).record_stream(side)
                if i % 100 == 0:
                    try:
                        torch.empty(1 << 40, device="cuda")
                        faults.append("nothing has failed")
                    except torch.OutOfMemoryError:
                        torch.cuda.empty_cache()
    except Exception as why:
        faults.append(repr(why))


threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not faults, faults
