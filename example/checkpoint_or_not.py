#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checkpoint against none, every other layer, every layer, and plans for a budget.

    python3 example/checkpoint_or_not.py

Each way runs a real step: what was promised stands beside what was alive, the time beside what
the plan says it takes, and the gradients must be those of the step without checkpoints. With the
same budget the planner may run stages again ("one-level", "nested"), or single operations of
them, or send what they save to the host. On a CPU that is a copy which nothing hides.
"""
import argparse
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

import torch
from drystone import plan as dp
import small_gpt

NO_LIMIT = 1 << 60
MIB = 1 << 20


def step(run, parameters, example):
    for parameter in parameters:
        parameter.grad = None
    torch.manual_seed(1)
    begin = time.perf_counter()
    run(example).backward()
    return time.perf_counter() - begin, [parameter.grad for parameter in parameters]


def without(chain, *keys):
    stages = [{key: value for key, value in stage.items() if key not in keys}
              for stage in chain["stages"]]
    return dict(chain, stages=stages)


def plans(chain, share):
    """(name, plan): by rules, and by the planner with a share of what none takes."""
    bare = without(chain, "operations", "options")
    for method, name in (("none", "nothing"), ("every", "every other stage"),
                         ("block", "each stage")):
        yield name, dp.plan(bare, NO_LIMIT, method=method)
    whole = dp.plan(bare, NO_LIMIT, method="none")["predicted"]["peak_bytes"]
    for name, offered, method in (("one-level", bare, "one-level"), ("nested", bare, "nested"),
                                  ("operations", without(chain, "options"), None),
                                  ("offload", without(chain, "operations"), None)):
        try:
            yield f"{name}, {share:.0%}", dp.plan(offered, int(whole * share), method=method)
        except dp.PlanError as why:
            print(f"{name}: {why}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--layers", type=int, default=8)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.5,
                        help="the planner's budget: of what the step takes without (0.5)")
    parser.add_argument("--link", type=float, default=25,
                        help="GB a second between device and host, for offload (25)")
    args = parser.parse_args()
    stages, loss, tokens = small_gpt.make(args.layers)
    example = tokens(args.batch)
    chain = dp.measure(stages, example, loss=loss, repeats=args.repeats, operations=True,
                       offload=args.link * 1e9, offload_least=1 << 16)
    parameters = [p for stage in stages for p in stage.parameters()]
    print(f"{'run again':<20}{'promised':>12}{'alive':>12}{'time':>8}{'planned':>9}  gradients")
    base, expected, is_fine = None, None, True
    for name, made in plans(chain, args.share):
        run = dp.apply(stages, made, chain=chain, loss=loss)
        taken = statistics.median(step(run, parameters, example)[0]
                                  for _ in range(args.repeats))
        gradients = step(run, parameters, example)[1]
        base, expected = base or taken, expected or gradients
        is_same = all(torch.equal(a, b) for a, b in zip(expected, gradients))
        is_fine = is_fine and is_same
        verdict = dp.verify(chain, made, dp.watch(run, example))
        print(f"{name:<20}{verdict.predicted_peak / MIB:>8.1f} MiB"
              f"{verdict.measured_peak / MIB:>8.1f} MiB{taken / base:>8.2f}"
              f"{1 + made['predicted']['overhead']:>9.2f}  {'same' if is_same else 'DIFFER'}")
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
