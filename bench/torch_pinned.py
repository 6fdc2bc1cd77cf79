# SPDX-License-Identifier: Apache-2.0
"""The pinned cache in PyTorch, beside PyTorch's own: `bench/run torch_pinned [short]`

The experiment of pytorch #181094 through a real PyTorch and a DataLoader, over a CUDA that is not
there, whose registered memory is locked for real (mlock). The loop is torch_pinned_loop.py. Rows
take turns; a figure is the median of its rounds.

    first, tail   seconds in calls that allocate or free pinned memory (a DataLoader's copies into
                  it included), over the first 50 steps, and the next 50
    CPU           of the first, CPU seconds of all threads: what else runs disturbs these less
    pinning       seconds in the calls that pin, by all threads; what is pinned ahead included
    peak          the most that was pinned, and to the most that the loop needed at once
    before, after what is pinned before and after a clear, to what is still in use then

The wheel is in the folder $DRY_TEST_TORCH. The shim for its release is $DRYSTONE_SHIM, or is
built at first use.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GIB = 2 ** 30
ROWS = ("native", "buddy, T 1 MiB", "buddy, T 0", "fit", "fit, 512 MiB ahead")


def run_once(tool, folder, library, row, steps):
    env = dict(os.environ, PYTHONPATH=os.environ["DRY_TEST_TORCH"], OMP_NUM_THREADS="1",
               DRYSTONE_LIBRARY=str(library))
    env.pop("TORCH_USE_RTLD_GLOBAL", None)
    out = folder / "row.json"
    out.unlink(missing_ok=True)
    done = subprocess.run(
        [tool, "dry-run", "--json", "--patience", "3600", "-o", folder / "x.pickle", "--",
         sys.executable, ROOT / "bench/torch_pinned_loop.py", row, steps, steps, out],
        env=env, text=True, capture_output=True, check=False)
    if not out.exists():
        sys.exit(f"{row}: no result\n" + "\n".join(done.stderr.splitlines()[-12:]))
    return json.loads(out.read_text())


def print_rows(results):
    print(f"{'':20}{'first s':>9}{'CPU s':>8}{'tail ms':>9}{'pinning s':>11}{'peak GiB':>10}"
          f"{'peak':>7}{'before':>8}{'after':>7}")
    medians = {}
    for row, runs in results.items():
        r = {key: statistics.median(run[key] for run in runs) for key in runs[0] if key != "row"}
        medians[row] = r
        print(f"{row:20}{r['first_s']:9.3f}{r['first_cpu_s']:8.3f}{r['tail_s'] * 1e3:9.1f}"
              f"{r['pin_s']:11.3f}{r['pinned_peak'] / GIB:10.3f}"
              f"{r['pinned_peak'] / r['needed_peak']:7.3f}"
              f"{r['before'] / r['needed_after']:8.3f}{r['after'] / r['needed_after']:7.3f}")
    native = medians["native"]
    for row in ROWS[1:]:
        saved = [1 - medians[row][key] / native[key]
                 for key in ("first_s", "first_cpu_s", "tail_s")]
        print(f"{row}: {saved[0]:.0%} less than native in the first steps ({saved[1]:.0%} of CPU), "
              f"{saved[2]:.0%} in the tail")


def run(is_short, machine, build):
    if not os.environ.get("DRY_TEST_TORCH"):
        sys.exit("DRY_TEST_TORCH: no wheel; scripts/get_torch.py makes one")
    rounds, steps = (1, "20") if is_short else (5, "50")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        build(folder / "build", ["tool/drystone", "standin/libdrystone-standin.so",
                                 "src/libdrystone.so.0.1.0"])
        tool, library = folder / "build/tool/drystone", folder / "build/src/libdrystone.so.0"
        results = {row: [] for row in ROWS}
        for _ in range(rounds):
            for row in ROWS:
                results[row].append(run_once(tool, folder, library, row, steps))
    print(machine)
    print_rows(results)
