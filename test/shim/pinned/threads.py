# SPDX-License-Identifier: Apache-2.0
"""Eight threads allocate, copy, free, clear; what a thread wrote stays until the thread frees."""
import random
import threading

from pinned_here import MIB, check, enable_pinned, pinned, pinned_clear, pinned_stats, torch

enable_pinned(block_size_mb=32, block_count=2)
device = torch.empty(MIB, dtype=torch.uint8, device="cuda")
wrong = []


def work(number):
    dice, held = random.Random(number), []
    try:
        for step in range(400):
            if len(held) < 8 and dice.random() < 0.6:
                tensor = pinned(dice.randrange(1, MIB))
                tensor.fill_(number)
                held.append(tensor)
                device[:tensor.numel()].copy_(tensor, non_blocking=True)
            elif held:
                tensor = held.pop(dice.randrange(len(held)))
                assert tensor[0] == tensor[-1] == number, "another thread wrote here"
            if step % 100 == 50:
                pinned_clear()
                pinned_stats()
                torch.cuda.host_memory_stats()
    except BaseException as error:  # a thread's own would be lost
        wrong.append(error)


threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert not wrong, wrong
torch.cuda.synchronize()
pinned_clear()
assert pinned_stats()["allocated_bytes.current"] == 0, pinned_stats()
check()
