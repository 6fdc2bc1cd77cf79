#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What pages `drystone pages` lists of another machine, and that what it measures is whole:
pages.py TOOL STAND_IN

STAND_IN is a driver without a GPU, libcuda.so.1.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

tool = pathlib.Path(sys.argv[1]).resolve()
POOL = "hugepages-2048kB"
FILES = {
    "sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]",
    "sys/kernel/mm/transparent_hugepage/hpage_pmd_size": "2097152",
    f"sys/kernel/mm/hugepages/{POOL}/nr_hugepages": "1536",
    f"sys/kernel/mm/hugepages/{POOL}/free_hugepages": "1200",
    f"sys/kernel/mm/hugepages/{POOL}/resv_hugepages": "100",
    f"sys/kernel/mm/hugepages/{POOL}/surplus_hugepages": "1",
    f"sys/kernel/mm/hugepages/{POOL}/nr_overcommit_hugepages": "8",
    "sys/devices/system/node/online": "0-1",
    "sys/devices/system/node/has_memory": "0-1",
    "sys/devices/system/node/node0/meminfo": "Node 0 MemTotal: 4194304 kB",
    "sys/devices/system/node/node1/cpulist": "0-3",
    f"sys/devices/system/node/node0/hugepages/{POOL}/nr_hugepages": "1024",
    f"sys/devices/system/node/node0/hugepages/{POOL}/free_hugepages": "700",
    f"sys/devices/system/node/node1/hugepages/{POOL}/nr_hugepages": "512",
    f"sys/devices/system/node/node1/hugepages/{POOL}/free_hugepages": "500",
}
EXPECTED = """\
  where    pages                 size  in the pool   free  may grow by
  machine  base              4.00 KiB
  machine  transparent, off  2.00 MiB
  machine  pool              2.00 MiB        1 536  1 100            7
  node 0   pool              2.00 MiB        1 024    700            0
  node 1   pool              2.00 MiB          512    500            0
"""


def run(*words):
    return subprocess.run([tool, "pages", *words], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=1800)


def need(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


with tempfile.TemporaryDirectory() as root:
    for path, text in FILES.items():
        file = pathlib.Path(root) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
    shown = run("--root", root).stdout
    need(f"\n\n{EXPECTED}\n---" in shown, f"the list is not in\n{shown}")
    one = run("--root", root, "thp-enabled").stdout
    need("in the pool" not in one and "(thp-enabled)" in one, f"one finding alone is\n{one}")
    listed = json.loads(run("--root", root, "--json").stdout)
need(listed["schema"] == "drystone.pages/2", "the schema")
need(listed["pages"][2] == {"kind": "pool", "page_bytes": 2 << 20, "pages": 1536,
                            "free_pages": 1100, "growth_pages": 7}, "the pool")
need(listed["pages"][1]["off"] is True, "transparent pages are off")
need([n["node"] for n in listed["nodes"]] == [0, 1], "the nodes")
need(listed["nodes"][0]["total_bytes"] == 4 << 30 and listed["nodes"][1]["total_bytes"] is None,
     "memory of nodes, known or not")
need(listed["nodes"][1]["pages"][2]["free_pages"] == 500, "the pool of node 1")

for words in (["bench"], ["--bench", "thp-enabled"], ["--only", "pages"], ["--rounds", "3"],
              ["--bench", "--only", "x"], ["--bench", "--here"], ["--bench", "--rounds", "0"],
              ["--bench", "--rounds", "100"], ["--bench", "--bytes", "1MiB"],
              ["--bench", "--bytes", "33GiB"], ["--bench", "--root", "/"],
              ["--bench", "--apply"], ["--bench", "--purpose", "cpu"]):
    done = run(*words)
    need(done.returncode == 2 and done.stderr, f"{words} is refused: {done}")

for root in ("/nothing/here", __file__):
    done = run("--root", root)
    need(done.returncode == 3 and done.stderr, f"--root {root} is refused: {done}")

done = run("--bench", "--only", "pages", "--bytes", "16MiB", "--rounds", "2", "--json")
need(done.returncode == 0, done.stderr)
measured = json.loads(done.stdout)
need(measured["schema"] == "drystone.pages-bench/1" and measured["bytes"] == 16 << 20, "head")
need(measured["pages"][0]["kind"] == "base" and measured["malloc"] == [], "what was asked")
for kind in measured["pages"]:
    for key in ("populate_ns", "memset_ns", "unmap_ns", "load_ns", "chained_load_ns"):
        need(kind[key] > 0, f"{key} of {kind['kind']}")
for bar in measured["bars"]:
    need(bar["met"] == (bar["ratio"] >= bar["wanted"] if bar["wanted"] else None), bar)

with_driver = subprocess.run(
    [tool, "pages", "--bench", "--only", "pages", "--bytes", "16MiB", "--rounds", "2", "--json"],
    env=os.environ | {"LD_LIBRARY_PATH": str(pathlib.Path(sys.argv[2]).resolve().parent)},
    capture_output=True, text=True, timeout=1800)
need(with_driver.returncode == 0, with_driver.stderr)
kind = json.loads(with_driver.stdout)["pages"][0]
need(kind["pin_ns"] and kind["unpin_ns"], f"pinned by the driver: {kind}")

here = json.loads(run("--bench", "--only", "malloc", "--here", "--json").stdout)["here"]
need([row["bytes"] >> 20 for row in here] == [1, 6, 32, 64], "the sizes")
need(all(row["ns"] > 0 for row in here), "the times")

mallocs = json.loads(run("--bench", "--only", "malloc", "--rounds", "1", "--json").stdout)
need(mallocs["pages"] == [] and mallocs["malloc"][0]["times"], "malloc as it is")
names = {m["name"]: m["times"] for m in mallocs["malloc"]}
need(len(names) == 8, "each malloc once")
for name, times in names.items():
    if times is None:
        print(f"SKIPPED: {name} is not here, or does not start in this build")
