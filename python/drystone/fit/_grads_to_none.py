# SPDX-License-Identifier: Apache-2.0
"""Gradients are freed where the program sets them to zero, zero_grad(set_to_none=False).

Their memory is there for the next forward pass. A weight without a gradient would be left out of a
step, where one of zeros decays or moves on; so a step finds zeros where the program had them.
Numbers stay the same, and it costs nothing. A program that reads .grad after zero_grad finds None.
"""
from __future__ import annotations

import weakref
from typing import Any

import torch
from torch.optim.optimizer import Optimizer, register_optimizer_step_pre_hook

from ._run import Run
from ._wrap import Former, wrap

NAME, NUMBERS, HELPS = "grads_to_none", "same", "backward"
TEXT = "gradients are freed, not set to zero (set_to_none=True)"
PATCH = "optimizer.zero_grad(set_to_none=True)\n"
UNSEEN = "the program sets no gradients to zero"


def begin(run: Run, value: Any) -> None:
    freed: dict[int, weakref.ref[torch.Tensor]] = {}

    def instead(former: Former, owner: Any, set_to_none: bool = True) -> Any:
        if set_to_none:
            return former(owner, set_to_none)
        if value is None:
            run.offer(NAME, [True])
            return former(owner, set_to_none)
        run.apply(NAME, value)
        weights = owner.parameters() if isinstance(owner, torch.nn.Module) else \
            [weight for group in owner.param_groups for weight in group["params"]]
        freed.update({id(weight): weakref.ref(weight) for weight in weights
                      if weight.grad is not None})
        return former(owner, True)

    def fill(optimizer: Any, *_: Any) -> None:
        for weight in [weight for group in optimizer.param_groups for weight in group["params"]]:
            known = freed.get(id(weight))
            if weight.grad is None and known is not None and known() is weight:
                weight.grad = torch.zeros_like(weight)

    wrap(Optimizer, "zero_grad", instead)
    wrap(torch.nn.Module, "zero_grad", instead)
    if value is not None:
        register_optimizer_step_pre_hook(run.guard(fill, NAME))
