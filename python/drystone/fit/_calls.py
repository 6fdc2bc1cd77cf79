# SPDX-License-Identifier: Apache-2.0
"""Calls of outermost modules: those that no other module's forward pass makes."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.modules import module as hooks

if TYPE_CHECKING:
    from ._run import Run

Enter = Callable[[torch.nn.Module], None]
Leave = Callable[[torch.nn.Module, Any], None]


class Calls:
    """enter(module) is called before, leave(module, result) behind such a call.

    An exception of the call makes the result None. Compilers that trace a program see nothing, nor
    does a checkpoint that calls a layer again in the backward pass.
    """

    def __init__(self, run: Run) -> None:
        self.run, self.local = run, threading.local()
        self.subscribers: list[tuple[Enter, Leave]] = []

    def subscribe(self, name: str, enter: Enter, leave: Leave = lambda module, result: None
                  ) -> None:
        if not self.subscribers:
            hooks.register_module_forward_pre_hook(self._enter)
            hooks.register_module_forward_hook(self._leave, always_call=True)
        self.subscribers.append((self.run.guard(enter, name), self.run.guard(leave, name)))

    def _enter(self, module: torch.nn.Module, inputs: Any) -> None:
        if torch.compiler.is_compiling():
            return
        running = self.local.__dict__.setdefault("running", [])
        running.append(module)
        if len(running) == 1 and torch._C._current_graph_task_id() == -1:
            for enter, _ in self.subscribers:
                enter(module)

    def _leave(self, module: torch.nn.Module, inputs: Any, result: Any) -> None:
        if torch.compiler.is_compiling():
            return
        running = self.local.__dict__.setdefault("running", [])
        if running:
            running.pop()
        if not running and torch._C._current_graph_task_id() == -1:
            for _, leave in reversed(self.subscribers):
                leave(module, result)


def trains(module: torch.nn.Module) -> bool:
    """Tell whether a call of a module now is a part of a training step."""
    return module.training and torch.is_grad_enabled() and \
        any(parameter.requires_grad for parameter in module.parameters())
