# SPDX-License-Identifier: Apache-2.0
"""Each of several GPUs keeps the states of a part of the weights, as ZeRO's first stage does.

Adam and AdamW become torch.distributed.optim.ZeroRedundancyOptimizer over the ranks. Weights and
gradients stay whole. Numbers stay the same. Each weight is sent to the other GPUs in a step, which
moves once their bytes more.
"""
from __future__ import annotations

from typing import Any

import torch
from torch import distributed, nn

from ._adams import KINDS, subscribe
from ._run import Run
from ._trees import tensors_of
from ._wrap import Former, wrap

NAME, NUMBERS, HELPS = "states_sharded", "same", "any"
TEXT = "Adam's states sharded over the GPUs (ZeroRedundancyOptimizer)"
PATCH = ("from torch.distributed.optim import ZeroRedundancyOptimizer\n"
         "optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=lr)\n")
UNSEEN = "no Adam or AdamW of torch.optim is made for several GPUs"


def begin(run: Run, value: Any) -> None:
    def look(former: Former, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        former(optimizer, *args, **kwargs)
        if type(optimizer) not in KINDS or not has_ranks():
            return
        if any(type(one) is not nn.Parameter for one in tensors_of(optimizer.param_groups)):
            run.refuse(NAME, "the weights are sharded already")
        else:
            run.offer(NAME, [True])

    def make(kind: Any, given: dict[str, Any]) -> Any:
        if not has_ranks():
            return None
        if "model_sharded" in run.applied:
            run.apply(NAME, value, "Adam's states go with the sharded weights")
            return None
        from torch.distributed.optim import ZeroRedundancyOptimizer
        params = list(given.pop("params"))
        run.apply(NAME, value)
        run.steps.count_moves(sum(one.nbytes for one in tensors_of(params)))
        return ZeroRedundancyOptimizer(params, kind, **given)

    if value is None:
        wrap(torch.optim.Optimizer, "__init__", look)
    else:
        subscribe(make)


def has_ranks() -> bool:
    return distributed.is_available() and distributed.is_initialized() and \
        int(distributed.get_world_size()) > 1
