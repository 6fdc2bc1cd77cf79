#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A GPT under three budgets: promised, alive, time, and whether the gradients are the same.

    python3 example/auto_checkpoint.py

auto_checkpoint() finds the layers, measures them without running anything, plans, and runs the
plan. The model is called as before.
"""
import argparse
import pathlib
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

import torch
import drystone
import small_gpt

MIB = 1 << 20


def step(model, loss, example):
    model.zero_grad(set_to_none=True)
    torch.manual_seed(1)
    begin = time.perf_counter()
    loss(model(example)).backward()
    return time.perf_counter() - begin, [p.grad for p in model.parameters()]


def median_of(model, loss, example, repeats):
    step(model, loss, example)
    return statistics.median(step(model, loss, example)[0] for _ in range(repeats))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--shares", default="0.8,0.6,0.45",
                        help="budgets: parts of what a step takes without (0.8,0.6,0.45)")
    args = parser.parse_args()
    stages, loss, tokens = small_gpt.make(args.layers)
    model, example = torch.nn.Sequential(*stages), tokens(args.batch)
    base, expected = median_of(model, loss, example, args.repeats), step(model, loss, example)[1]
    whole = drystone.auto_checkpoint(model, example, "1TB", loss=loss)
    whole.undo()
    print(f"a step takes {whole.peak_bytes / MIB:.1f} MiB, weights and gradients among them")
    print(f"{'budget':>12}{'promised':>12}{'seen':>12}{'time':>7}{'planned':>9}  gradients")
    is_fine = True
    for share in map(float, args.shares.split(",")):
        budget = int(share * whole.peak_bytes)
        auto = drystone.auto_checkpoint(model, example, budget, loss=loss)
        seen = auto.verify()
        beyond = auto.peak_bytes - seen.predicted_peak  # weights and the input
        taken = median_of(model, loss, example, args.repeats)
        is_same = all(map(torch.equal, expected, step(model, loss, example)[1]))
        is_fine = is_fine and is_same
        auto.undo()
        print(f"{budget / MIB:>8.1f} MiB{auto.peak_bytes / MIB:>8.1f} MiB"
              f"{(seen.measured_peak + beyond) / MIB:>8.1f} MiB{taken / base:>7.2f}"
              f"{1 + auto.report.time_added:>9.2f}  {'same' if is_same else 'DIFFER'}")
    return 0 if is_fine else 1


if __name__ == "__main__":
    sys.exit(main())
