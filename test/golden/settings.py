#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What drystone-pool(5) says a setting of paged may be, asked of the command:
settings.py TOOL

Every option that src/place/paged/record/paged_conf.c knows is in that page, with its range, and named in
drystone-replay(1); what lies in the range is taken, and the next value outside is refused.
"""
import pathlib
import re
import subprocess
import sys

root = pathlib.Path(__file__).resolve().parents[2]
tool = pathlib.Path(sys.argv[1]).resolve()
failures = []


def is_taken(setting):
    done = subprocess.run(
        [tool, "replay", root / "test/data/small.trace", "--capacity", "1GiB", "--json",
         "--place", "paged:" + setting], capture_output=True, text=True)
    refused = done.returncode == 2 and "not a value it can have" in done.stderr
    if not refused and done.returncode > 1:
        sys.exit(f"{setting}: {done.stderr}")
    return not refused


def expect(name, values, taken):
    failures.extend(f"{name}:{value} is {'refused' if taken else 'taken'}"
                    for value in values if is_taken(f"{name}:{value}") != taken)


def check_number(name, about):
    """The range is "From A to B" or "From A up"; a step is that of the option."""
    found = re.search(r"From ([\d.]+) (?:to ([\d.]+)|up)[.;]", about)
    if not found:
        return failures.append(f"{name}: its range is not told")
    step = 0.01 if re.search(r"_(FACTOR|FRACTION)_$", about.splitlines()[0]) else 1
    least = float(found[1])
    expect(name, [found[1]], True)
    expect(name, [f"{least - step:g}", "", "1e0", "x"], False)
    expect(name, ["0.5" if least == 0 else "1.5"], step < 1)
    if found[2]:
        expect(name, [found[2]], True)
        expect(name, [f"{float(found[2]) + step:.10g}"], False)


page = (root / "doc/drystone-pool.5.scd").read_text()
page = page.split("# OPTIONS OF PAGED")[1].split("\n# ")[0]
entries = {}
for entry in re.findall(r"^\*\w+:\*_.*\n(?:\t.*\n)+", page, re.MULTILINE):
    for name, kind in re.findall(r"\*(\w+):\*_(\w+)_", entry.splitlines()[0]):
        entries[name] = (kind, entry)
code = (root / "src/place/paged/record/paged_conf.c").read_text()
known = set(re.findall(r'\{"(\w+)", KIND_', code))
if known != set(entries) or len(known) < 9:
    failures.append(f"known: {sorted(known)}; in the page: {sorted(entries)}")
replay = (root / "doc/drystone-replay.1.scd").read_text()
replay = replay.split("\t*paged* knows ")[1].split("\n\n")[0]
failures += [f"{name} is not in drystone-replay(1)"
             for name in sorted(known) if f"*{name}*" not in replay]
for name, (kind, entry) in entries.items():
    if kind == "SWITCH":
        expect(name, ["True", "true", "1", "False", "false", "0"], True)
        expect(name, ["TRUE", "on", "2", ""], False)
    else:
        check_number(name, entry)
print("\n".join(failures) or f"{len(entries)} settings")
sys.exit(failures != [])
