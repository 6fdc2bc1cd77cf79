# SPDX-License-Identifier: Apache-2.0
"""The parts of a model that may be computed twice, in its order.

A layer that the model does not call, as a list of an attention and an MLP, counts as its parts. A
Sequential of single modules, as VGG's, counts as a few runs of them. A model without lists of
layers, as a U-Net, counts as its children.
"""
from __future__ import annotations

import contextlib
import math
import weakref
from typing import Any

from torch import nn

from ..checkpoint._find import find_layers
from ..plan._errors import PlanError

HEADS = 4  # the fewest modules with matrices that make a Sequential worth runs


def find_parts(model: nn.Module) -> tuple[list[nn.Module], list[Chain]]:
    """Return the parts, each of which holds modules, and what makes runs be called."""
    parts: list[nn.Module] = []
    chains: list[Chain] = []
    places = {id(child): whole for whole in model.modules() if type(whole) is nn.Sequential
              and not any(any(child.children()) for child in whole) for child in whole}
    with contextlib.suppress(PlanError):
        for layer in find_layers(model):
            whole = places.get(id(layer))
            if whole is None:
                parts += _called(layer)
            elif layer is whole[0]:
                chains.append(Chain(whole))
                parts += chains[-1].runs
    return parts or _children(model), chains


def _children(model: nn.Module) -> list[nn.Module]:
    children = list(model.children())
    if len(children) == 1:
        return _children(children[0])
    parts = [part for child in children for part in _called(child)]
    return parts if len(parts) > 1 else []


def _called(layer: nn.Module) -> list[nn.Module]:
    if type(layer).forward is not nn.Module.forward:
        return [layer] if any(layer.children()) else []
    return [part for child in layer.children() for part in _called(child)]


class Chain:
    """A Sequential in runs. A copy of the Sequential has none.

    runs    modules of ours; none for a Sequential with few matrices
    """

    def __init__(self, whole: nn.Sequential) -> None:
        children = list(whole)
        heads = [i for i, child in enumerate(children)
                 if any(weight.dim() > 1 for weight in child.parameters())]
        starts = [0, *heads[math.isqrt(len(heads))::math.isqrt(len(heads))]] \
            if len(heads) >= HEADS else []
        self.whole = weakref.ref(whole)
        self.runs = [nn.Sequential(*children[start:end])
                     for start, end in zip(starts, [*starts[1:], len(children)])]

    def stand_before(self) -> None:
        """Have the Sequential call its runs."""
        whole = self.whole()
        if whole is not None and self.runs:
            whole._compiled_call_impl = self.call

    def call(self, *args: Any) -> Any:
        whole = self.whole()
        assert whole is not None
        whole.forward = self.forward  # its hooks are called as ever
        try:
            return whole._call_impl(*args)
        finally:
            del whole.forward

    def forward(self, x: Any) -> Any:
        whole = self.whole()
        assert whole is not None
        for run in self.runs:
            run.training = whole.training
            x = run(x)
        return x
