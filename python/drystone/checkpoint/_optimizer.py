# SPDX-License-Identifier: Apache-2.0
"""What an optimizer keeps and takes, before its first step: a twin steps on fake weights."""
from __future__ import annotations

from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from ..plan._errors import PlanError
from ..plan._live import LiveBytes, bytes_of


def _group_of(group: dict[str, Any], mode: FakeTensorMode) -> dict[str, Any]:
    """The twin's group, with the implementation that PyTorch would choose for real weights."""
    fakes = []
    for weight in group["params"]:
        fake = torch.nn.Parameter(mode.from_tensor(weight.detach()), weight.requires_grad)
        fake.grad = torch.empty_like(fake) if weight.requires_grad else None
        fakes.append(fake)
    twin = {key: value for key, value in group.items() if key not in ("params", "initial_lr")}
    if "foreach" in twin and twin["foreach"] is None and not twin.get("fused"):
        twin["foreach"] = all(weight.is_cuda for weight in group["params"])
    return dict(twin, params=fakes)


def optimizer_bytes(optimizer: torch.optim.Optimizer) -> tuple[int, int]:
    """Return (bytes of its states, bytes that a step takes beyond them).

    PlanError where the twin cannot step and the optimizer has not stepped yet.
    """
    there = bytes_of(list(optimizer.state.values()))
    try:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            twin = type(optimizer)([_group_of(group, mode) for group in optimizer.param_groups])
            meter = LiveBytes()
            with meter:
                twin.step()
            states = bytes_of(list(twin.state.values()))
            return max(states, there), max(0, meter.peak - states)
    except Exception as why:  # of any kind: it is somebody's optimizer
        if there:
            return there, 0
        raise PlanError(f"the states of {type(optimizer).__name__} are not known before its "
                        f"first step: take one, and plan then ({why})") from why
