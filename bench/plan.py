# SPDX-License-Identifier: Apache-2.0
"""Planning: `bench/run plan [short]`

How long a plan takes, and how good it is, on drawn chains of 1,000 stages and 500 slots at
several budgets, on nearly 100,000, and on 10,000 equal stages:

    seconds   median, of a process on its processor
    tables    the memory of the largest
    time      of the plan, to that without checkpoints; its bound; what lies between, in percent
    used      the share of the budget that the plan needs

Last the plain table over all ranges, O(stages^3 * slots), of fewer stages, and of 1,000 if not
"short" (a minute and a half, 2 GB), beside the windowed one.
"""
import json
import pathlib
import statistics
import subprocess
import tempfile

SHARES = (0.05, 0.08, 0.15, 0.3, 0.5, 0.8)
LONG_STAGES, LONG_SHARES = 99999, (0.02, 0.05, 0.3, 0.8)


def measure(program, *arguments):
    done = subprocess.run([program, *map(str, arguments)], text=True,
                          stdout=subprocess.PIPE, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def print_row(title, r):
    if r is None:
        print(f"{title:32} not to be had")
        return
    seconds = statistics.median(r["seconds"])
    tables = f"{r['table_bytes'] / 1e6:8.1f}" if "table_bytes" in r else f"{'':8}"
    line = f"{title:32}{r['stages']:>7}{r['share']:>6.2f}{seconds:>10.4f}{tables}"
    if "time" in r:
        line += f"{r['time']:>10.5f}"
    if "bound" in r:
        gap = 100 * (r["time"] - r["bound"])
        line += f"{r['bound']:>10.5f}{gap:>8.3f}{r['used']:>8.4f}"
    print(line, flush=True)


def run(short, machine, build):
    runs = 3 if short else 9
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        build(folder, ["bench/bench_plan"])
        program = folder / "bench/bench_plan"
        print(machine)
        print(f"{'500 slots':32}{'stages':>7}{'share':>6}{'seconds':>10}{'MB':>8}"
              f"{'time':>10}{'bound':>10}{'gap %':>8}{'used':>8}")
        print_row("one level, a table alone", measure(program, "table", runs))
        for share in SHARES:
            print_row("one level", measure(program, "one", runs, 1000, share))
        print_row("one level", measure(program, "one", runs, 100, 0.15))
        for share in LONG_SHARES:
            print_row("one level", measure(program, "one", 1, LONG_STAGES, share))
        for share in (0.02, 0.05, 0.5):
            print_row("one level, equal stages",
                      measure(program, "equal", runs, 10000, share))
        for share in SHARES:
            print_row("nested", measure(program, "nested", min(runs, 3), 1000, share))
        for stages in (100, 200, *(() if short else (1000,))):
            print_row("nested", measure(program, "nested", 1, stages, 0.15))
            print_row("all ranges, a table alone", measure(program, "full", 1, stages, 0.15))
