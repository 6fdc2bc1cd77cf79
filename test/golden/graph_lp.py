#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Mixed integer programs of graphs, solved by others: graph_lp.py PROGRAM

Whichever of cbc and glpsol is installed solves what dry_graph_write_lp() writes. The unit
linear graphs have known optima. Of random graphs the optimum is never below that of our exact
search, which may run a node twice in a stage; it was the same in all of 200. Skipped where there
is no solver.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

MIB = 1 << 20
LINEAR = [(2, 4, 5), (2, 3, 6), (4, 5, 10), (4, 4, 11), (4, 3, 15), (6, 7, 14), (6, 5, 16)]
RANDOM = 60


def solve_by_cbc(lp, answer):
    subprocess.run(["cbc", lp, "solve", "solution", answer], check=True, timeout=1800,
                   stdout=subprocess.DEVNULL)
    first = answer.read_text().splitlines()[0]
    if "Infeasible" in first or "infeasible" in first:
        return None
    assert first.startswith("Optimal"), first
    return round(float(first.split()[-1]))


def solve_by_glpsol(lp, answer):
    subprocess.run(["glpsol", "--lp", lp, "-o", answer], check=True, timeout=1800,
                   stdout=subprocess.DEVNULL)
    text = answer.read_text()
    status = re.search(r"^Status:\s+(.*)$", text, re.M).group(1)
    if status != "INTEGER OPTIMAL":
        return None
    return round(float(re.search(r"^Objective:\s+time = (\S+)", text, re.M).group(1)))


SOLVERS = {"cbc": solve_by_cbc, "glpsol": solve_by_glpsol}


def write(program, folder, *args):
    """The file, and the best time by our own search; None: there is no plan."""
    run = subprocess.run([program, *map(str, args)], check=True, capture_output=True,
                         text=True, timeout=1800)
    lp = folder / "graph.lp"
    lp.write_text(run.stdout)
    assert max(map(len, run.stdout.splitlines())) <= 255, "a line is too long"
    best = run.stderr.strip()
    return lp, None if best == "none" else int(best)


def check_linear(program, solve, folder):
    for n, budget, expected in LINEAR:
        lp, best = write(program, folder, "linear", n, budget * MIB)
        found = solve(lp, folder / "answer")
        assert found == best == expected, (n, budget, found, best, expected)


def check_random(program, solve, folder):
    equal = feasible = 0
    for seed in range(RANDOM):
        budget = 512 * (5 + seed % 9)
        lp, best = write(program, folder, "random", seed, budget)
        found = solve(lp, folder / "answer")
        assert found is None or (best is not None and found >= best), (seed, found, best)
        feasible += best is not None
        equal += best is not None and found == best
    print(f"random graphs: {equal} of {feasible} the same, {RANDOM - feasible} without a plan")
    assert feasible >= 20 and feasible < RANDOM and equal >= feasible - 1


def main():
    names = [name for name in SOLVERS if shutil.which(name)]
    if not names:
        print("SKIPPED: neither cbc nor glpsol is installed")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            print(f"by {name}")
            check_linear(sys.argv[1], SOLVERS[name], pathlib.Path(folder))
            check_random(sys.argv[1], SOLVERS[name], pathlib.Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
