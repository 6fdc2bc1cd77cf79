# SPDX-License-Identifier: Apache-2.0
"""The layers of a model, by structure: what its outermost lists and Sequentials hold.

A child that has more than half of its container's parameters is opened in its turn, if lists in
it have more than half of its own: Sequential(backbone, head) is no chain of two.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Union

import torch
from torch import nn

from ..plan._errors import PlanError

Layers = Union[str, Sequence[Union[str, nn.Module]]]


def _weight(module: nn.Module) -> int:
    count: int = sum(p.numel() for p in module.parameters())
    return count + 1


def _find_in(module: nn.Module) -> list[nn.Module]:
    """Layers and what they are the children of, in the order of the model."""
    children = list(module.children())
    if not isinstance(module, (nn.ModuleList, nn.Sequential)) or len(children) < 2:
        return [layer for child in children for layer in _find_in(child)]
    found, whole = [], _weight(module)
    for child in children:
        inner = _find_in(child) if 2 * _weight(child) > whole else []
        found += inner if 2 * sum(map(_weight, inner)) > _weight(child) else [child]
    return found


def _named(model: nn.Module, path: str) -> list[nn.Module]:
    """The children of the container of this name, or the module of this name itself."""
    try:
        module = model
        for part in path.split("."):
            module = module[int(part)] if part.isdigit() else getattr(module, part)
    except (AttributeError, IndexError, TypeError):
        raise PlanError(f"there is no {path!r} in {type(model).__name__}") from None
    if isinstance(module, (nn.ModuleList, nn.Sequential)):
        return list(module)
    if not isinstance(module, nn.Module):
        raise PlanError(f"{path!r} is a {type(module).__name__}, not a module")
    return [module]


def find_layers(model: nn.Module, layers: Layers | None = None) -> list[nn.Module]:
    """Return the modules that may run twice.

    layers  None: by structure; or a name such as "model.h" of a list of layers, or several
            names, or modules

    PlanError if there are none. A container whose children are not all called once in a step
    is found out later, when the step runs (_record.py).
    """
    if layers is None:
        found = _find_in(model)
        if not found:
            raise PlanError(f"no list of layers is in {type(model).__name__}: neither a ModuleList "
                            "nor a Sequential of two or more; name modules with layers=[...]")
        return found
    wanted = [layers] if isinstance(layers, str) else list(layers)
    found = []
    for each in wanted:
        found += _named(model, each) if isinstance(each, str) else [each]
    strange = [each for each in found if not isinstance(each, torch.nn.Module)]
    if strange or not found:
        raise PlanError(f"layers has no modules, but {strange or 'nothing'}")
    if len({id(each) for each in found}) != len(found):
        raise PlanError("a layer is named twice in layers")
    return found
