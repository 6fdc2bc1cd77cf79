# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own allocator beside ours, through the same benches: `bench/run native [short]`

bench_pool and bench_recorded are linked a second time, with the wheel's libc10_cuda behind the
calls of <drystone/pool.h> that they make (native_pool.c), and run in turns with themselves. The
wheel is in the folder $DRY_TEST_TORCH, which scripts/get_torch.py makes. Medians of the rounds.
"""
import pathlib
import statistics
import subprocess
import sys
import tempfile

import pool

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test/native"))
import wheel  # noqa: E402

FIGURES = ("p50_ns", "p99_9_ns")
ROUNDS = {False: 5, True: 3}


def link(torch, folder):
    """Both benches over PyTorch."""
    words = torch.build(folder / "native", ["cc"])
    includes = [f"-I{ROOT / 'include'}", f"-I{ROOT / 'src'}", f"-I{ROOT / 'bench'}"]
    programs = []
    for name in ("bench_pool", "bench_recorded"):
        programs.append(folder / "native" / name)
        wheel.run("cc", "-std=c11", "-D_GNU_SOURCE", "-O3", "-w", *includes,
                  ROOT / f"bench/{name}.c", ROOT / "bench/native_pool.c", "-o", programs[-1],
                  folder / "build/src/libdrystone.a", *words)
    return programs


def results_of(program, placement, *words):
    done = subprocess.run([program, *words], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, check=False)
    found = [result for result in pool.read_results(done.stdout)
             if result["bench"] in ("pool", "recorded", "steps")]
    for result in found:
        result["placement"] = placement or result["placement"]
    return found


def measure(rounds, ours, theirs, *words):
    """{title: {placement: figures}}, medians of the rounds."""
    rows = {}
    for _ in range(rounds):
        for result in results_of(theirs, "PyTorch", *words) + results_of(ours, None, *words):
            if result["bench"] == "pool":
                title = f"{result['sizes']}, {result['order']}, {result['live']}"
            else:
                title = result["name"] + (", steps" if result["bench"] == "steps" else "")
            if result.get("conf"):
                continue  # without a plan
            row = rows.setdefault(title, {}).setdefault(result["placement"], [])
            row.append([result[figure] for figure in FIGURES])
    return {title: {placement: [statistics.median(column) for column in zip(*runs)]
                    for placement, runs in row.items()} for title, row in rows.items()}


def print_rows(rows):
    for title, row in rows.items():
        first, *rest = row["PyTorch"] + row["torch"] + row["paged"]
        line = f"{title}{first:{33 - len(title)}.0f}" + "".join(f"{x:7.0f}" for x in rest)
        times = [row["PyTorch"][0] / max(1, row[other][0]) for other in ("torch", "paged")]
        print(line + "".join(f"{ratio:6.1f}" for ratio in times), flush=True)


def run(short, machine, build):
    torch = wheel.Wheel()
    if torch.why:
        raise SystemExit(f"bench native: {torch.why}")
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        build(folder / "build", ["bench/make_workload", "bench/bench_pool",
                                 "bench/bench_recorded", "src/libdrystone.a"])
        programs = link(torch, folder)
        benches, rounds = folder / "build/bench", ROUNDS[short]
        print(f"{machine}; PyTorch {torch.version}; {rounds} rounds in turns")
        print(f"\n{'a pair, ns':26}{'PyTorch':>14}{'torch':>14}{'paged':>14}{'faster':>12}")
        print(f"{'':26}" + f"{'median':>7}{'p99.9':>7}" * 3 + f"{'torch':>6}{'paged':>6}")
        print_rows(measure(rounds, benches / "bench_pool", programs[0],
                           "50000" if short else "200000", "10000"))
        maker, recorded = benches / "make_workload", benches / "bench_recorded"
        for trace in pool.make_traces(maker, folder, short):
            print_rows(measure(rounds, recorded, programs[1], "20000", trace.path))
            if trace.steps:
                steps = subprocess.run([maker, trace.name, trace.path, "40"], check=True,
                                       text=True, stdout=subprocess.PIPE).stdout.split()
                print_rows(measure(rounds, recorded, programs[1], "steps", trace.path, *steps))
