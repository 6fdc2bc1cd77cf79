#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program whose steps repeat comes to a state without driver calls: steady.py TOOL MAKE_WORKLOAD

Recordings of training on an H100 (test/recorded/h100) go on for twenty steps more, each as the last
one, alone and with three side streams; generated workloads run for as many. From then on no page
moves and the driver is not called.
What is reserved then is at most 2 % above the live peak, the floor of any placement whose addresses
are fixed; and the peak of all steps is no higher than with PyTorch's expandable segments. Without
a plan no more pages move than place/paged/paged.h promises under Price. On a device of 80 GB, with
pages of 16 MiB, the driver's time of all steps is near that of expandable segments. An evaluation
every twenty steps does not cost the recordings their layout: few pages move, and what is reserved
in the end is near the floor.
"""
import gzip
import itertools
import json
import pathlib
import pickle
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RECORDED = ["gpt2", "lora", "resnet", "fsdp"]
PERIODIC = ["zero3", "train-fixed", "recompute-fixed", "pipeline-fixed", "zero3-fixed", "offload-fixed"]
REPEATS = 24
LEARNT = 20  # steps, after which everything must stand still
PERIOD_LEAST = 64
SIDE_IDS, SIDE_STREAM = 1 << 30, 100
BUDGET, PAGE = 1.05, 2 << 20
FLOOR_MAX = 1.02
OVER_EXPANDABLE = 1.01  # a page of 2 MiB for each arena and edge, in programs that fragment nothing
LARGE_DEVICE, LARGE_PAGE = "79GiB", 16 << 20
LARGE_EDGES = 8  # large pages that are not full, beyond the floor
EVERY, EVALUATIONS, BATCHES = 20, 20, 3
EVALUATED_LIVE = 4  # blocks of an evaluation that are alive at a time
SLOWER = 1.65    # than the driver's time for expandable segments, which have handles of 20 MiB

tool, maker = (pathlib.Path(argument).resolve() for argument in sys.argv[1:3])
failures = []


def demand(what, figure, bar):
    if figure > bar:
        failures.append(f"{what}: {figure:.4f}, at most {bar:.4f} is demanded")


class Program:
    """Requests in order: alloc (id, size, stream) and free (id), as a plain trace has them."""

    def __init__(self, snapshot):
        self.ops, self.begins, live = [], [], {}
        for event in max(snapshot["device_traces"], key=len):
            address, size = event["addr"], event["size"]
            if event["action"] == "alloc":
                live[address] = len(self.begins)
                self.begins.append(len(self.ops))
                self.ops.append(("a", live[address], size, event["stream"]))
            elif event["action"] == "free_requested" and address in live:
                self.ops.append(("f", live.pop(address)))

    def find_period(self):
        """Allocations in the last step: the shortest end of their sizes that comes twice."""
        sizes = [self.ops[at][2:] for at in self.begins]
        return next(count for count in range(PERIOD_LEAST, len(sizes) // 2)
                    if sizes[-count:] == sizes[-2 * count:-count])

    def last_step(self):
        """Allocations before the last step, and its ops; an id is one of it, or of the one before."""
        period = self.find_period()
        first = len(self.begins) - period
        return first, self.ops[self.begins[first]:]

    def repeat(self, times, side_streams=0):
        """The ops with the last step so many times more, and the op with which each begins.

        A step begins with two blocks on each of so many side streams. The main stream uses one of
        them, and is done with it when that block is freed.
        """
        first, step = self.last_step()
        period = len(self.begins) - first
        freed = {op[1] for op in self.ops[:self.begins[first]] if op[0] == "f"}
        ops, starts = list(self.ops), []
        dead = freed | {op[1] for op in step if op[0] == "f"}
        for turn in range(1, times + 1):
            starts.append(len(ops))
            for side in range(1, side_streams + 1):
                ops += beside(SIDE_IDS + 2 * (turn * side_streams + side), side)
            for op in step:
                name = op[1] + turn * period
                if op[0] == "a":
                    ops.append(("a", name, *op[2:]))
                elif name not in dead:
                    dead.add(name)
                    ops.append(("f", name))
        return ops, starts


    def interrupt(self):
        """The ops with an evaluation after every EVERY steps, and the op in the middle.

        A batch of an evaluation asks for what the first third of a step asks for, each half as large
        again.
        """
        _, step = self.last_step()
        allocs = [op for op in step if op[0] == "a"]
        batch = [(size * 3 // 2, stream) for _, _, size, stream in allocs[:len(allocs) // 3]]
        ops, starts = self.repeat(EVERY * (EVALUATIONS + 1))
        mixed, done, names = ops[:starts[EVERY]], starts[EVERY], itertools.count(SIDE_IDS)
        for number, start in enumerate(starts[2 * EVERY::EVERY] + [len(ops)]):
            middle = len(mixed) if number <= EVALUATIONS // 2 else middle
            mixed += evaluation(batch, names) + ops[done:start]
            done = start
        return mixed, middle


def evaluation(batch, names):
    """The ops of BATCHES batches: every block is freed when EVALUATED_LIVE younger ones are alive."""
    ops = []
    for _ in range(BATCHES):
        live = []
        for size, stream in batch:
            live.append(next(names))
            ops.append(("a", live[-1], size, stream))
            if len(live) == EVALUATED_LIVE:
                ops.append(("f", live.pop(0)))
        ops += [("f", name) for name in live]
    return ops


def beside(name, side):
    stream = SIDE_STREAM + side
    return [("a", name, (32 + 32 * side) << 20, stream), ("a", name + 1, (8 + 8 * side) << 20, stream),
            ("r", name, 0), ("f", name + 1), ("f", name), ("s", 0), ("s", stream)]


def write(ops, path):
    with open(path, "w", encoding="ascii") as file:
        for at, op in enumerate(ops):
            file.write(" ".join(map(str, op)) + (f" {at}\n" if op[0] == "a" else "\n"))


def replay(path, *arguments):
    done = subprocess.run([tool, "replay", path, "--json", *arguments], text=True,
                          stdout=subprocess.PIPE)
    if done.returncode not in (0, 1):  # 1: found something
        sys.exit(f"replay {path.name} {' '.join(arguments)}: exit {done.returncode}")
    return json.loads(done.stdout)


def check(path, start):
    result = replay(path, "--place", "torch:expandable_segments:True", "--place", "paged",
                    "--place", "paged:plan:False", "--steady-from", str(start))
    live = result["recorded"]["live_peak_bytes"]
    expandable, paged, bought = (run["reserved_peak_bytes"] / live for run in result["runs"])
    steady = result["runs"][1]["steady"]
    ratio = steady["reserved_peak_bytes"] / live
    print(f"{path.stem:20} expandable {expandable:.4f}, paged {paged:.4f} at the peak; after "
          f"{LEARNT} steps {ratio:.4f}, {steady['driver_calls']} calls, "
          f"{steady['pages_remapped']} pages moved")
    demand(f"{path.stem}: pages moved", steady["pages_remapped"], 0)
    demand(f"{path.stem}: driver calls", steady["driver_calls"], 0)
    check_price(path, result["runs"][2], bought, live)
    demand(f"{path.stem}: reserved in the end", ratio, FLOOR_MAX)
    demand(f"{path.stem}: reserved at the peak", paged, expandable * OVER_EXPANDABLE)


def check_large(path, start):
    result = replay(path, "--place", "torch:expandable_segments:True", "--place", "paged",
                    "--capacity", LARGE_DEVICE, "--steady-from", str(start))
    live = result["recorded"]["live_peak_bytes"]
    expandable, paged = result["runs"]
    steady = paged["steady"]
    times = paged["driver_time_us"] / expandable["driver_time_us"]
    print(f"{'':20} on {LARGE_DEVICE} {paged['reserved_peak_bytes'] / live:.4f} at the peak, "
          f"{steady['reserved_peak_bytes'] / live:.4f} in the end; {times:.2f} times the driver's "
          "time of expandable")
    demand(f"{path.stem}: driver calls, large device", steady["driver_calls"], 0)
    demand(f"{path.stem}: reserved in the end, large device", steady["reserved_peak_bytes"],
           live * FLOOR_MAX + LARGE_EDGES * LARGE_PAGE)
    demand(f"{path.stem}: reserved at the peak, large device", paged["reserved_peak_bytes"],
           expandable["reserved_peak_bytes"] * OVER_EXPANDABLE)
    demand(f"{path.stem}: driver time, large device", times, SLOWER)


def check_interrupted(path, middle):
    result = replay(path, "--place", "paged", "--capacity", LARGE_DEVICE, "--steady-from", str(middle))
    live, paged = result["recorded"]["live_peak_bytes"], result["runs"][0]
    moved, end = paged["steady"]["pages_remapped"], paged["reserved_end_bytes"]
    print(f"{path.stem:20} {moved} pages moved in the second half, {end / live:.4f} in the end")
    demand(f"{path.stem}: pages moved", moved, live / LARGE_PAGE / 2)
    demand(f"{path.stem}: reserved in the end", end, live * FLOOR_MAX + LARGE_EDGES * LARGE_PAGE)


def check_price(path, run, ratio, live):
    """Moves for the peak are free; each further one buys a page, and the last may be of a request."""
    largest = max(int(line.split()[2]) for line in path.read_text().splitlines() if line[0] == "a")
    bound = run["allocated_peak_bytes"] + max(ratio - BUDGET, 0) * live + largest
    print(f"{'':20} without a plan {ratio:.4f} at the peak, {run['pages_remapped']} pages moved")
    demand(f"{path.stem}: pages moved without a plan", run["pages_remapped"], bound / PAGE + 2)


with tempfile.TemporaryDirectory() as scratch:
    folder = pathlib.Path(scratch)
    for name in RECORDED:
        with gzip.open(HERE / f"h100/{name}.pickle.gz") as file:
            program = Program(pickle.load(file))
        for path, streams in ((f"{name}.trace", 0), (f"{name}-streams.trace", 3)):
            ops, starts = program.repeat(REPEATS, streams)
            write(ops, folder / path)
            check(folder / path, starts[LEARNT])
            check_large(folder / path, starts[LEARNT])
        ops, middle = program.interrupt()
        write(ops, folder / f"{name}-evaluated.trace")
        check_interrupted(folder / f"{name}-evaluated.trace", middle)
    for name in PERIODIC:
        begins = subprocess.run([maker, name, folder / f"{name}.trace", str(REPEATS)], check=True,
                                text=True, stdout=subprocess.PIPE).stdout.split()
        check(folder / f"{name}.trace", int(begins[LEARNT]))
        check_large(folder / f"{name}.trace", int(begins[LEARNT]))
for failure in failures:
    print(f"FAILED: {failure}", file=sys.stderr)
sys.exit(bool(failures))
