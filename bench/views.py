# SPDX-License-Identifier: Apache-2.0
"""How long `drystone view` takes to be up and to answer: `bench/run views [EVENTS | short]`

A snapshot of EVENTS events (default 10000000) is generated and served. Tiles are drawn by chance
from each level, moments and pages of events from the device, seeded. Beside the time by the clock
stands the server's own of a core, which other programs of the machine disturb less. With node, the
packages of viewer/ and a Chromium, the page is opened, too: viewer/test/measure.mjs.
"""
import json
import os
import pathlib
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test/view"))
import view_server  # noqa: E402

SEED = 20261127
ASKED = 9  # times, of each kind
UP_WANTED_S = 8
ANSWER_WANTED_MS = 50
DRAWN_WANTED_MS = 100
FIRST_WANTED_MS = 1000  # from the address to the picture
CHROMIUM = ("chromium", "chromium-headless-shell", "google-chrome")


def cpu_seconds(pid):
    """What the process has used of the cores so far."""
    tasks = pathlib.Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def peak_bytes(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def questions(device, rng):
    """Every kind of question, with its keys."""
    for level in range(device["levels"]):
        yield (f"tile of level {level}",
               [f"0/0/tile/{level}/{rng.randrange(1 << level)}" for _ in range(ASKED)])
    for noun in ("map", "owners"):
        yield noun, [f"0/0/{noun}/{rng.randrange(device['moments'])}" for _ in range(ASKED)]
    pages = device["events"] // 1024 + 1
    yield "1,024 events", [f"0/0/events/{rng.randrange(pages)}" for _ in range(ASKED)]
    yield "stacks", ["0/stacks"] * ASKED
    yield "about", ["about"] * ASKED


def measure(s, keys):
    """Bytes of the longest answer, milliseconds of each, and of a core for one."""
    took, longest, before = [], 0, cpu_seconds(s.process.pid)
    for key in keys:
        begin = time.monotonic()
        status, body, _ = s.answer(key)
        took.append((time.monotonic() - begin) * 1e3)
        assert status == 200, (key, status)
        longest = max(longest, len(body))
    return longest, took, (cpu_seconds(s.process.pid) - before) * 1e3 / len(keys)


def print_row(name, longest, took, core):
    wanted = ANSWER_WANTED_MS
    verdict = "" if statistics.median(took) <= wanted else "  not reached"
    print(f"{name:<18}{longest:>10}{statistics.median(took):>10.1f}{max(took):>8.1f}{core:>9.1f}"
          f"{wanted:>8}{verdict}")


def measure_server(tool, path):
    begin = time.monotonic()
    with view_server.Server(tool, path) as s:
        up = time.monotonic() - begin
        core, memory = cpu_seconds(s.process.pid), peak_bytes(s.process.pid)
        print(f"up in {up:.2f} s, {core:.2f} s of a core (wanted: {UP_WANTED_S} s); "
              f"{memory / 1e6:.0f} MB", flush=True)
        device = json.loads(s.answer("about")[1])["files"][0]["devices"][0]
        print(f"{'answer':<18}{'bytes':>10}{'ms':>10}{'most':>8}{'of core':>9}{'wanted':>8}")
        for name, keys in questions(device, random.Random(SEED)):
            print_row(name, *measure(s, keys))
        print(f"{peak_bytes(s.process.pid) / 1e6:.0f} MB at most")
        measure_page(f"http://127.0.0.1:{s.port}/{s.token}/")


def measure_page(url):
    viewer = ROOT / "viewer"
    chromium = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, CHROMIUM)), None)
    if not chromium or not shutil.which("node") or not (viewer / "node_modules").exists():
        print("the page was not opened: that takes node, a Chromium, and `npm ci` in viewer")
        return
    done = subprocess.run(["node", viewer / "test/measure.mjs", chromium, url],
                          capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    print(f"\n{'in Chromium, 1920 x 1080':<26}{'ms':>8}{'most':>8}{'drawing':>9}{'most':>8}{'wanted':>8}")
    for row in told["rows"]:
        took, drawn = ([take[key] for take in row["takes"]] for key in ("ms", "drawn"))
        print(f"{row['name']:<26}{statistics.median(took):>8.0f}{max(took):>8.0f}"
              f"{statistics.median(drawn):>9.1f}{max(drawn):>8.1f}{DRAWN_WANTED_MS:>8}")
    print(f"a first picture is wanted in {FIRST_WANTED_MS} ms; heap {told['heap_bytes'] / 2 ** 20:.0f} MiB")


def run(events, machine, build):
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        build(folder / "build", ["bench/make_snapshot", "tool/drystone"])
        path = folder / "snapshot.pickle"
        subprocess.run([folder / "build/bench/make_snapshot", str(events), path], check=True)
        print(machine, f"{os.getloadavg()[0]:.1f} others run")
        print(f"snapshot: {events} events asked for, {path.stat().st_size / 1e6:.0f} MB")
        measure_server(folder / "build/tool/drystone", path)
