# SPDX-License-Identifier: Apache-2.0
"""Fit a model into a budget: measure it, have `drystone plan` plan it, run the plan.

    from drystone import plan as dp

    chain = dp.measure(model.layers, hidden, loss=loss_of)
    made = dp.plan(chain, "40GiB")
    run = dp.apply(model.layers, made, loss=loss_of)
    run(hidden).backward()

    print(dp.verify(chain, made, dp.watch(run, hidden)))

The planner is the drystone command, found by $DRYSTONE or in PATH; the knapsack is the
library's, found by $DRYSTONE_LIBRARY, beside that command, or by the system.
"""
from ._apply import Planned, apply
from ._command import run_on
from ._errors import PlanError
from ._knapsack import knapsack, solver
from ._measure import measure
from ._ranks import check_ranks, rank_hash, share
from ._verify import Verdict, verify, watch

__all__ = ["PlanError", "Planned", "Verdict", "apply", "check_ranks", "knapsack", "measure",
           "plan", "rank_hash", "share", "solver", "verify", "watch"]


def plan(chain, budget=None, *, method=None, options=(), command=None):
    """The plan of a chain, as the command's JSON says it: a dict with "items".

    budget   of the device: bytes, or a text such as "40GiB"; None: the chain's own, or none
    method   "one-level", "nested", "none", "every", ...: see drystone-plan(1)
    options  more words for the command, such as ["--slots", "1000"]

    PlanError with the command's line when nothing fits: it says what the least budget is.
    """
    words = ["--json", "--timeline"]
    if budget is not None:
        words += ["--budget", str(budget)]
    if method is not None:
        words += ["--method", method]
    made = run_on(chain, ["plan", *words], list(options), command)
    if not made.get("feasible", True):
        floor = made.get("min_feasible_budget", {})
        raise PlanError(f"no plan fits {made.get('budget_bytes')} bytes: the least budget is "
                        f"{floor.get('bytes')}, for {floor.get('why')}", 1)
    return made
