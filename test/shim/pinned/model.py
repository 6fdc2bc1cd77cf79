# SPDX-License-Identifier: Apache-2.0
"""10,000 operations at random beside a naive model: no two blocks in use overlap, none is lost."""
import random

from pinned_here import MIB, check, enable_pinned, pinned, pinned_clear, pinned_stats, torch, \
    with_standin

with_standin("late=1")
OPERATIONS = 10_000
dice = random.Random(31)
enable_pinned(block_size_mb=32, block_count=2, threshold_mb=1,
              mode=dice.choice(("fit", "buddy")))
device = torch.empty(4 * MIB, dtype=torch.uint8, device="cuda")
streams = [torch.cuda.Stream() for _ in range(3)]
held = []     # (tensor, streams that use it)
waiting = []  # (begin, end, streams whose work is not over)


def allocate():
    size = dice.choice((dice.randrange(1, 5000), dice.randrange(1, 4 * MIB)))
    tensor = pinned(size)
    begin, end = tensor.data_ptr(), tensor.data_ptr() + size
    taken = [(t.data_ptr(), t.data_ptr() + t.numel()) for t, _ in held]
    taken += [(first, last) for first, last, _ in waiting]
    for first, last in taken:
        assert end <= first or last <= begin, "two blocks overlap"
    tensor[0] = tensor[-1] = len(held) % 251
    held.append((tensor, set()))


def use():
    tensor, users = dice.choice(held)
    which = dice.randrange(len(streams))
    begin = dice.randrange(tensor.numel())
    part = tensor[begin:begin + dice.randrange(1, tensor.numel() - begin + 1)]
    with torch.cuda.stream(streams[which]):
        if dice.random() < 0.5:
            device[:part.numel()].copy_(part, non_blocking=True)
        else:
            part.copy_(device[:part.numel()], non_blocking=True)
    users.add(which)


def free():
    tensor, users = held.pop(dice.randrange(len(held)))
    if users:
        waiting.append((tensor.data_ptr(), tensor.data_ptr() + tensor.numel(), users))


def wait():
    which = dice.randrange(len(streams))
    streams[which].synchronize()
    for tensor, users in held:
        users.discard(which)
    for entry in list(waiting):
        entry[2].discard(which)
        if not entry[2]:
            waiting.remove(entry)


for step in range(OPERATIONS):
    if not held or (len(held) < 60 and dice.random() < 0.45):
        allocate()
    else:
        chosen = dice.random()
        (use if chosen < 0.4 else free if chosen < 0.9 else wait)()
    if step % 500 == 499:
        pinned_clear()
        check()
        assert pinned_stats()["requested_bytes.current"] >= sum(t.numel() for t, _ in held)
held.clear()
torch.cuda.synchronize()
for stream in streams:
    stream.synchronize()
pinned_clear()
left = pinned_stats()
assert left["active_bytes.current"] == left["allocated_bytes.current"] == 0, left
assert left["num_event_failures"] == left["lost_bytes"] == 0, left
check()
