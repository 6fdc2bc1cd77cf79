#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The sum of all tests (scripts/sum_tests.py) lists what was skipped, and why: sums.py"""
import json
import pathlib
import subprocess
import sys
import tempfile

SUM = pathlib.Path(__file__).resolve().parents[2] / "scripts/sum_tests.py"


def entry(name, result, stdout="", stderr=""):
    return {"name": f"drystone:unit / {name}", "result": result, "stdout": stdout, "stderr": stderr}


def add_up(*builds):
    """(exit status, lines) of the sum of builds, each a list of a log's entries."""
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for number, entries in enumerate(builds):
            log = pathlib.Path(folder, str(number), "meson-logs/testlog.json")
            log.parent.mkdir(parents=True)
            log.write_text("".join(json.dumps(e) + "\n" for e in entries))
            names.append(log.parents[1])
        done = subprocess.run([sys.executable, SUM, "--total", *names], capture_output=True,
                              text=True, check=False)
        assert done.stderr == "", done
        return done.returncode, done.stdout.splitlines()


tried = [entry("fine", "OK", "it is not SKIPPED\n"), entry("all", "SKIP", "x\nSKIPPED: no tmux\n"),
         entry("part", "OK", "SKIPPED: no pages\n", "SKIPPED in part: no node\n")]
assert add_up(tried, tried) == (0, ["skipped: all: no tmux", "skipped: part: no pages",
                                    "skipped: part: in part: no node",
                                    "4 passed, 0 failed, 2 skipped"])
assert add_up([{"result": "OK"}, entry("silent", "SKIP", "there is no tmux\n")]) == (
    1, ["skipped: silent: it does not say why", "1 passed, 1 failed"])
assert add_up([entry("one", "FAIL")]) == (1, ["0 passed, 1 failed"])
