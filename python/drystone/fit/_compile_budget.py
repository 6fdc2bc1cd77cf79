# SPDX-License-Identifier: Apache-2.0
"""torch.compile keeps a part of its activations, and recomputes the others in the backward pass.

Value: the part, from 0 to 1, of PyTorch's activation_memory_budget. Numbers stay the same but for
other kernels. PyTorch's compiler chooses what is cheap to recompute. Only for programs that
compile, with releases from 2.4 on; checkpoint is for the others.
"""
from __future__ import annotations

import importlib
from typing import Any

import torch

from ._run import Run
from ._wrap import Former, wrap

NAME, NUMBERS, HELPS = "compile_budget", "same", "backward"
TEXT = "torch.compile keeps {} of its activations"
PATCH = "torch._functorch.config.activation_memory_budget = {}\n"
UNSEEN = "the program does not compile"
VALUES, BUDGET = (0.8, 0.6, 0.4, 0.2), "activation_memory_budget"


def begin(run: Run, value: Any) -> None:
    def instead(former: Former, *args: Any, **kwargs: Any) -> Any:
        config = importlib.import_module("torch._functorch.config")
        if not hasattr(config, BUDGET):
            run.refuse(NAME, "this release of PyTorch has no budget")
        elif value is None:
            run.offer(NAME, VALUES)
        else:
            setattr(config, BUDGET, float(value))
            run.apply(NAME, value)
        return former(*args, **kwargs)

    wrap(torch, "compile", instead)
