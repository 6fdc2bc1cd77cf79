# SPDX-License-Identifier: Apache-2.0
"""Adam and AdamW keep their states in 8 bits: AdamW8bit of bitsandbytes or torchao, if installed.

Made in the place of torch.optim's at their construction; amsgrad is refused. Numbers become others,
within what 8 bits of a block's states tell. It costs next to nothing.
"""
from __future__ import annotations

import importlib
import importlib.util
from typing import Any

from ._adams import subscribe
from ._run import Run

NAME, NUMBERS, HELPS = "states_8bit", "other", "any"
TEXT = "Adam's states in 8 bits ({})"
PATCH = ("from {}.optim import AdamW8bit\n"
         "optimizer = AdamW8bit(model.parameters(), lr=lr)\n")
UNSEEN = "the program makes no Adam or AdamW of torch.optim"
PACKAGES = ("bitsandbytes", "torchao")
KEPT = ("params", "lr", "betas", "eps", "weight_decay")


def begin(run: Run, value: Any) -> None:
    there = [name for name in PACKAGES if importlib.util.find_spec(name)]
    if value is not None and value not in there:
        run.refuse(NAME, f"{value} is not installed")
        return

    def make(kind: Any, given: dict[str, Any]) -> Any:
        if given.get("amsgrad"):
            run.refuse(NAME, "amsgrad has no form of 8 bits")
            return None
        if value is None:
            run.offer(NAME, there)
            return None
        other = getattr(importlib.import_module(value + ".optim"), kind.__name__ + "8bit")
        run.apply(NAME, value)
        return other(**{name: given[name] for name in KEPT if name in given})

    if there:
        subscribe(make)
