# SPDX-License-Identifier: Apache-2.0
"""The memory that places need, and the time of a pool's calls: `bench/run pool [short]`

Memory: every recording, the lifetimes and the generated workloads are replayed by PyTorch's
rules (default, expandable), by `paged` and packed offline. Three figures each, as ratios to
the peak of what the program had asked for and not given back:

    res   peak reserved on a device without limit
    cap   the smallest device on which it runs, in steps of 2 MiB
    calls, moved, ms: what the driver had to do without limit; its time is modelled

A second table tells what is left of that from the fourth step on, the third period after a
step of warm-up, for workloads of equal steps. "short" takes the smaller half of the traces.
Speed is measured by bench_pool and bench_recorded, on a pool with its lock and its table of
pointers: of sizes that never repeat, of recorded calls, and of a program's steps, which do.
"""
import concurrent.futures
import csv
import json
import os
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRACES = pathlib.Path(os.environ.get("DRY_TEST_TRACES", ROOT.parent / "shared/traces"))
PLACES = ["torch:", "torch:expandable_segments:True", "paged", "offline"]
WITHOUT_PLAN = "paged:plan:False"
STEADY = 3  # steps before it
REAL = ["decomfl", "late-start", "python-stacks-only", "transformer-medium-512-train",
        "transformer-medium-128-infer", "tiny-cs336", "compile-context"]
LIFETIMES = {f"minimalloc-{letter}": 512 for letter in "ACEGIK"}  # factor of the sizes
LIFETIMES |= {"resnet50": 1, "pangu-2.6b": 1}
SHORT = {"tiny-cs336", "late-start", "minimalloc-A", "train-fixed", "train-variable",
         "zero3-variable", "uniform-256"}


class Trace:
    def __init__(self, group, name, path, steps=()):
        self.group, self.name, self.path, self.steps = group, name, path, steps
        self.live, self.allocs, self.runs, self.steady = 0, 0, [], []


def replay(tool, path, *arguments):
    done = subprocess.run([tool, "replay", path, "--json", *arguments], text=True,
                          stdout=subprocess.PIPE, check=False)
    if done.returncode > 1:
        raise SystemExit(f"{path}: replay failed")
    return json.loads(done.stdout)


def measure(tool, trace):
    places = [word for place in PLACES for word in ("--place", place)]
    result = replay(tool, trace.path, *places, "--find-capacity")
    trace.live = result["recorded"]["live_peak_bytes"]
    trace.runs = result["runs"]
    trace.allocs = trace.runs[0]["stats"]["allocation.all.allocated"]
    if len(trace.steps) > STEADY:
        result = replay(tool, trace.path, "--place", "torch:", "--place", WITHOUT_PLAN,
                        "--place", "paged", "--steady-from", str(trace.steps[STEADY]))
        trace.steady = result["runs"]
    return trace


# --- traces -------------------------------------------------------------------------------


def write_lifetimes(source, factor, path):
    """A buffer lives in [lower, upper); at one time frees come first."""
    edges = []
    with open(source, newline="") as file:
        for row in csv.DictReader(file):
            number = int(row["id"]) + 1
            edges.append((int(row["upper"]), 0, f"f {number}"))
            edges.append((int(row["lower"]), 1, f"a {number} {int(row['size']) * factor} 0"))
    edges.sort(key=lambda edge: edge[:2])
    path.write_text("".join(f"{line} {time}\n" if kind else f"{line}\n"
                            for time, kind, line in edges))


def make_traces(maker, folder, short):
    traces = []
    for name in REAL:
        path = TRACES / "pytorch" / f"{name}.pickle"
        if path.exists() and not (short and name not in SHORT):
            traces.append(Trace("recordings", name, path))
    for name, factor in LIFETIMES.items():
        source = TRACES / "lifetimes" / f"{name}.csv"
        if source.exists() and not (short and name not in SHORT):
            path = folder / f"{name}.trace"
            write_lifetimes(source, factor, path)
            traces.append(Trace("lifetimes", name, path))
    names = subprocess.run([maker, "list"], check=True, text=True,
                           stdout=subprocess.PIPE).stdout.split()
    for name in names:
        if short and name not in SHORT:
            continue
        path = folder / f"{name}.trace"
        is_periodic = name.endswith("-fixed") or name == "zero3"
        steps = subprocess.run([maker, name, path, *["8"] * is_periodic], check=True,
                               text=True, stdout=subprocess.PIPE).stdout.split()
        group = "random" if name.startswith("uniform") else "generated"
        traces.append(Trace(group, name, path, steps if is_periodic else ()))
    return traces


# --- tables -------------------------------------------------------------------------------


def ratios(trace):
    """(reserved, capacity) of each place."""
    return [(run["reserved_peak_bytes"] / trace.live, run["capacity_bytes"] / trace.live)
            for run in trace.runs]


def print_ratios(name, live, figures):
    torch, expandable, paged, offline = figures
    pairs = "".join(f"{pair[0]:9.3f}{pair[1]:7.3f}" for pair in (torch, expandable, paged))
    print(f"{name:29}{live:>9}{pairs}{offline[0]:9.3f}")


def print_memory(traces):
    print(f"\n{'':29}{'live':>9}{'torch':>16}{'expandable':>16}{'paged':>16}{'offline':>9}")
    print(f"{'':29}{'GiB':>9}" + f"{'res':>9}{'cap':>7}" * 3 + f"{'height':>9}")
    for group in dict.fromkeys(trace.group for trace in traces):
        rows = [trace for trace in traces if trace.group == group]
        for trace in rows:
            print_ratios(trace.name, f"{trace.live / 2**30:.2f}", ratios(trace))
        table = [ratios(trace) for trace in rows]
        for title, fold in (("mean", statistics.fmean), ("max", max)):
            print_ratios(f"  {group}, {title}", "",
                         [[fold([row[place][i] for row in table]) for i in range(2)]
                          for place in range(len(PLACES))])


def print_driver(traces):
    print(f"\n{'driver, no limit':29}{'allocs':>8}{'torch':>17}{'expandable':>17}{'paged':>28}")
    print(f"{'':37}" + f"{'calls':>9}{'ms':>8}" * 3 + f"{'moved/1000':>11}")
    for trace in traces:
        runs = trace.runs[:3]
        figures = "".join(f"{run['driver_calls']:9}{run['driver_time_us'] / 1e3:8.1f}"
                          for run in runs)
        moved = runs[2]["pages_remapped"] * 1000 / max(1, trace.allocs)
        print(f"{trace.name:29}{trace.allocs:8}{figures}{moved:11.1f}")


def print_steady(traces):
    traces = [trace for trace in traces if trace.steady]
    if not traces:
        return
    print(f"\n{'from the fourth step on':29}{'torch':>17}{'paged, no plan':>24}"
          f"{'paged':>24}")
    print(f"{'':29}{'res':>9}{'calls':>8}" + f"{'res':>9}{'calls':>8}{'moved':>7}" * 2)
    for trace in traces:
        line = f"{trace.name:29}"
        for run in trace.steady:
            steady = run["steady"]
            line += f"{steady['reserved_peak_bytes'] / trace.live:9.3f}"
            line += f"{steady['driver_calls']:8}"
            line += f"{steady['pages_remapped']:7}" if run["place"] == "paged" else ""
        print(line)


def read_results(output):
    return [json.loads(line) for line in output.splitlines()]


def results_of(program, *arguments):
    return read_results(subprocess.run([program, *arguments], text=True, check=False,
                                       stdout=subprocess.PIPE).stdout)


def side_by_side(results, key, columns, placements=("torch", "paged")):
    """A line a key: each placement's figures."""
    rows = {}
    for result in results:
        rows.setdefault(key(result), {})[result["placement"]] = result
    for title, row in rows.items():
        line = title
        for placement in placements:
            result = row.get(placement, {})
            for width, column, digits in columns:
                figure = result.get(column)
                text = "-" if figure is None else f"{figure:.{digits}f}"
                line += f"{text:>{width}}"
        print(line)


QUANTILES = ((7, "p50_ns", 0), (7, "p99_9_ns", 0), (6, "mean_ns", 0))
RESERVED = ((6, "reserved", 2),)  # the most reserved, by the most in use


def print_speed(program, short):
    """Each placement's figures of one setting side by side; then those of threads."""
    results = results_of(program, *(["200000", "10000"] if short else ["2000000"]))
    for result in results:
        if result["bench"] == "lock":
            print(f"\na lock, taken and given, in a process {result['process']}: "
                  f"mutex {result['mutex_ns']} ns, ours {result['own_ns']} ns")
        if result["bench"] == "floor":
            print(f"a look into a table of {result['live']} addresses: "
                  f"{result['look_ns']} ns, and at the block's record: "
                  f"{result['look_and_record_ns']} ns")
    print(f"\n{'alloc + free, ns':16}{'live':>8}{'torch':>26}{'paged':>26}")
    print(f"{'':24}" + f"{'median':>7}{'p99.9':>7}{'mean':>6}{'res':>6}" * 2)
    side_by_side((r for r in results if r["bench"] == "pool"),
                 lambda r: f"{r['sizes'] + ', ' + r['order']:16}{r['live']:8}",
                 QUANTILES + RESERVED)
    print(f"\n{'streams, ns':16}{'live':>6}{'':3}{'torch':>26}{'paged':>26}")
    print(f"{'':25}" + f"{'median':>7}{'p99.9':>7}{'mean':>6}{'res':>6}" * 2)
    side_by_side((r for r in results if r["bench"] == "streams"),
                 lambda r: f"{r['sizes'] + ', ' + r['order']:16}{r['live']:6}"
                           f"{r['streams']:3}", QUANTILES + RESERVED)
    print(f"\n{'a pair of each, ns':19}{'live':>6}{'threads':>8}{'torch':>21}{'paged':>21}")
    print(f"{'':33}" + f"{'wall':>8}{'cpu':>7}{'res':>6}" * 2)
    side_by_side((r for r in results if r["bench"] == "threads"),
                 lambda r: f"{r['sizes'] + ', ' + r['order']:19}{r['live']:6}"
                           f"{r['threads']:8}",
                 ((8, "mean_ns", 0), (7, "cpu_ns", 0)) + RESERVED)


def print_recorded(program, traces, short):
    """The programs' own calls, in their order."""
    results = results_of(program, "20000" if short else "500000",
                         *(trace.path for trace in traces))
    print(f"\n{'recorded calls, ns':29}{'pairs':>7}{'live':>6}{'small':>7}"
          f"{'torch':>20}{'paged':>20}")
    print(f"{'':49}" + f"{'median':>7}{'p99.9':>7}{'mean':>6}" * 2)
    side_by_side(results, lambda r: f"{r['name']:29}{r['pairs']:7}{r['live']:6}"
                                    f"{r['small_share']:7.0%}", QUANTILES)


def measure_steps(maker, program, traces):
    """Results from the eleventh step on, of programs whose steps are equal."""
    results = []
    for trace in traces:
        if not trace.steps:
            continue
        steps = subprocess.run([maker, trace.name, trace.path, "40"], check=True, text=True,
                               stdout=subprocess.PIPE).stdout.split()
        results += results_of(program, "steps", trace.path, *steps)
    return results


def print_steps(maker, program, traces):
    results = measure_steps(maker, program, traces)
    hinted = {r["name"]: r["hinted"] for r in results}
    for result in results:
        result["placement"] = f"{result['placement']} {result['conf']}".strip()
    print(f"\n{'steps, ns':15}{'pairs':>6}{'hinted':>7}{'torch':>17}{'no plan':>17}"
          f"{'paged':>17}")
    print(f"{'':28}" + f"{'p50':>6}{'p99.9':>6}{'mean':>5}" * 3)
    side_by_side(results, lambda r: f"{r['name']:15}{r['pairs']:6}{hinted[r['name']]:7.0%}",
                 ((6, "p50_ns", 0), (6, "p99_9_ns", 0), (5, "mean_ns", 0)),
                 ("torch", "paged plan:False", "paged"))


def run(short, machine, build):
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        programs = ["bench/make_workload", "tool/drystone"]
        programs += ["bench/bench_pool", "bench/bench_recorded"]
        build(folder / "build", programs)
        traces = make_traces(folder / "build/bench/make_workload", folder, short)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            tool = folder / "build/tool/drystone"
            traces = list(pool.map(lambda trace: measure(tool, trace), traces))
        print(machine)
        if not TRACES.exists():
            print(f"no recordings: {TRACES} is not there (set DRY_TEST_TRACES)")
        print_memory(traces)
        print_driver(traces)
        print_steady(traces)
        print_speed(folder / "build/bench/bench_pool", short)
        print_recorded(folder / "build/bench/bench_recorded", traces, short)
        print_steps(folder / "build/bench/make_workload",
                    folder / "build/bench/bench_recorded", traces)
