# SPDX-License-Identifier: Apache-2.0
"""A training loop's pinned memory through PyTorch, for bench/torch_pinned.py: prints one JSON line.

    torch_pinned_loop.py ROW FIRST TAIL OUT

Batches of a DataLoader that pins, parameters on their way a layer at a time, the optimizer's state,
checkpoints: the sizes of a layer like DeepSeek-V3's, at 1/8. The stand-in's pin=1 locks what is
registered, so that pinning costs what it costs. Kernels do nothing.

Some hypervisors take free huge pages of a guest back after a second or two, and a page that is
touched again costs twenty times as much. So memory is touched just before it is measured.
"""
import json
import mmap
import os
import pathlib
import random
import sys
import time

if "pin=1" not in os.environ["DRYSTONE_STANDIN"].split(";"):
    os.environ["DRYSTONE_STANDIN"] += ";pin=1"
    os.execv(sys.executable, [sys.executable, *sys.argv])
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))
import torch  # noqa: E402
from drystone.torch import enable_pinned  # noqa: E402

SCALE = 8
TOUCHED_BYTES = 5 << 28
MATRICES = [count // SCALE for count in (
    7168 * 1536, 1536 * 24576, 7168 * 576, 512 * 32768, 16384 * 7168, 7168 * 256, 7168 * 2048,
    7168 * 2048, 2048 * 7168, 7168 * 2048, 7168 * 2048, 2048 * 7168, 7168 * 18432, 7168, 1536,
    129280 * 7168 // 16)]
LAYERS, SHARDS, PREFETCH = 2, 8, 4
BUDDY = {"block_size_mb": 128, "block_count": 7, "mode": "buddy"}
ROWS = {
    "native": None,
    "buddy, T 1 MiB": {**BUDDY, "threshold_mb": 1},
    "buddy, T 0": {**BUDDY, "threshold_mb": 0},
    "fit": {"block_count": 0, "threshold_mb": 1},
    "fit, 512 MiB ahead": {"block_size_mb": 512, "block_count": 1, "threshold_mb": 1},
}
spent = [0.0, 0.0]  # seconds in calls that allocate or free pinned memory: passed; CPU, all threads
needed = most_needed = 0  # bytes


class Batches(torch.utils.data.Dataset):
    """Tokens, masks, and images whose sides differ from batch to batch."""

    def __init__(self, count):
        dice = random.Random(1)
        self.sides = [192 + 16 * dice.randrange(5) for _ in range(count)]

    def __len__(self):
        return len(self.sides)

    def __getitem__(self, index):
        side = self.sides[index]
        return {"tokens": torch.empty(8 * 4096 // SCALE, dtype=torch.int64),
                "labels": torch.empty(8 * 4096 // SCALE, dtype=torch.int64),
                "images": torch.empty(48 * 3 // SCALE, side, side)}


def timed(function):
    def call(*words, **named):
        begin = time.perf_counter(), time.process_time()
        result = function(*words, **named)
        spent[0] += time.perf_counter() - begin[0]
        spent[1] += time.process_time() - begin[1]
        return result
    return call


def count(change):
    global needed, most_needed
    needed += change
    most_needed = max(most_needed, needed)


@timed
def allocate(size):
    return torch.empty(size, dtype=torch.uint8, pin_memory=True)


def hold(size):
    count(size)
    return allocate(size)


@timed
def empty(tensors):
    tensors.clear()


def drop(tensors):
    count(-sum(tensor.nbytes for tensor in tensors))
    empty(tensors)


def offload(target):
    """Parameters in, a layer at a time, two layers in flight."""
    ring = ([], [])
    for layer in range(LAYERS + 2):
        now = ring[layer % 2]
        drop(now)
        for i, size in enumerate(MATRICES if layer < LAYERS else ()):
            host = hold(size * (2 if layer % 3 else 4) // (1 if i % 2 == 0 else 2))
            target[:host.numel()].copy_(host, non_blocking=True)
            now.append(host)


def train(batches, kept, staged, target, step):
    batch = list(next(batches).values())
    count(sum(tensor.nbytes for tensor in batch))
    for tensor in batch:
        target[:tensor.nbytes].copy_(tensor.view(torch.uint8).flatten(), non_blocking=True)
    kept.append(batch)
    if len(kept) > PREFETCH:
        drop(kept.pop(0))
    offload(target)
    drop(staged)
    if step % 10 == 5:
        staged.extend(hold(MATRICES[i % len(MATRICES)] * 4 // SHARDS)
                      for i in range(LAYERS * len(MATRICES)))
    torch.cuda.synchronize()


def pinned_bytes():
    stats = torch.cuda.host_memory_stats()
    return stats.get("reserved_bytes.current", stats["allocated_bytes.current"])


def touch_memory():
    for _ in range(2):
        with mmap.mmap(-1, TOUCHED_BYTES, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            memory.madvise(mmap.MADV_HUGEPAGE)
            for at in range(0, TOUCHED_BYTES, 4096):
                memory[at] = 1


def main():
    row, first, tail = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    target = torch.empty(max(MATRICES) * 4, dtype=torch.uint8, device="cuda")
    touch_memory()
    if ROWS[row]:
        enable_pinned(**ROWS[row])
    torch.Tensor.pin_memory = timed(torch.Tensor.pin_memory)
    state = [hold(-(-size * 4 // SHARDS)) for size in MATRICES * LAYERS for _ in range(3)]
    batches = iter(torch.utils.data.DataLoader(Batches(first + tail), batch_size=None,
                                               pin_memory=True))
    kept, staged, marks = [], [], []
    for step in range(first + tail):
        train(batches, kept, staged, target, step)
        if step + 1 in (first, first + tail):
            marks.append(tuple(spent))
    while kept:
        drop(kept.pop())
    drop(staged)
    before = pinned_bytes()
    torch._C._host_emptyCache()
    stats = torch.cuda.host_memory_stats()
    result = {"row": row, "first_s": marks[0][0], "tail_s": marks[1][0] - marks[0][0],
              "first_cpu_s": marks[0][1], "before": before,
              "after": pinned_bytes(), "needed_peak": most_needed, "needed_after": needed,
              "pinned_peak": stats.get("reserved_bytes.peak", stats["allocated_bytes.peak"]),
              "pin_s": stats["host_alloc_time.total"] / 1e6}
    assert needed == sum(tensor.nbytes for tensor in state)
    pathlib.Path(sys.argv[4]).write_text(json.dumps(result))


main()
