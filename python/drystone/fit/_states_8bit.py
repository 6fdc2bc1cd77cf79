# SPDX-License-Identifier: Apache-2.0
"""Adam and AdamW keep their states in 8 bits: AdamW8bit of bitsandbytes or torchao, if installed.

Made in the place of torch.optim's at their construction; amsgrad is refused. Numbers become others,
within what 8 bits of a block's states tell. It costs next to nothing.
"""
from __future__ import annotations

import importlib
import importlib.util
import inspect
from typing import Any

import torch

from ._run import Run

NAME, NUMBERS, HELPS = "states_8bit", "other", "any"
TEXT = "Adam's states in 8 bits ({})"
PATCH = ("from {}.optim import AdamW8bit\n"
         "optimizer = AdamW8bit(model.parameters(), lr=lr)\n")
UNSEEN = "the program makes no Adam or AdamW of torch.optim"
PACKAGES = ("bitsandbytes", "torchao")


def begin(run: Run, value: Any) -> None:
    there = [name for name in PACKAGES if importlib.util.find_spec(name)]
    if value is not None and value not in there:
        run.refuse(NAME, f"{value} is not installed")
        return
    if not there:
        return
    for kind in (torch.optim.Adam, torch.optim.AdamW):
        kind.__new__ = staticmethod(_maker(run, value, kind, there))


def _maker(run: Run, value: Any, kind: Any, there: list[str]) -> Any:
    def make(cls: Any, *args: Any, **kwargs: Any) -> Any:
        given = {} if cls is not kind or (not args and not kwargs) else \
            inspect.signature(kind.__init__).bind(None, *args, **kwargs).arguments
        if given and given.get("amsgrad"):
            run.refuse(NAME, "amsgrad has no form of 8 bits")
        elif given and value is None:
            run.offer(NAME, there)
        elif given:
            other = getattr(importlib.import_module(value + ".optim"), kind.__name__ + "8bit")
            run.apply(NAME, value)
            return other(**{name: given[name] for name in
                            ("params", "lr", "betas", "eps", "weight_decay") if name in given})
        return object.__new__(cls)

    return make
