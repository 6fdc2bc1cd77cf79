#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""torch.compile's memory budgets for a GPT: saved bytes promised, and the peak that comes of it.

    python3 example/compile_budget.py
    drystone dry-run -- python3 example/compile_budget.py --cuda     # no GPU, Inductor's code

The peak decides which budget is taken. It need not fall with the budget.
"""
import argparse
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "python"))

import torch
import drystone
import small_gpt


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--budget", default="100GB", help="of a step (100GB)")
    parser.add_argument("--budgets", default="1,0.75,0.5,0.25,0",
                        help="the compiler's, to be judged (1,0.75,0.5,0.25,0)")
    parser.add_argument("--cuda", action="store_true")
    args = parser.parse_args()
    stages, loss, tokens = small_gpt.make(args.layers)
    model, example = torch.nn.Sequential(*stages), tokens(args.batch)
    if args.cuda:
        model, example = model.cuda(), example.cuda()
    try:
        found = drystone.compile_budget(model, example, args.budget, loss=loss,
                                        budgets=[float(part) for part in args.budgets.split(",")])
    except drystone.plan.PlanError as why:
        print(why)
        return 1
    print(found)
    print(f"activation_memory_budget = {found.budget:.3g}: {found.peak_bytes} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
