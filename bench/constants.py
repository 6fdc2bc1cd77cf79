# SPDX-License-Identifier: Apache-2.0
"""What each number of paged and its forecast decides: `bench/run constants [FACTOR] [NAME...]`

Every `#define` of src/place/paged and src/place/forecast with a number in it is divided and
multiplied by FACTOR (default 4), one at a time, in a copy of the sources. A build of each replays
the traces of `bench/run pool` and the programs of test/prop/place_adversary.c, as `bench/run ablate`
does. A line tells what changed, in percent of the figure with the number as it is: "most" is the
worst trace, an adversary is the program that changed most, and tests are those of these modules that
fail. "refused" is a number that an assertion ties to another one. Numbers whose value nothing here
can see come last: their comments say what they bound.
"""
import concurrent.futures
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import textwrap

import ablate
import pool

ROOT = ablate.ROOT
MODULES = ("src/place/paged", "src/place/forecast")
DEFINE = re.compile(r"^#define ([A-Z]\w+)((?:[ \t]|\\\n)+)([^\n]*?)((?:[ \t]*/\*.*)?)$", re.MULTILINE)
SIZES = re.compile(r"\d|DRYI_[KMG]IB")
# Formats of records and options, what follows from other numbers, and tables of a fixed order.
FIXED = ("NIL GRAIN GRAIN_SHIFT OCTAVE_COUNT BIN_COUNT LEVEL_COUNT LEAF_COUNT LOCAL_STATS STAT_COUNT "
         "RECORDS_ONCE RUN_MAX TRIED_COUNT WORK_MAX RING_MAX NAP_MAX FACTOR ORDER_COUNT FORECAST_GRAIN "
         "REQUEST_LIMIT RESERVED_LIMIT SMALL_MAX DIGITS_MAX").split()
CPU_SECONDS_MAX = 300  # of a program that a number has made endless
TESTS = tuple(f"test/unit/test_{name}" for name in (
    "forecast paged_cache paged_divider paged_layout paged_oom paged_recycle paged_spot places "
    "pool_packing").split())
FIGURES = ("reserved", "reserved at most", "smallest", "smallest at most", "calls", "driver's time",
           "moved", "steady", "steady calls")


def find_constants():
    """[(name, file, text of the number)]"""
    found = []
    for module in MODULES:
        for path in sorted((ROOT / module).rglob("*.[ch]")):
            for match in DEFINE.finditer(path.read_text()):
                if SIZES.search(match[3]) and not re.search(r"UINT\d+_MAX|NONE", match[3]) and \
                        match[1] not in FIXED:
                    found.append((match[1], str(path.relative_to(ROOT)), match[3]))
    return found


def scale(copy, file, name, divisor, factor):
    """Change the number in the copy of its file."""
    def change(match):
        if match[1] != name:
            return match[0]
        return f"#define {name} (({match[3]}) * {factor} / {divisor}){match[4]}"
    path = copy / file
    shutil.copyfile(ROOT / file, path)
    if factor != divisor:
        path.write_text(DEFINE.sub(change, path.read_text()))


def make(folder):
    result = subprocess.run(["ninja", "-C", folder, "tool/drystone", ablate.ADVERSARIES,
                             "bench/make_workload", *TESTS], check=False,
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return result.returncode == 0


def count_failures(folder):
    """How many tests of the modules fail; a program that stops counts as one."""
    def failures_of(test):
        result = subprocess.run([folder / test], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                text=True, errors="replace", check=False)
        failed = re.search(r"(\d+) FAILED TEST", result.stderr)
        return int(failed[1]) if failed else int(result.returncode != 0)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as workers:
        return sum(workers.map(failures_of, TESTS))


def measure(folder, traces):
    """Columns of ablate's table with the plan, then adversaries, then failures. None: refused."""
    if not make(folder):
        return None
    try:
        columns = ablate.columns_of(ablate.measure(folder / "tool/drystone", traces)["paged"])
    except (subprocess.CalledProcessError, ValueError):
        return None
    return ([figure for figure, _ in columns], ablate.oppose(folder / ablate.ADVERSARIES),
            count_failures(folder))


def percent(figure, whole):
    if abs(figure - whole) <= 0.0005 * abs(whole):
        return "="
    return f"{100 * (figure / whole - 1):+.1f}" if whole else f"{figure:g}"


def change_of_adversaries(adversaries, whole, column):
    """The largest change of any program, and its name."""
    if set(adversaries) != set(whole):
        return "stops"
    worst = max(whole, key=lambda name: abs(adversaries[name][column] - whole[name][column]) /
                max(whole[name][column], 0.01))
    text = percent(adversaries[worst][column], whole[worst][column])
    return "=" if text == "=" else f"{text} by {worst}"


def changes_of(figures, whole):
    """What changed, in words; empty: nothing."""
    if not figures:
        return "refused"
    changes = {head: percent(*pair) for head, *pair in zip(FIGURES, figures[0], whole[0])}
    for column, head in enumerate(("taken", "asked of the driver")):
        changes[head] = change_of_adversaries(figures[1], whole[1], column)
    changes["tests"] = str(figures[2] - whole[2] or "=")
    return ", ".join(f"{head} {text}" for head, text in changes.items() if text != "=")


def copy_sources(copy):
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True,
                           stdout=subprocess.PIPE).stdout.decode().split("\0")
    for name in names:
        if name and (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
            shutil.copymode(ROOT / name, copy / name)


def run(factor, names):
    constants = [found for found in find_constants() if not names or found[0] in names]
    if not constants:
        raise SystemExit(f"no number of {' or '.join(MODULES)} is named so")
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS_MAX, resource.RLIM_INFINITY))
    with tempfile.TemporaryDirectory() as scratch:
        copy, folder = pathlib.Path(scratch) / "copy", pathlib.Path(scratch) / "build"
        copy.mkdir()
        copy_sources(copy)
        subprocess.run(["meson", "setup", folder, copy, "--buildtype=debugoptimized",
                        "-Dassertions=fast"], check=True, stdout=subprocess.DEVNULL)
        make(folder)
        traces = pool.make_traces(folder / "bench/make_workload", pathlib.Path(scratch), False)
        whole = measure(folder, traces)
        unseen = []
        for name, file, text in constants:
            lines = []
            for sign, divisor, multiple in (("/", factor, 1), ("*", 1, factor)):
                scale(copy, file, name, divisor, multiple)
                lines.append((sign, changes_of(measure(folder, traces), whole)))
            scale(copy, file, name, 1, 1)
            for sign, changes in lines:
                if changes:
                    print(f"{name} {sign} {factor} ({pathlib.Path(file).name})\n" +
                          textwrap.indent(textwrap.fill(changes, 76), "    "), flush=True)
            if not any(changes for _, changes in lines):
                unseen.append(f"{name} {text}")
        print(textwrap.fill(f"nothing changes: {', '.join(unseen)}", 80))
