#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Everything that is to be measured on an NVIDIA GPU, by one command: test/gpu/run campaign

    driver      checks, what the driver's calls cost, handles of 2, 20 and 512 MiB, pinned memory
    context     what a context and the first uses of CUDA's libraries take
    nodes       the driver's memory for a graph, by its kernels
    graphs      a captured training step beside the same steps without a graph
    aftermath   free memory after each of twenty out-of-memory errors
    workspaces  cuDNN's workspaces in the layers of ResNet-50
    nccl        what NCCL says of its own memory
    train       GPT-2, with another length each step, too, LoRA and ResNet-50, with PyTorch's
                allocators and paged: three repeats of 100 steps

Each run is a process of its own with a time limit; what fails is told, and the rest goes on. Each
leaves a file of JSON in the folder, which names the device, its driver and PyTorch. Ends with 0 if
all is well or skipped, 1 if a part failed, 77 where there is no GPU or no PyTorch.

examples:
    test/gpu/run campaign
    test/gpu/run campaign --only driver --only graphs --out /tmp/figures
    drystone dry-run --steps 1000 -- python3 test/gpu/campaign.py --quick --only train
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SKIPPED = 77
MIB = 1 << 20
STATUS = {0: "ok", SKIPPED: "skipped"}
LIMITS = {"driver": 300, "train": 150}  # seconds of a run on a GPU; of all others 120
WITH_ALLOCATORS = ("graphs", "aftermath")
PARTS = ("driver", "context", "nodes", "graphs", "aftermath", "workspaces", "nccl", "train")
KINDS = ("gpt2", "lengths", "lora", "resnet")
CALLS = ("create", "map", "access", "unmap", "release")
ALLOCATORS = (("native",), ("expandable",), ("paged",), ("paged", "budget:1.25"),
              ("paged", "remap:False"))


def parse():
    parser = argparse.ArgumentParser(prog="test/gpu/run campaign", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="PART", choices=PARTS,
                        help="this part, and others named so")
    parser.add_argument("--quick", action="store_true", help="few steps, to see that all runs")
    parser.add_argument("--minutes", type=float, default=25,
                        help="end after so many; the rest is left out")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build-gpu/campaign")
    parser.add_argument("--measure", default=ROOT / "build-gpu/measure",
                        help="the program of measure.c, which test/gpu/run builds")
    parser.add_argument("--library", default="libcuda.so.1", help="the driver for it")
    return parser.parse_args()


# --- one run -------------------------------------------------------------------------------------

def lines_of(text):
    """The lines of JSON in what a program printed."""
    found = []
    for line in text.splitlines():
        if line.startswith("{"):
            try:
                found.append(json.loads(line))
            except ValueError:
                pass
    return found


def start(words, limit):
    """(status, results, last lines of a run that is not well)"""
    path = f"{ROOT / 'python'}:{os.environ.get('PYTHONPATH', '')}".rstrip(":")
    try:
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                              timeout=limit, env={**os.environ, "PYTHONPATH": path},
                              stdin=subprocess.DEVNULL, check=False)
    except subprocess.TimeoutExpired:
        return "timed out", [], [f"no end after {limit:.0f} s"]
    except OSError as why:
        return "failed", [], [str(why)]
    status = STATUS.get(done.returncode, "failed")
    said = [] if status == "ok" else (done.stdout + done.stderr).splitlines()[-15:]
    return status, lines_of(done.stdout), said


class Campaign:
    """Runs one thing after the other until the time is over, and keeps what each gave."""

    def __init__(self, given, about):
        self.given, self.about, self.done = given, about, []
        self.late = 0  # runs that the time did not suffice for
        self.end = time.monotonic() + given.minutes * 60

    def run(self, part, name, words, costs=None):
        """`costs`: a file of JSON that the program writes, which joins its results."""
        begin = time.monotonic()
        left = self.end - begin
        limit = left if self.given.quick else LIMITS.get(part, 120)
        status, results, said = "timed out", [], []
        if left > 0:
            status, results, said = start(words, min(limit, left))
        if status == "timed out" and left < limit:
            self.late += 1
            return
        if costs and costs.exists():
            results.append(json.loads(costs.read_text()))
            costs.unlink()
        row = {"schema": "drystone.campaign/1", **self.about, "part": part, "name": name,
               "command": [str(word) for word in words], "status": status, "said": said,
               "seconds": round(time.monotonic() - begin, 2), "results": results}
        (self.given.out / f"{name}.json").write_text(json.dumps(row, indent=1) + "\n")
        print(f"{status:9} {name} ({row['seconds']:.1f} s)", flush=True)
        for line in said if status != "ok" else []:
            print(f"    {line}")
        self.done.append(row)


# --- parts ---------------------------------------------------------------------------------------

def measure_driver(campaign):
    given, costs = campaign.given, campaign.given.out / "costs.json"
    quick = ["--pin-mib", "64", "--span-mib", "64"] if given.quick else []
    campaign.run("driver", "driver", [given.measure, "--library", given.library, "--json", costs,
                                      *quick], costs)


def measure_part(campaign, part):
    quick = ["--quick"] if campaign.given.quick else []
    for allocator in ("native", "paged") if part in WITH_ALLOCATORS else ("native",):
        name = f"{part}-{allocator}" if part in WITH_ALLOCATORS else part
        campaign.run(part, name, [sys.executable, HERE / "parts" / f"{part}.py",
                                  "--allocator", allocator, *quick])


def measure_training(campaign):
    """One repeat of everything before the next, so that all have as many when the time is over."""
    quick, kinds, allocators = campaign.given.quick, KINDS, ALLOCATORS
    if quick:
        kinds, allocators = ("lengths",), (ALLOCATORS[0], ALLOCATORS[3])
    elif not campaign.about["has_torchvision"]:
        print("skipped   train-resnet: python3 finds no torchvision")
        kinds = KINDS[:3]
    for repeat in range(1 if quick else 3):
        for kind in kinds:
            for allocator, *conf in allocators:
                name = "-".join(["train", kind, allocator, *conf, str(repeat + 1)])
                campaign.run("train", name.replace(":", "-"), [
                    sys.executable, HERE / "train.py", kind, "--steps", 4 if quick else 100,
                    "--allocator", allocator, *(["--conf", *conf] if conf else [])])


# --- the summary ---------------------------------------------------------------------------------

def text_of(row):
    """What a run says in its last line, why it failed, or what a handle's five calls cost."""
    for result in reversed(row["results"]):
        if "says" in result:
            return result["says"]
        if "handles" in result:
            return ", ".join(f"{handle['handle_bytes'] // MIB} MiB "
                             f"{sum(handle[f'{call}_ns'] for call in CALLS) / 1e3:.1f} us"
                             for handle in result["handles"])
    return row["said"][-1] if row["said"] else ""


def print_parts(done):
    rows = [row for row in done if row["part"] != "train"]
    if rows:
        print(f"\n{'part':18}{'status':10}{'s':>6}  what it says")
    for row in rows:
        print(f"{row['name']:18}{row['status']:10}{row['seconds']:6.1f}  {text_of(row)[:44]}")


def calls_of(result):
    """Calls of the driver that allocate or map, in a step; pages that moved in it."""
    rises = result["a_step"]
    ours = rises.get("drystone.driver_calls")
    calls = rises["num_device_alloc"] + rises["num_device_free"] if ours is None else ours
    moved = rises.get("drystone.pages_moved")
    return calls, "-" if moved is None else f"{moved:.1f}"


def print_training(done):
    runs = {}
    for row in done:
        for result in row["results"]:
            if row["part"] == "train":
                label = " ".join([result["allocator"], result["conf"] or ""])
                runs.setdefault((result["kind"], label), []).append(result)
    if runs:
        print(f"\n{'training':28}{'step ms':>9}{'spread':>8}{'reserved':>10}{'allocated':>10}"
              f"{'calls':>8}{'moved':>7}")
    for (kind, label), results in runs.items():
        steps = [result["step_ms"] for result in results]
        calls, moved = calls_of(results[-1])
        print(f"{kind:8} {label:19}{statistics.median(steps):9.2f}{max(steps) - min(steps):8.2f}"
              f"{max(result['reserved'] for result in results) / MIB:10.0f}"
              f"{max(result['allocated'] for result in results) / MIB:10.0f}{calls:8.1f}{moved:>7}")


def main():
    given = parse()
    status, about, said = start([sys.executable, HERE / "parts/about.py"], 120)
    if status != "ok":
        print("SKIPPED:" if status == "skipped" else "FAILED: nothing was measured:",
              *([about[-1]["says"]] if about else said))
        sys.exit(SKIPPED if status == "skipped" else 1)
    given.out.mkdir(parents=True, exist_ok=True)
    campaign = Campaign(given, about[-1])
    for part in given.only or PARTS:
        if part == "driver":
            measure_driver(campaign)
        elif part == "train":
            measure_training(campaign)
        else:
            measure_part(campaign, part)
    print("\n{device}, driver {driver}, PyTorch {torch}".format(**about[-1]))
    print_parts(campaign.done)
    print_training(campaign.done)
    if campaign.late:
        print(f"\n{campaign.late} runs were left out: {given.minutes:g} minutes are over")
    print(f"\n{len(campaign.done)} files in {given.out}")
    sys.exit(any(row["status"] in ("failed", "timed out") for row in campaign.done))


main()
