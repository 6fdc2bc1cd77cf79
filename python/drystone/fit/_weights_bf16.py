# SPDX-License-Identifier: Apache-2.0
"""Models in float32 become bfloat16 when they are first called in training, with their inputs.

Value: True. Weights, gradients and an optimizer's states take half as much, and so does what is
kept for the backward pass. Numbers become others: an update below a 256th of a weight is lost.
"""
from __future__ import annotations

import threading
import weakref
from typing import Any

import torch
from torch import nn

from ._calls import trains
from ._run import Run
from ._trees import map_tree
from ._wrap import Former, wrap

NAME, NUMBERS, HELPS = "weights_bf16", "other", "any"
TEXT = "weights, gradients and states in bfloat16"
PATCH = ("model = model.to(torch.bfloat16)  # before the optimizer\n"
         "output = model(batch.to(torch.bfloat16))\n")
UNSEEN = "no model in float32 was called in training"


def begin(run: Run, value: Any) -> None:
    changed: weakref.WeakSet[nn.Module] = weakref.WeakSet()
    inside = threading.local()  # whole: the outermost module that is called

    def may_change(module: nn.Module) -> bool:
        weights = list(module.parameters())
        if not trains(module) or any(one.dtype != torch.float32 for one in weights):
            return False
        if isinstance(module, nn.parallel.DistributedDataParallel):
            run.refuse(NAME, "DistributedDataParallel has made its buckets in float32")
        return NAME not in run.refused and not torch.is_autocast_enabled()

    def look(module: nn.Module) -> None:
        if may_change(module):
            run.offer(NAME, [True])

    def prepare(module: nn.Module, args: Any, kwargs: Any) -> Any:
        if module not in changed and may_change(module):
            changed.add(module.to(torch.bfloat16))
            run.apply(NAME, value)
        return (_narrow(args), _narrow(kwargs)) if module in changed else None

    prepare = run.guard(prepare, NAME)

    def call(former: Former, module: nn.Module, *args: Any, **kwargs: Any) -> Any:
        if getattr(inside, "whole", None) is not None or torch.compiler.is_compiling():
            return former(module, *args, **kwargs)
        args, kwargs = prepare(module, args, kwargs) or (args, kwargs)
        inside.whole = module
        try:
            return former(module, *args, **kwargs)
        finally:
            inside.whole = None

    if value is None:
        run.calls.subscribe(NAME, look)
    else:
        wrap(nn.Module, "__call__", call)


def _narrow(tree: Any) -> Any:
    """Return arguments whose float32 is bfloat16."""
    def narrow(leaf: Any) -> Any:
        is_wide = isinstance(leaf, torch.Tensor) and leaf.dtype == torch.float32
        return leaf.to(torch.bfloat16) if is_wide else leaf

    return map_tree(tree, narrow, lambda leaves: leaves)
