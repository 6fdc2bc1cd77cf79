# SPDX-License-Identifier: Apache-2.0
"""How long the answers of `drystone mcp` are, and how long they take: `bench/run mcp [short]`

Every reading tool is asked about a recording of each kind: $DRY_TEST_TRACES, or the one that
`drystone demo` makes. The first page is what an assistant gets without asking for more; beside
it stands the whole answer, as text and as JSON with every row. "short" takes the smallest three.
"""
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "test/golden/mcp"))
import server  # noqa: E402

CALLS = {"info": ("info", {}), "explain": ("explain", {}), "top": ("top", {}),
         "top, free": ("top", {"free": True}), "steps": ("steps", {}), "sweep": ("sweep", {})}


def find_recordings(folder, count):
    traces = pathlib.Path(os.environ.get("DRY_TEST_TRACES", ROOT / "../shared/traces"))
    found = sorted(traces.glob("pytorch/*.pickle"), key=lambda path: path.stat().st_size)
    return found[:count] or list(folder.glob("*.pickle"))


def measure_tool(s, name, path, **given):
    """Bytes of the first page, of all text and of all JSON; milliseconds of the first."""
    begin = time.monotonic()
    answer = s.ask("tools/call", name=name, arguments={"file": str(path), **given})
    ms = (time.monotonic() - begin) * 1000
    if answer["result"]["isError"]:
        return None
    s.longest = 0
    s.ask("tools/call", name=name, arguments={"file": str(path), **given})
    first = s.longest
    whole = [len(s.pages(name, file=str(path), max_bytes=1000000, **given, **more)[0].encode())
             for more in ({}, {"format": "json", **({"rows": 0} if name == "top" else {})})]
    return first, *whole, ms


def print_table(rows, recordings):
    print(f"{len(recordings)} recordings, {sum(p.stat().st_size for p in recordings) >> 10} KiB")
    print(f"{'':<12}{'first page, bytes':>22}{'text':>10}{'JSON':>10}{'ms':>16}")
    print(f"{'tool':<12}{'median':>11}{'longest':>11}{'longest':>10}{'longest':>10}"
          f"{'median':>8}{'most':>8}")
    for name, results in rows.items():
        first, text, full, ms = zip(*results)
        print(f"{name:<12}{statistics.median(first):>11.0f}{max(first):>11}{max(text):>10}"
              f"{max(full):>10}{statistics.median(ms):>8.0f}{max(ms):>8.0f}")


def run(is_short, machine, build):
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        build(folder / "build", ["tool/drystone"])
        tool = folder / "build/tool/drystone"
        subprocess.run([tool, "demo", "--capacity", "24GiB", "--output", folder / "demo.pickle"], check=True,
                       stdout=subprocess.DEVNULL)
        recordings = find_recordings(folder, 3 if is_short else 100)
        s = server.Server(tool, folder, recordings[0].parent)
        rows = {title: [r for r in (measure_tool(s, name, path, **given)
                                    for path in recordings) if r]
                for title, (name, given) in CALLS.items()}
        s.longest = 0
        s.ask("tools/list")
        listed = s.longest
        s.end()
    print(machine)
    print_table(rows, recordings)
    print(f"the list of tools: {listed} bytes")
