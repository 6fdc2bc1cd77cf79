#!/usr/bin/env python3
"""Count the results in meson's test logs: sum_tests.py [--total] BUILD-DIR...

The total lists what was skipped, by the lines of a test that begin with SKIPPED. A test that
is skipped without one has failed.
"""
import collections
import json
import pathlib
import sys

PASSED = {"OK", "EXPECTEDFAIL"}
total = "--total" in sys.argv
counts = collections.Counter()
skipped = {}  # lines, each once, in their order
for build in [a for a in sys.argv[1:] if a != "--total"]:
    log = pathlib.Path(build) / "meson-logs" / "testlog.json"
    tests = []
    if log.exists():
        tests = [json.loads(line) for line in log.read_text().splitlines()]
    if not tests:
        print(f"{build}: did not build or ran no test")
        counts["failed"] += 1
    for test in tests:
        result, name = test["result"], test.get("name", "").split(" / ")[-1]
        said = (test.get("stdout", "") + "\n" + test.get("stderr", "")).splitlines()
        reasons = [line[len("SKIPPED"):].lstrip(": ") for line in said if line.startswith("SKIPPED")]
        kind = "skipped" if result == "SKIP" and reasons else "failed"
        counts["passed" if result in PASSED else kind] += 1
        if result == "SKIP" and not reasons:
            reasons = ["it does not say why"]
        skipped |= {f"skipped: {name}: {reason}": None for reason in reasons}
line = f"{counts['passed']} passed, {counts['failed']} failed"
if counts["skipped"]:
    line += f", {counts['skipped']} skipped"
if total:
    print("".join(f"{reason}\n" for reason in skipped), end="")
print(line if total else f"   {line}")
sys.exit(total and counts["failed"] != 0)
