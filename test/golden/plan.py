#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `drystone plan` says agrees with itself: plan.py TOOL

For every chain of example/chains and every method: the timeline's highest moment is the peak,
which is within the budget; the plan that is written costs the same when it is judged, and has
the same hash; a plan made for one chain is noticed on another; pictures are XML; no line of
text is wider than 80 columns.
"""
import json
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

tool = pathlib.Path(sys.argv[1]).resolve()
chains = sorted((pathlib.Path(__file__).resolve().parents[2] / "example/chains").glob("*.json"))
METHODS = "one-level nested none block every sqrt greedy revolve".split()
folder = pathlib.Path(tempfile.mkdtemp())
failures = []


def check(is_true, *about):
    if not is_true:
        failures.append(" ".join(map(str, about)))


def run(*words):
    done = subprocess.run([tool, "plan", *words], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL)
    check("ERROR" not in done.stderr, words, done.stderr)
    return done.returncode, done.stdout


def stages_of(items):
    """All stages of a list of items, in order; what is inside a range covers it."""
    for item in items:
        first, last = item.get("save") or item.get("ckpt") or item["opt"]
        if "inner" in item:
            inner = list(stages_of(item["inner"]))
            check(inner == list(range(first, last + 1)), "inner items", item)
        yield from range(first, last + 1)


def check_plan(chain, method, budget):
    about = (chain.name, method, budget)
    out, svg = folder / "plan.json", folder / "plan.svg"
    words = [chain, "--method", method, "--budget", str(budget)]
    code, text = run(*words, "--json", "--timeline", "--output", out, "--svg", svg)
    if code == 3 and not text:  # revolve wants equal stages
        check(method == "revolve", *about, "is refused")
        return None
    plan = json.loads(text)
    check(plan["feasible"] == (code == 0), *about, "exit status", code)
    if code != 0:
        check(plan["min_feasible_budget"]["bytes"] > budget, *about, "the least budget")
        return plan
    predicted = plan["predicted"]
    check(predicted["peak_bytes"] <= budget, *about, "is over the budget")
    check(max(step[1] for step in plan["timeline"]) == predicted["peak_bytes"], *about,
          "the timeline's peak")
    count = sum(s.get("repeat", 1) for s in json.loads(chain.read_text())["stages"]) + 1
    check(list(stages_of(plan["items"])) == list(range(count)), *about, "stages covered")
    code, text = run(chain, "--judge", out, "--json", "--budget", str(budget))
    judged = json.loads(text)
    check(code == 0 and judged["predicted"] == predicted, *about, "judged otherwise")
    check(judged["plan_hash"] == plan["plan_hash"], *about, "another hash")
    for other in chains:
        if other != chain:  # it may lack an option, too
            code, text = run(other, "--judge", out)
            check(code == 3 or "ANOTHER chain" in text, *about, "taken for", other.name)
    xml.etree.ElementTree.parse(svg)
    return plan


def check_text(chain):
    code, text = run(chain, "--explain", "--timeline", "--curve", "--compare")
    check(code == 0, chain.name, "exit status", code)
    for line in text.split("\n")[1:]:  # the first has the file's name
        check(len(line) <= 80, chain.name, "is too wide:", line)
    points = json.loads(run(chain, "--curve", "--json")[1])["curve"]
    check(len(points) > 2, chain.name, "has no curve")
    for a, b in zip(points, points[1:]):
        check(a["peak_bytes"] < b["peak_bytes"] and a["time_ns"] > b["time_ns"],
              chain.name, "a point of the curve is no better than another")


for path in chains:
    everything = json.loads(run(path, "--method", "none", "--budget", "1TiB", "--json")[1])
    peak = everything["predicted"]["peak_bytes"]
    for name in METHODS:
        for part in (1.0, 0.7, 0.5, 0.1):
            check_plan(path, name, int(peak * part))
    check_text(path)
check(chains, "there are no chains")
print("\n".join(failures) if failures else f"{len(chains)} chains, every method: fine")
sys.exit(bool(failures))
