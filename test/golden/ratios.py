#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hold the memory that `paged` needs against its bars: ratios.py TOOL MAKE_WORKLOAD

Replays recordings ($DRY_TEST_TRACES; skipped, and said so, where they are not there) and
generated workloads. Every figure is a ratio to the peak of what the program had asked
for and not given back, so nothing here depends on the machine. A change that makes any of
them worse than its bar fails; all figures are printed beside PyTorch's.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

CAPACITY_MAX = 1.03
RESERVED_MAX = 1.06
CAPACITY_MEAN = {"recordings": 1.005, "generated": 1.005}
STEADY_MAX = 1.01  # once the plan is made, and no call on the driver
STEADY = 3  # steps before: what is learnt from; the plan is made when the third begins
REAL = ["decomfl", "late-start", "python-stacks-only", "transformer-medium-512-train"]
OTHERS = "uniform"  # sizes that no program has; bench/run shows them
PERIODIC = ["train-fixed", "recompute-fixed", "pipeline-fixed", "zero3", "zero3-fixed",
            "offload-fixed"]

tool, maker = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
failures = []


def demand(what, figure, bar):
    if figure > bar:
        failures.append(f"{what}: {figure:.4f}, at most {bar} is demanded")


def replay(path, *arguments):
    done = subprocess.run([tool, "replay", path, "--json", *arguments], text=True,
                          stdout=subprocess.PIPE)
    if done.returncode not in (0, 1):  # 1: found something
        sys.exit(f"replay {path.name} {' '.join(arguments)}: exit {done.returncode}")
    return json.loads(done.stdout)


def measure(path):
    """The capacity ratio of paged."""
    result = replay(path, "--place", "torch:", "--place", "paged", "--find-capacity")
    live = result["recorded"]["live_peak_bytes"]
    figures = [(run["reserved_peak_bytes"] / live, run["capacity_bytes"] / live)
               for run in result["runs"]]
    print(f"{path.stem:32} torch {figures[0][0]:.4f} {figures[0][1]:.4f}   "
          f"paged {figures[1][0]:.4f} {figures[1][1]:.4f}")
    demand(f"{path.stem}: reserved", figures[1][0], RESERVED_MAX)
    demand(f"{path.stem}: smallest device", figures[1][1], CAPACITY_MAX)
    least = str(result["runs"][1]["capacity_bytes"])
    checked = replay(path, "--place", "paged", "--capacity", least, "--check-order")
    demand(f"{path.stem}: uses out of order", checked["runs"][0]["order"]["faults"], 0)
    if figures[1][1] > figures[0][1]:
        failures.append(f"{path.stem}: needs a larger device than PyTorch does")
    return figures[1][1]


def measure_group(group, paths):
    if not paths:
        return
    mean = statistics.fmean(measure(path) for path in paths)
    print(f"  {group}: smallest device {mean:.4f} in the mean")
    demand(f"{group}: smallest device in the mean", mean, CAPACITY_MEAN[group])


def measure_steady(path, steps):
    result = replay(path, "--place", "paged", "--steady-from", str(steps[STEADY]))
    live, steady = result["recorded"]["live_peak_bytes"], result["runs"][0]["steady"]
    ratio = steady["reserved_peak_bytes"] / live
    print(f"{path.stem:32} from the fourth step on: {ratio:.4f}, "
          f"{steady['driver_calls']} driver calls")
    demand(f"{path.stem}: reserved from the fourth step on", ratio, STEADY_MAX)
    demand(f"{path.stem}: driver calls from the fourth step on", steady["driver_calls"], 0)


def make(folder, name, *steps):
    path = folder / f"{name}.trace"
    begins = subprocess.run([maker, name, path, *steps], check=True, text=True,
                            stdout=subprocess.PIPE).stdout.split()
    return path, begins


def find_recordings():
    folder = os.environ.get("DRY_TEST_TRACES")
    paths = [pathlib.Path(folder) / "plain" / f"{name}.trace" for name in REAL] if folder else []
    found = [path for path in paths if path.exists()]
    if len(found) < len(REAL):
        print(f"SKIPPED: {len(REAL) - len(found)} of {len(REAL)} recordings are not in "
              "$DRY_TEST_TRACES")
    return found


with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    measure_group("recordings", find_recordings())
    names = subprocess.run([maker, "list"], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.split()
    measure_group("generated", [make(folder, name)[0] for name in names
                                if not name.startswith(OTHERS)])
    for name in PERIODIC:
        measure_steady(*make(folder, name, "8"))
for failure in failures:
    print(f"FAILED: {failure}", file=sys.stderr)
sys.exit(bool(failures))
