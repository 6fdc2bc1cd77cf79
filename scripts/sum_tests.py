#!/usr/bin/env python3
"""Count the results in meson's test logs: sum_tests.py [--total] BUILD-DIR..."""
import collections
import json
import pathlib
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
total = "--total" in sys.argv
counts = collections.Counter()
for build in [a for a in sys.argv[1:] if a != "--total"]:
    log = pathlib.Path(build) / "meson-logs" / "testlog.json"
    results = []
    if log.exists():
        results = [json.loads(line)["result"] for line in log.read_text().splitlines()]
    if not results:
        print(f"{build}: did not build or ran no test")
        counts["failed"] += 1
    for result in results:
        kind = "passed" if result in PASSED else "skipped" if result == "SKIP" else "failed"
        counts[kind] += 1
line = f"{counts['passed']} passed, {counts['failed']} failed"
if counts["skipped"]:
    line += f", {counts['skipped']} skipped"
print(line if total else f"   {line}")
sys.exit(total and counts["failed"] != 0)
