# SPDX-License-Identifier: Apache-2.0
"""Whole steps: where one ends, its floating-point operations, and bytes over the link.

A step ends when the first optimizer has stepped after a backward pass. Operations are counted if
DRYSTONE_FIT asks for that, in some steps only, since each operation of such a step passes through
Python: the second, and then one in EVERY up to UNTIL. They count from the first call in training:
before, a program may evaluate.
"""
from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode

from ._calls import trains
from ._wrap import Former, wrap

if TYPE_CHECKING:
    from ._run import Run

EVERY, UNTIL = 8, 24


def load_formulas() -> dict[Any, Any]:
    """Return PyTorch's formulas of operations, by the operation."""
    from torch.utils import flop_counter  # loads much that a program may not need
    found: dict[Any, Any] = \
        getattr(flop_counter, "flop_registry", None) or flop_counter.flop_mapping
    return found


class _Counter(TorchDispatchMode):
    """Adds up PyTorch's own formulas for matrix products, convolutions and attention."""

    def __init__(self) -> None:
        super().__init__()
        self.flops: int | None = 0
        self.formulas = load_formulas()

    def __torch_dispatch__(self, func: Any, types: Sequence[type], args: Sequence[Any] = (),
                           kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        formula = self.formulas.get(getattr(func, "_overloadpacket", None))
        if formula is not None and self.flops is not None:
            try:
                self.flops += int(formula(*args, **kwargs, out_val=result))
            except Exception:
                self.flops = None
        return result


class Steps:
    """flops, link_bytes   of the last step that was counted; None: there was none."""

    def __init__(self, run: Run) -> None:
        self.run, self.count, self.has_backward = run, 0, False
        self.flops: int | None = None
        self.link_bytes = 0
        self.moved_bytes = 0  # over the link, in this step so far
        self.counter: _Counter | None = None
        self.wants_count, self.has_calls = False, False
        self.outer: Any = None  # the mode of dispatch between steps, inside of which to count
        self.optimizer: weakref.ref[Any] | None = None  # the first
        self.is_compiled = False
        self.subscribers: list[Callable[[], None]] = []

    def begin(self) -> None:
        wrap(torch.autograd, "backward", self._backward)
        wrap(torch, "compile", self._compile)
        register_optimizer_step_post_hook(self.run.guard(self._end))
        if self.run.counts:
            self.run.calls.subscribe("work", self._enter)

    def count_moves(self, count: int) -> None:
        """Count bytes that move in each step from now on."""
        def move() -> None:
            self.moved_bytes += count

        move()
        self.subscribers.append(move)

    def _backward(self, former: Former, *args: Any, **kwargs: Any) -> Any:
        self.has_backward = True
        return former(*args, **kwargs)

    def _compile(self, former: Former, *args: Any, **kwargs: Any) -> Any:
        self.is_compiled = True
        return former(*args, **kwargs)

    def _enter(self, module: torch.nn.Module) -> None:
        if trains(module):
            self.has_calls = True
            self._start_counting()

    def _start_counting(self) -> None:
        if self.wants_count and _get_current_dispatch_mode() is self.outer:
            self.wants_count, self.counter = False, _Counter()
            self.counter.__enter__()

    def _end(self, optimizer: Any, *_: Any) -> None:
        first = self.optimizer and self.optimizer()
        if first is None:
            self.optimizer = weakref.ref(optimizer)
        if not self.has_backward or first not in (None, optimizer):
            return
        self.has_backward, self.count = False, self.count + 1
        self.link_bytes, self.moved_bytes = self.moved_bytes, 0
        self._stop_counting()
        if self.run.counts and self.count % EVERY == 1 and self.count < UNTIL and \
                not self.is_compiled:
            self.wants_count, self.outer = True, _get_current_dispatch_mode()
            if not self.has_calls:
                self._start_counting()
        for subscriber in self.subscribers:
            subscriber()

    def _stop_counting(self) -> None:
        if self.counter is None:
            return
        if _get_current_dispatch_mode() is not self.counter:
            return  # inside of another mode, which must end first
        with contextlib.suppress(RuntimeError):
            self.counter.__exit__(None, None, None)
        self.flops, self.counter = None if self.is_compiled else self.counter.flops, None
