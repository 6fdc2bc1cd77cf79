#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What commands say of the record that `drystone demo` writes: demo.py TOOL"""
import json
import pathlib
import subprocess
import sys
import tempfile

tool = pathlib.Path(sys.argv[1]).resolve()


def run(*args, code=0):
    done = subprocess.run([tool, *args], capture_output=True, text=True)
    if done.returncode != code:
        sys.exit(f"{args}: {done.returncode}: {done.stderr}")
    return done.stdout


def check_recommend(path):
    """A loss is told of nothing that was not searched to its smallest device."""
    args = ["sweep", path, "--capacity", "40GiB", "--without", "expandable"]
    told = json.loads(run(*args, "--json"))
    step = told["capacity_step_bytes"]
    for row in told["candidates"]:
        gain = row["gain_bytes"]
        if gain is not None and gain < 0:
            assert row["runs_on_bytes"] - row["fails_on_bytes"] <= step, row
    text = run(*args)
    assert "<40.00 GiB" not in text and "+26" not in text, text
    assert "0 instead of 0" not in text, text


def check_steps(path):
    """Every event is in one step."""
    told = json.loads(run("steps", path, "--json"))
    assert sum(s["events"] for s in told["steps"]) == told["events"], told["steps"]


with tempfile.TemporaryDirectory() as folder:
    snapshot = folder + "/run.pickle"
    run("demo", "-o", snapshot)
    check_recommend(snapshot)
    check_steps(snapshot)
    assert run("demo", "-o", folder + "/none/run.pickle", code=4) == ""
