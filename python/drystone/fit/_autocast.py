# SPDX-License-Identifier: Apache-2.0
"""Models in float32 compute in bfloat16, under torch.autocast, from their call to backward().

Value: True. Weights, gradients and states stay in float32. What is kept for the backward pass is
half as large, but for operations that autocast leaves in float32, as losses and norms. Numbers
become others. Not for cards before compute capability 8.0, which have no such matrix products.
"""
from __future__ import annotations

import threading
from typing import Any

import torch

from ._calls import trains
from ._run import Run
from ._wrap import Former, wrap

NAME, NUMBERS, HELPS = "autocast", "other", "backward"
TEXT = "the model computes in bfloat16 (torch.autocast)"
PATCH = ("with torch.autocast(\"cuda\", torch.bfloat16):\n"
         "    output = model(batch)\n"
         "    loss = criterion(output, target)\n"
         "loss.backward()\n")
UNSEEN = "no model in float32 was called in training, without autocast"


def begin(run: Run, value: Any) -> None:
    local = threading.local()  # on: the context that is entered

    def enter(module: torch.nn.Module) -> None:
        kind = _kind_in_float32(module)
        if kind is None or getattr(local, "on", None) or _is_on(kind):
            return
        if kind == "cuda" and torch.cuda.get_device_capability()[0] < 8:
            run.refuse(NAME, "the card computes no matrix products in bfloat16")
        elif value is None:
            run.offer(NAME, [True])
        elif NAME not in run.refused:
            local.on = torch.autocast(kind, torch.bfloat16)
            local.on.__enter__()
            run.apply(NAME, value)

    def leave(former: Former, *args: Any, **kwargs: Any) -> Any:
        on, local.on = getattr(local, "on", None), None
        if on:
            on.__exit__(None, None, None)
        return former(*args, **kwargs)

    run.calls.subscribe(NAME, enter)
    wrap(torch.autograd, "backward", leave)
    wrap(torch.autograd, "grad", leave)


def _kind_in_float32(module: torch.nn.Module) -> str | None:
    """Return the device of a model that trains in float32."""
    if not trains(module):
        return None
    weights = [one for one in module.parameters() if one.requires_grad]
    return weights[0].device.type if all(one.dtype == torch.float32 for one in weights) else None


def _is_on(kind: str) -> bool:
    try:
        return bool(torch.is_autocast_enabled(kind))
    except TypeError:  # before 2.4
        return bool(torch.is_autocast_enabled())
