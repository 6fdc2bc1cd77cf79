# SPDX-License-Identifier: Apache-2.0
"""Optimizers step weight by weight, not on lists of all weights at once.

A step on lists makes temporaries as large as all weights. Optimizers made from here on have
foreach=False, but for fused ones, which make none. Numbers stay the same. A step takes more and
smaller kernels: some milliseconds for a model of many weights.
"""
from __future__ import annotations

from typing import Any

from torch.optim.optimizer import Optimizer

from ._run import Run
from ._wrap import Former, wrap

NAME, NUMBERS, HELPS = "foreach", "same", "step"
TEXT = "the optimizer steps weight by weight (foreach=False)"
PATCH = "optimizer = torch.optim.AdamW(model.parameters(), foreach=False)\n"
UNSEEN = "no optimizer that steps on lists of weights was made"


def begin(run: Run, value: Any) -> None:
    def instead(former: Former, optimizer: Any, params: Any, defaults: Any, *more: Any) -> Any:
        steps_on_lists = isinstance(defaults, dict) and "foreach" in defaults and \
            defaults["foreach"] is not False and not defaults.get("fused")
        if steps_on_lists and value is not None:
            defaults["foreach"] = False
            run.apply(NAME, value)
        result = former(optimizer, params, defaults, *more)
        is_default = any(weight.is_cuda for group in optimizer.param_groups
                         for weight in group["params"])
        if steps_on_lists and value is None and (is_default or defaults["foreach"]):
            run.offer(NAME, [True])
        return result

    wrap(Optimizer, "__init__", instead)
