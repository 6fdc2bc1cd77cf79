# SPDX-License-Identifier: Apache-2.0
"""Fit a model into a budget: measure it, have `drystone plan` plan it, run the plan.

    from drystone import plan as dp

    chain = dp.measure(model.layers, hidden, loss=loss_of)
    made = dp.plan(chain, "40GiB")
    run = dp.apply(model.layers, made, loss=loss_of)
    run(hidden).backward()

    print(dp.verify(chain, made, dp.watch(run, hidden)))

The planner is the drystone command, found by $DRYSTONE or in PATH; the knapsack is the
library's, found by $DRYSTONE_LIBRARY, beside that command, or by the system. Neither needs
PyTorch; all that measures or runs does, and is imported when it is asked for.
"""
from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from .._command import run_on, with_unit
from ._errors import PlanError as PlanError
from ._knapsack import knapsack as knapsack, solver as solver
from ._types import Json

if TYPE_CHECKING:
    from ._apply import Planned as Planned, apply as apply
    from ._measure import measure as measure
    from ._ranks import check_ranks as check_ranks, rank_hash as rank_hash, share as share
    from ._verify import Verdict as Verdict, verify as verify, watch as watch

# What imports torch, and where it is.
_NEED_TORCH = {"Planned": "_apply", "apply": "_apply", "measure": "_measure",
               "check_ranks": "_ranks", "rank_hash": "_ranks", "share": "_ranks",
               "Verdict": "_verify", "verify": "_verify", "watch": "_verify"}

__all__ = sorted(["PlanError", "knapsack", "plan", "solver", *_NEED_TORCH])


def __getattr__(name: str) -> Any:
    if name not in _NEED_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module("." + _NEED_TORCH[name], __package__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def plan(chain: Json, budget: int | str | None = None, *, method: str | None = None,
         options: Iterable[str] = (), command: str | None = None) -> Json:
    """The plan of a chain, as the command's JSON says it: a dict with "items".

    budget   of the device: bytes, or a text such as "40GiB"; None: the chain's own, or none
    method   "one-level", "nested", "none", "every", ...: see drystone-plan(1)
    options  more words for the command, such as ["--slots", "1000"]

    PlanError with the command's line when nothing fits: it says what the least budget is.
    """
    words = ["--json", "--timeline"]
    if budget is not None:
        words += ["--budget", with_unit(budget)]
    if method is not None:
        words += ["--method", method]
    made: Json = run_on(chain, ["plan", *words], list(options), command, PlanError)
    if not made.get("feasible", True):
        floor = made.get("min_feasible_budget", {})
        raise PlanError(f"no plan fits {made.get('budget_bytes')} bytes: the least budget is "
                        f"{floor.get('bytes')}, for {floor.get('why')}", 1)
    return made
