#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The table of memory_summary() against PyTorch's own: summary.py PRINT_SUMMARY

PyTorch's function is taken from torch/cuda/memory.py, of an installed torch or below
$DRY_TEST_TORCH (a folder that holds `torch/`, such as an unpacked wheel), and run on made-up
statistics. No other part of PyTorch is needed. Skipped where there is no such file.
"""
import ast
import os
import pathlib
import random
import subprocess
import sys

STATS = ("allocation segment active inactive_split allocated_bytes reserved_bytes "
         "active_bytes inactive_split_bytes requested_bytes").split()
FIELDS = ("current", "peak", "allocated", "freed")
NUMBERS = ("max_split_size num_alloc_retries num_device_alloc num_device_free "
           "num_oom_rejections num_ooms num_sync_all_streams").split()


def find_source():
    for folder in [os.environ.get("DRY_TEST_TORCH")] + sys.path:
        if folder:
            path = pathlib.Path(folder) / "torch" / "cuda" / "memory.py"
            if path.is_file():
                return path
    return None


def load(path):
    """memory_summary alone, on statistics that are handed to it."""
    tree = ast.parse(path.read_text())
    function = next(node for node in tree.body
                    if isinstance(node, ast.FunctionDef) and node.name == "memory_summary")
    function.returns = None
    for argument in function.args.args:
        argument.annotation = None
    names = {"_get_device_index": lambda device, optional: device,
             "memory_stats": lambda device: names["stats"]}
    module = ast.fix_missing_locations(ast.Module([function], []))
    exec(compile(module, str(path), "exec"), names)

    def summary(stats, device, abbreviated):
        names["stats"] = stats
        return names["memory_summary"](device, abbreviated)

    return summary


def numbers(rng):
    """Sizes of all magnitudes, and those at which a unit changes."""
    while True:
        unit = rng.choice((1024, 1000))
        edge = (768 if unit == 1024 else 750) * unit ** rng.randrange(1, 6)
        yield rng.choice((0, rng.randrange(1 << rng.randrange(1, 62)),
                          min(edge + rng.randrange(-2, 3), 2**63 - 1)))


def make_stats(rng):
    values = numbers(rng)
    stats = {f"{name}.{pool}.{field}": next(values)
             for name in STATS for pool in ("all", "large_pool", "small_pool")
             for field in FIELDS}
    stats.update({f"{name}.{field}": next(values) for field in FIELDS
                  for name in ("oversize_allocations", "oversize_segments")})
    stats.update({name: next(values) for name in NUMBERS})
    return stats


def main():
    path = find_source()
    if path is None:
        print("SKIPPED: no torch/cuda/memory.py; install torch or set DRY_TEST_TORCH")
        sys.exit(77)
    summary = load(path)
    rng = random.Random(7)
    for round_number in range(200):
        stats = make_stats(rng)
        device, abbreviated = rng.randrange(0, 1000), rng.random() < 0.3
        text = "".join(f"{key} {value}\n" for key, value in stats.items())
        ours = subprocess.run([sys.argv[1], str(device), str(int(abbreviated))],
                              input=text, capture_output=True, text=True, check=True)
        theirs = summary(stats, device, abbreviated)
        if ours.stdout != theirs:
            sys.exit(f"round {round_number}:\n{ours.stdout}\nis not\n{theirs}")
    print("200 tables are equal")


main()
