# SPDX-License-Identifier: Apache-2.0
"""A loss keeps no graph once its backward pass is over, where a program keeps its losses in a list.

After a backward pass that retains no graph, what it began with is detached in place. Its graph
could not be used again. Numbers stay the same, and it costs nothing.
"""
from __future__ import annotations

import weakref
from collections import deque
from typing import Any

import torch

from ._run import Run
from ._wrap import Former, wrap

NAME, NUMBERS, HELPS = "losses_detached", "same", "any"
TEXT = "losses are detached after their backward pass"
PATCH = "losses.append(loss.detach())\n"
UNSEEN = "the program keeps no losses with a graph"
RECENT = 2  # losses of which the program may hold the last one or two in a variable


def begin(run: Run, value: Any) -> None:
    older: deque[weakref.ref[torch.Tensor]] = deque(maxlen=RECENT + 4)

    def look(tensors: list[torch.Tensor]) -> None:
        kept = [each() for each in [*older][:-RECENT]]
        if any(one is not None and one.grad_fn is not None for one in kept):
            run.offer(NAME, [True])
        older.extend(map(weakref.ref, tensors))

    def detach(tensors: list[torch.Tensor]) -> None:
        for tensor in tensors:
            if tensor.grad_fn is not None and not tensor._is_view():
                tensor.detach_()
                run.apply(NAME, value)

    def instead(former: Former, tensors: Any, grad_tensors: Any = None,
                retain_graph: bool | None = None, create_graph: bool = False, *args: Any,
                **kwargs: Any) -> Any:
        result = former(tensors, grad_tensors, retain_graph, create_graph, *args, **kwargs)
        if not (retain_graph or create_graph):
            run.guard(look if value is None else detach, NAME)(
                [tensors] if isinstance(tensors, torch.Tensor) else list(tensors))
        return result

    wrap(torch.autograd, "backward", instead)
