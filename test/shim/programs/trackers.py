# SPDX-License-Identifier: Apache-2.0
"""Histories come and go from several threads, and stacks are let go with what had them."""
import gc
import pathlib
import sys
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import support

support.begin()
import torch

failed = []


def work(number):
    try:
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            held = []
            for turn in range(400):
                held.append(torch.empty(1 + (turn * 7919 + number) % 300000, device="cuda"))
                if turn % 3:
                    held.pop(turn % len(held)).record_stream(torch.cuda.default_stream())
            stream.synchronize()
    except Exception as error:
        failed.append(error)


threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
for thread in threads:
    thread.start()
for turn in range(30):
    torch.cuda.memory._record_memory_history(context=["all", "alloc", "state", None][turn % 4],
                                             stacks="python", max_entries=100 + turn)
    torch.cuda.memory._snapshot()
    torch.cuda.memory_stats()
    if turn % 7 == 0:
        torch.cuda.memory._record_memory_history(None)
for thread in threads:
    thread.join()
assert not failed, failed
gc.collect()
torch.cuda.synchronize()
torch.cuda.empty_cache()
torch.cuda.memory._record_memory_history(None)
assert torch.cuda.memory_allocated() == 0, torch.cuda.memory_summary()
assert torch.cuda.memory_reserved() == 0, torch.cuda.memory_summary()
kept = torch.empty(1 << 20, device="cuda")  # alive when the interpreter ends
support.passed()
