# SPDX-License-Identifier: Apache-2.0
"""Inside a dry run: what allocating costs, in JSON on standard output. torch_pair.py LIBRARY PAIRS

The dry run's own history would be measured, too: the program starts itself anew without it.
"""
import ctypes
import json
import os
import random
import sys
import time

KINDS = {  # name: (blocks that live, smallest and largest size as powers of two)
    "512 B": (1, 9, 9),
    "64 MiB": (1, 26, 26),
    "replaced, 512 B to 1 MiB": (1000, 9, 20),
    "replaced, 512 B to 64 MiB": (300, 9, 26),
}


def make_work(kind, pairs):
    """(slots, sizes), the same for every allocator; training repeats its sizes, and so do these."""
    count, low, high = KINDS[kind]
    chance = random.Random(1)
    few = [int(2 ** chance.uniform(low, high)) for _ in range(200)]
    return ([chance.randrange(count) for _ in range(pairs)],
            [chance.choice(few) for _ in range(pairs)])


def time_pairs(library, kind, pairs):
    slots, sizes = make_work(kind, pairs)
    function = ctypes.CDLL(library).dry_bench_pairs
    function.restype = ctypes.c_double
    return function(ctypes.c_size_t(pairs), (ctypes.c_uint * pairs)(*slots),
                    (ctypes.c_size_t * pairs)(*sizes), ctypes.c_size_t(KINDS[kind][0]))


def time_empty(torch, kind, pairs):
    """CPU nanoseconds of torch.empty(), and of the tensor that it replaces."""
    slots, sizes = make_work(kind, pairs)
    empty, device, byte = torch.empty, torch.device("cuda:0"), torch.uint8
    kept = [empty(sizes[i], dtype=byte, device=device) for i in range(KINDS[kind][0])]
    begin = time.thread_time()
    for slot, size in zip(slots, sizes):
        kept[slot] = None
        kept[slot] = empty(size, dtype=byte, device=device)
    return (time.thread_time() - begin) * 1e9 / pairs


def main():
    library, pairs = sys.argv[1], int(sys.argv[2])
    import torch
    torch.empty(1, device="cuda")
    results = {}
    for kind in KINDS:
        for name, measure in (("C++", lambda: time_pairs(library, kind, pairs)),
                              ("Python", lambda: time_empty(torch, kind, pairs // 4))):
            measure()
            results[f"{name}, {kind}"] = min(measure() for _ in range(3))
            torch.cuda.empty_cache()
    print(json.dumps(results), flush=True)


if os.environ.pop("DRYSTONE_DRY_RUN", None):
    os.execv(sys.executable, [sys.executable, *sys.argv])
main()
