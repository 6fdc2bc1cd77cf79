# SPDX-License-Identifier: Apache-2.0
"""The states of Adam and AdamW live in pinned memory of the host.

A step brings those of a few weights at a time to the device, PIECE bytes or those of one weight,
and returns them. Numbers stay the same. It costs the link twice the bytes of the states in a step,
as much memory of the host, and a wait for the last copy at the end of a step.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from ._adams import KINDS
from ._run import Run
from ._wrap import Former, wrap

NAME, NUMBERS, HELPS = "states_on_host", "same", "any"
TEXT = "Adam's states wait in the host's memory"
PATCH = ("from torchao.optim import CPUOffloadOptimizer  # makes the step on the host, too\n"
         "optimizer = CPUOffloadOptimizer(model.parameters(), torch.optim.AdamW, lr=lr)\n")
UNSEEN = "no Adam or AdamW of torch.optim makes a step"
PIECE = 32 << 20


def begin(run: Run, value: Any) -> None:
    def look(former: Former, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        former(optimizer, *args, **kwargs)
        if type(optimizer) in KINDS and _judge(run, optimizer):
            run.offer(NAME, [True])

    def step(former: Former, optimizer: Any, closure: Any = None) -> Any:
        if torch.compiler.is_compiling() or type(optimizer) not in KINDS or \
                not _judge(run, optimizer):
            return former(optimizer, closure)
        run.apply(NAME, value)
        return _step(run, former, optimizer, closure)

    if value is None:
        wrap(torch.optim.Optimizer, "__init__", look)
        return
    for kind in KINDS:
        if "step" in vars(kind):  # in newer releases, AdamW's is Adam's
            wrap(kind, "step", step)


def _judge(run: Run, optimizer: Any) -> bool:
    """Tell whether an optimizer's states may move; else refuse the change."""
    for group in optimizer.param_groups:
        if group.get("capturable") or group.get("differentiable"):
            run.refuse(NAME, "the optimizer is capturable or differentiable, and needs its states "
                             "in place")
        elif any(type(one) is not torch.nn.Parameter for one in group["params"]):
            run.refuse(NAME, "the weights are sharded")
    return NAME not in run.refused


def _step(run: Run, former: Former, optimizer: Any, closure: Any) -> Any:
    loss = None
    if closure is not None:
        with torch.enable_grad():
            loss = closure()
    groups = optimizer.param_groups
    try:
        for group in groups:
            for weights in _pieces(group["params"]):
                for weight in weights:
                    run.steps.moved_bytes += _move(optimizer.state, weight, weight.device)
                optimizer.param_groups = [{**group, "params": weights}]
                former(optimizer)
                for weight in weights:
                    run.steps.moved_bytes += _move(optimizer.state, weight, torch.device("cpu"))
    finally:
        optimizer.param_groups = groups
    if torch.cuda.is_initialized():
        torch.cuda.current_stream().synchronize()  # whoever saves the states reads them on the host
    return loss


def _pieces(weights: list[Any]) -> Iterator[list[Any]]:
    piece: list[Any] = []
    size = 0
    for weight in weights:
        if weight.grad is None:
            continue
        if piece and size + 2 * weight.nbytes > PIECE:
            yield piece
            piece, size = [], 0
        piece.append(weight)
        size += 2 * weight.nbytes
    if piece:
        yield piece


def _move(states: Any, weight: Any, device: torch.device) -> int:
    """Copy a weight's states to a device. Return the bytes that crossed the link."""
    moved, state = 0, states.get(weight, {})
    for name, tensor in state.items():
        if name == "step" or not isinstance(tensor, torch.Tensor) or tensor.device == device:
            continue
        other = torch.empty_like(tensor, device=device, pin_memory=tensor.is_cuda)
        state[name] = other.copy_(tensor, non_blocking=True)
        moved += int(tensor.nbytes)
    return moved
