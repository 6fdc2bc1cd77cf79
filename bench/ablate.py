# SPDX-License-Identifier: Apache-2.0
"""What gets worse without a mechanism of paged: `bench/run ablate [short] [memory] [NAME...]`

src/base/ablate.h names the mechanisms. For each a release without it is built (-Dablate=NAME), and
replays every trace of `bench/run pool`, with the plan and without. Figures are ratios to the peak
of what the program had asked for and not given back, as there; calls, their modelled time and
pages that moved are sums. The steady state of programs of equal steps stands beside them. Then
come the programs of test/prop/place_adversary.c, which mean ill: bytes taken for each that is alive, and
calls for each request. Last come times in turns with the whole allocator, as ratios to its own: of
pairs, streams and threads by bench_pool, and by bench_recorded of steps that the layout has a place
for. The word "memory" leaves them out.

A figure that is printed as = is the whole allocator's. Times vary by some percent from run to run,
so only the middle of the turns is told, and less than a tenth is no difference.
"""
import concurrent.futures
import os
import pathlib
import re
import statistics
import subprocess
import tempfile

import pool

ROOT = pathlib.Path(__file__).resolve().parent.parent
PLACES = ("paged", pool.WITHOUT_PLAN)
TURNS = 3
WHOLE = "nothing"
ADVERSARIES = "test/unit/test_place_adversary"
TIMES = ("pairs", "steps", "streams", "threads")


def find_names():
    text = (ROOT / "src/base/ablate.h").read_text()
    return re.findall(r"^#define DRYI_ABLATE_(\w+) 0$", text, re.MULTILINE)


def build(folder, names):
    option = f"-Dablate={','.join(names)}"
    subprocess.run(["meson", "setup", folder, ROOT, "--buildtype=release", option],
                   check=True, stdout=subprocess.DEVNULL)
    programs = ("bench_pool", "bench_recorded", "make_workload")
    subprocess.run(["ninja", "-C", folder, "tool/drystone", ADVERSARIES,
                    *(f"bench/{program}" for program in programs)], check=True,
                   stdout=subprocess.DEVNULL)


class Figures:
    """Of one build over all traces."""

    def __init__(self):
        self.reserved, self.smallest, self.calls, self.time_us, self.moved = {}, {}, 0, 0, 0
        self.steady_reserved, self.steady_calls = [], 0

    def add(self, group, run, live):
        self.reserved.setdefault(group, []).append(run["reserved_peak_bytes"] / live)
        self.smallest.setdefault(group, []).append(run["capacity_bytes"] / live)
        self.calls += run["driver_calls"]
        self.time_us += run["driver_time_us"]
        self.moved += run["pages_remapped"]


def replay(tool, trace):
    places = [word for place in PLACES for word in ("--place", place)]
    result = pool.replay(tool, trace.path, *places, "--find-capacity")
    steady = None
    if len(trace.steps) > pool.STEADY:
        steady = pool.replay(tool, trace.path, "--place", "paged", "--steady-from",
                             str(trace.steps[pool.STEADY]))["runs"][0]["steady"]
    return trace, result, steady


def measure(tool, traces):
    """{place: figures}"""
    table = {place: Figures() for place in PLACES}
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        for trace, result, steady in workers.map(lambda trace: replay(tool, trace), traces):
            live = result["recorded"]["live_peak_bytes"]
            for place, run in zip(PLACES, result["runs"]):
                table[place].add(trace.group, run, live)
            if steady:
                table["paged"].steady_reserved.append(steady["reserved_peak_bytes"] / live)
                table["paged"].steady_calls += steady["driver_calls"]
    return table


def oppose(program):
    """{adversary: (bytes taken / alive, calls a request)} of paged: what the test prints first of each."""
    result = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                            check=False)
    table = {}
    for name, calls, taken in re.findall(
            r"^(.{14}) .* requests, (\S+) driver calls each, taken / alive (\S+)$", result.stdout,
            re.MULTILINE):
        table.setdefault(name.strip(), (float(taken), float(calls)))
    return table


def times(bench, traces, short):
    """{what: nanoseconds of a pair} of paged."""
    results = pool.results_of(bench / "bench_pool", *(["100000", "10000"] if short else ["500000"]))
    table = {"steps": [result["p50_ns"] for result in pool.measure_steps(
        bench / "make_workload", bench / "bench_recorded", traces)
                       if result["placement"] == "paged" and not result["conf"]]}
    for result in results:
        if result.get("placement") != "paged":
            continue
        which = {"pool": "pairs", "streams": "streams", "threads": "threads"}.get(result["bench"])
        key = "p50_ns" if "p50_ns" in result else "cpu_ns"
        if which and result.get(key):
            table.setdefault(which, []).append(result[key])
    return {which: statistics.geometric_mean(figures) for which, figures in table.items()}


def compare_times(whole, without, traces, short):
    """{what: ratio to the whole allocator's}, the middle of turns."""
    ratios = {}
    for _ in range(TURNS):
        mine, other = times(whole, traces, short), times(without, traces, short)
        for which, figure in other.items():
            ratios.setdefault(which, []).append(figure / mine[which])
    return {which: statistics.median(figures) for which, figures in ratios.items()}


def text_of(figure, whole, form):
    text = format(figure, form)
    return "=" if whole is not None and text == format(whole, form) else text


def columns_of(figures):
    def every(table):
        return [figure for group in table.values() for figure in group]
    steady = figures.steady_reserved
    return [(statistics.fmean(every(figures.reserved)), ".4f"),
            (max(every(figures.reserved)), ".3f"),
            (statistics.fmean(every(figures.smallest)), ".4f"),
            (max(every(figures.smallest)), ".3f"),
            (figures.calls, "d"), (figures.time_us / 1e6, ".2f"), (figures.moved, "d"),
            (max(steady) if steady else 0.0, ".3f"), (figures.steady_calls, "d")]


HEADS = ("reserved", "most", "smallest", "most", "calls", "s", "moved", "steady", "calls")
WIDTHS = (9, 7, 9, 7, 8, 7, 7, 7, 6)


def print_place(place, tables):
    print(f"\n{place:14}" + "".join(f"{head:>{width}}" for head, width in zip(HEADS, WIDTHS)))
    whole = columns_of(tables[WHOLE][place])
    for name, table in tables.items():
        line = f"{name:14}"
        for (figure, form), (of_whole, _), width in zip(columns_of(table[place]), whole, WIDTHS):
            text = text_of(figure, None if name == WHOLE else of_whole, form)
            line += f"{text:>{width}}"
        print(line)


def print_adversaries(tables):
    for column, (what, form) in enumerate((("taken / alive", ".2f"), ("calls each", ".2f"))):
        whole = tables[WHOLE]
        print(f"\n{what:14}" + "".join(f"{name:>15}" for name in whole))
        for title, table in tables.items():
            texts = [text_of(table[name][column], None if title == WHOLE else whole[name][column], form)
                     for name in whole]
            print(f"{title:14}" + "".join(f"{text:>15}" for text in texts))


def print_times(folder, names, traces, short):
    print("\n" + f"{'time, to all':14}" + "".join(f"{which:>9}" for which in TIMES))
    for name in names:
        ratios = compare_times(folder / WHOLE / "bench", folder / name / "bench", traces, short)
        print(f"{name:14}" + "".join(f"{ratios.get(which, 0):9.2f}" for which in TIMES), flush=True)


def run(short, has_times, names):
    known = find_names()
    wrong = [name for name in names if name not in known]
    if wrong:
        raise SystemExit(f"src/base/ablate.h names no {', '.join(wrong)}")
    wanted = {WHOLE: ()} | {name: (name,) for name in names or known}
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for title, without in wanted.items():
            build(folder / title, without)
        first = folder / WHOLE
        traces = pool.make_traces(first / "bench/make_workload", folder, short)
        tables = {title: measure(folder / title / "tool/drystone", traces)
                  for title in wanted}
        for place in PLACES:
            print_place(place, tables)
        print_adversaries({title: oppose(folder / title / ADVERSARIES) for title in wanted})
        if has_times:
            print_times(folder, list(wanted)[1:], traces, short)
