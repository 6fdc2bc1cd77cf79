#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""place/torch against PyTorch's own binary: the same addresses, statistics, layouts and texts.

    run.py --build FOLDER --archive DRYSTONE.a --tool DRYSTONE --maker MAKE_WORKLOAD
           [--seeds N] [--calls N] -- cc [ARG]...

Random programs (same.c) run under many options, on small and large devices, on one stream and
several, with private pools and without. Then recordings and generated workloads: what `drystone
replay` says of other settings is what PyTorch does under them (recorded.c), in each of its
statistics. Skipped where there is no wheel (wheel.py).
"""
import argparse
import concurrent.futures
import itertools
import json
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
                          timeout=1800, check=False)
    found = DONE.search(done.stdout)
    if done.returncode == REFUSED:
        print(f"not known to this release: {words[0]!r}: {done.stdout.splitlines()[0]}")
        return 0, 0
    if done.returncode == 0 and found:
        return int(found.group(1)), int(found.group(2))
    print(f"same {' '.join(repr(word) for word in words)}:\n{done.stdout}{done.stderr[-2000:]}")
    return None


# --- recordings ---------------------------------------------------------------------------

TRACES = pathlib.Path(os.environ.get("DRY_TEST_TRACES", wheel.ROOT.parent / "shared/traces"))
WORKLOADS = ["train-variable", "zero3", "offload-fixed", "moe-variable", "serving"]
CONFS = ["", "expandable_segments:True", "max_split_size_mb:128",
         "roundup_power2_divisions:8", "garbage_collection_threshold:0.7",
         "expandable_segments:True,large_segment_size_mb:40"]
# What depends on the order of PyTorch's hash tables where there are several streams.
UNORDERED = re.compile(r"inactive_split.*\.(peak|allocated|freed)")


def make_traces(maker, folder):
    for name in WORKLOADS:
        path = folder / f"{name}.trace"
        subprocess.run([maker, name, path], check=True, stdout=subprocess.DEVNULL)
        yield path
    if not TRACES.is_dir():
        print(f"SKIPPED in part: no recordings in {TRACES} (DRY_TEST_TRACES)")
        return
    for path in sorted((TRACES / "pytorch").glob("*.pickle")):
        yield path


def replay(tool, path, compat, capacity):
    """None where the program did not begin on an empty device: PyTorch's would."""
    words = [word for conf in CONFS for word in ("--conf", conf)]
    words += ["--capacity", f"{capacity}MiB"]
    done = subprocess.run([tool, "replay", path, "--json", "--compat", compat, *words],
                          capture_output=True, text=True, check=False)
    result = json.loads(done.stdout) if done.stdout else None
    check = result and result["self_check"]
    if not check or check["live_before"] or check["frees_inferred"]:
        return None
    return result


def compare_recording(program, tool, path, compat):
    """How many runs were the same and how many there were; what differs is told."""
    same = count = 0
    whole = replay(tool, path, compat, CAPACITIES[1])
    if not whole:
        return same, count
    # On one that is a tenth too small, too.
    least = whole["recorded"]["live_peak_bytes"] * 9 // 10 >> 20
    for capacity in (int(CAPACITIES[1]), least):
        runs = {run["conf"]: run for run in replay(tool, path, compat, capacity)["runs"]}
        for conf in CONFS:
            done = subprocess.run([program, conf, str(capacity), path], text=True, check=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            theirs, ours = json.loads(done.stdout), runs[conf]["stats"]
            wrong = [key for key in theirs if ours[key] != theirs[key] and
                     not (path.suffix == ".trace" and UNORDERED.match(key))]
            for key in wrong[:5]:
                print(f"{path.name}, {conf!r}, {capacity} MiB: {key}: ours {ours[key]}, "
                      f"PyTorch's {theirs[key]}")
            same, count = same + (not wrong), count + 1
    return same, count


def compare_recordings(program, args, compat):
    traces = list(make_traces(args.maker, args.build))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(
            lambda path: compare_recording(program, args.tool, path, compat), traces))
    same, count = (sum(column) for column in zip(*results))
    compared = sum(result[1] > 0 for result in results)
    print(f"{same} of {count} replays of {compared} programs the same in all statistics")
    return same == count and count > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--archive", type=pathlib.Path, required=True)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--maker", required=True)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("cc", nargs="+")
    args = parser.parse_args()
    torch = wheel.Wheel()
    if torch.why:
        print(f"SKIPPED: {torch.why}")
        return SKIPPED
    words = torch.build(args.build, args.cc)
    for name in ("same", "recorded"):
        wheel.run(*args.cc, "-O2", "-g", "-Wall", "-Wextra", f"-I{wheel.INCLUDE}",
                  f"-I{wheel.ROOT / 'src'}", f"-I{wheel.ROOT / 'test'}",
                  wheel.HERE / f"{name}.c", "-o", args.build / name, args.archive, *words)
    program = args.build / "same"
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
    is_same = len(same) == len(runs) and failures > 0
    is_same = compare_recordings(args.build / "recorded", args, torch.version) and is_same
    return 0 if is_same else 1


sys.exit(main())
