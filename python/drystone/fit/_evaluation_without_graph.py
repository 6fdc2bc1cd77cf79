# SPDX-License-Identifier: Apache-2.0
"""Models in evaluation mode keep no graph, where a program forgot torch.no_grad().

Calls of outermost modules in evaluation mode run without gradients. Numbers stay the same, and it
costs nothing. Not for programs that send gradients through such a module (a frozen teacher, a loss
by another net): one that is seen to do so is refused.
"""
from __future__ import annotations

import threading
from typing import Any

import torch

from ._run import Run
from ._trees import tensors_of

NAME, NUMBERS, HELPS = "evaluation_without_graph", "same", "evaluation"
TEXT = "evaluation runs under torch.no_grad()"
PATCH = "with torch.no_grad():\n    evaluate(model)\n"
UNSEEN = "no model was called in evaluation mode with gradients"


def begin(run: Run, value: Any) -> None:
    local = threading.local()

    def enter(module: torch.nn.Module) -> None:
        local.is_off = value is not None and not module.training and torch.is_grad_enabled()
        if local.is_off:
            run.apply(NAME, value)
            torch.set_grad_enabled(False)

    def leave(module: torch.nn.Module, result: Any) -> None:
        if getattr(local, "is_off", False):
            torch.set_grad_enabled(True)
        elif value is None and not module.training and torch.is_grad_enabled():
            graphs = [tensor for tensor in tensors_of(result) if tensor.grad_fn is not None]
            for tensor in graphs:
                tensor.register_hook(refuse)
            if graphs:
                run.offer(NAME, [True])

    def refuse(gradient: torch.Tensor) -> None:
        run.refuse(NAME, "gradients go through a module in evaluation mode")

    run.calls.subscribe(NAME, enter, leave)
