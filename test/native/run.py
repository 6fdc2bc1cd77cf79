#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""place/torch against PyTorch's own binary: the same addresses, statistics, layouts and texts.

    run.py --build FOLDER --library DRYSTONE.a [--seeds N] [--calls N] -- cc [ARG]...

Random programs (same.c) run under many options, on small and large devices, on one stream and
several, with private pools and without. Skipped where there is no wheel (wheel.py).
"""
import argparse
import concurrent.futures
import itertools
import os
import pathlib
import re
import subprocess
import sys

import wheel

SKIPPED = 77
OPTIONS = [
    "",
    "max_split_size_mb:64",
    "max_split_size_mb:200,max_non_split_rounding_mb:64",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[1:8,64:4,256:2,>:1]",
    "garbage_collection_threshold:0.6",
    "garbage_collection_threshold:0.8,max_split_size_mb:128",
    "large_segment_size_mb:64",
    "per_process_memory_fraction:0.5",
    "throw_on_cudamalloc_oom:True",
    "expandable_segments:True",
    "expandable_segments:True,garbage_collection_threshold:0.5",
    "expandable_segments:True,large_segment_size_mb:40",
    "expandable_segments:True,max_split_size_mb:100",
    "expandable_segments:True,roundup_power2_divisions:8",
    "expandable_segments:True,throw_on_cudamalloc_oom:True,per_process_memory_fraction:0.7",
]
CAPACITIES = ["4000", "1000000"]  # MiB
STREAMS = ["1", "3"]
POOLS = ["0", "3"]
DONE = re.compile(r"^(\d+) calls the same, (\d+) of them out of memory$", re.M)


REFUSED = 3  # same: PyTorch does not know these options
TEXT_SINCE = (2, 14)  # our text is the newest's


def run_one(program, words):
    """(calls, failures of them), or None and what differs is told."""
    env = os.environ | {"TORCH_CPP_LOG_LEVEL": "ERROR"}
    done = subprocess.run([program, *words], capture_output=True, text=True, env=env,
                          timeout=600, check=False)
    found = DONE.search(done.stdout)
    if done.returncode == REFUSED:
        print(f"not known to this release: {words[0]!r}: {done.stdout.splitlines()[0]}")
        return 0, 0
    if done.returncode == 0 and found:
        return int(found.group(1)), int(found.group(2))
    print(f"same {' '.join(repr(word) for word in words)}:\n{done.stdout}{done.stderr[-2000:]}")
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("cc", nargs="+")
    args = parser.parse_args()
    torch = wheel.Wheel()
    if torch.why:
        print(f"SKIPPED: {torch.why}")
        return SKIPPED
    program = args.build / "same"
    words = torch.build(args.build, args.cc)
    wheel.run(*args.cc, "-O2", "-g", "-Wall", "-Wextra", f"-I{wheel.INCLUDE}",
              wheel.HERE / "same.c", "-o", program, args.library, *words)
    seeds = [str(seed) for seed in range(1, args.seeds + 1)]
    number = tuple(int(part) for part in torch.version.split(".")[:2])
    rest = [torch.version] + ["texts"] * (number >= TEXT_SINCE)
    runs = [(conf, seed, str(args.calls), capacity, streams, pools, *rest)
            for conf, capacity, streams, pools, seed in
            itertools.product(OPTIONS, CAPACITIES, STREAMS, POOLS, seeds)]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(lambda words: run_one(program, words), runs))
    same = [result for result in results if result]
    calls, failures = (sum(column) for column in zip(*same or [(0, 0)]))
    print(f"PyTorch {torch.version}: {len(same)} of {len(runs)} programs the same, "
          f"{calls} calls, {failures} of them out of memory")
    return 0 if len(same) == len(runs) and failures > 0 else 1


sys.exit(main())
