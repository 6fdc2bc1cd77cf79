# SPDX-License-Identifier: Apache-2.0
"""What it costs to show memory in a page: `bench/run live [short]`

A program in C makes pairs of a free and an alloc in a pool. Each mode is a process of its own,
and all modes run in turns; a ratio is of two runs of the same turn, and its median is shown. `wall` is
how much longer the program takes, `cpu` the processor time of the whole process, with the thread's:

    self, to alone    the program calls dry_live_update() 1,000 times a second
    thread, to tick   dry_live_start() has a thread do so, beside one that wakes and does nothing
    tick, to idle     1,000 wakes a second, beside a thread that sleeps
    idle, to alone    what a second thread costs without any page: locks are atomic
    thread, to alone  all of these

Then PyTorch over a dry run, if it is in the folder $DRY_TEST_TORCH (scripts/get_torch.py makes one):
processor time of a step with drystone.torch.publish() at its defaults, to that without.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODES = ("alone", "self", "idle", "tick", "thread")
PAIRS = (("self", "alone"), ("thread", "tick"), ("tick", "idle"), ("idle", "alone"),
         ("thread", "alone"))


def run_turns(program, placement, live, turns, ms):
    """{mode: [{"wall_ns", "cpu_ns"} of a pair, by turn]}"""
    found = {mode: [] for mode in MODES}
    for turn in range(turns):
        for mode in MODES if turn % 2 else reversed(MODES):
            done = subprocess.run([program, mode, placement, str(live), str(ms)], check=True,
                                  capture_output=True)
            found[mode].append(json.loads(done.stdout))
    return found


def ratio_of(over, under):
    """The median of ratios by turn, and between which half of them lie."""
    ratios = sorted(a / b for a, b in zip(over, under))
    quarter = len(ratios) // 4
    return f"{statistics.median(ratios):7.3f} ({ratios[quarter]:.3f} to {ratios[-1 - quarter]:.3f})"


def print_rows(placement, live, found):
    wall, cpu = ({mode: [run[key] for run in runs] for mode, runs in found.items()}
                 for key in ("wall_ns", "cpu_ns"))
    for over, under in PAIRS:
        print(f"{placement:6}{live:7}  {over + ', to ' + under:17}"
              f"{statistics.median(wall[over]):7.1f}{ratio_of(wall[over], wall[under])}"
              f"{ratio_of(cpu[over], cpu[under])}", flush=True)


def run_torch(folder, turns):
    """What bench/live_torch.py says, over a dry run."""
    env = dict(os.environ, PYTHONPATH=f"{ROOT / 'python'}:{os.environ['DRY_TEST_TORCH']}",
               DRYSTONE_LIBRARY=str(folder / "src/libdrystone.so.0.1.0"), OMP_NUM_THREADS="1")
    env.pop("TORCH_USE_RTLD_GLOBAL", None)
    told = folder / "told.json"
    subprocess.run([folder / "tool/drystone", "dry-run", "--steps", "1000000", "-o",
                    folder / "x.pickle", "--", sys.executable, ROOT / "bench/live_torch.py",
                    str(turns), told], env=env, check=False, capture_output=True)
    return json.loads(told.read_text())


def print_torch(told):
    for name, values in told.items():
        print(f"{name:28}{statistics.median(values['with']):8.3f}"
              f"{statistics.median(values['without']):8.3f}"
              f"{ratio_of(values['with'], values['without'])}")


def run(short, machine, build):
    turns, ms = (5, 300) if short else (21, 1000)
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        build(folder, ["bench/bench_live", "tool/drystone", "src/libdrystone.so.0.1.0",
                       "standin/libdrystone-standin.so"])
        print(f"{machine}; medians of {turns} turns of {ms} ms")
        print(f"{'demanded: wall <= 1.010':32}     ns   wall (half of them)    "
              "cpu (half of them)")
        for placement in ("paged", "torch"):
            for live in (1000, 100000):
                print_rows(placement, live, run_turns(folder / "bench/bench_live", placement, live,
                                                      turns, ms))
        if os.environ.get("DRY_TEST_TORCH"):
            print(f"\n{'PyTorch, cpu ms a step':28}{'shown':>8}{'not':>8}  ratio (half of them)")
            print_torch(run_torch(folder, 3 if short else 9))
