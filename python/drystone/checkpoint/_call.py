# SPDX-License-Identifier: Apache-2.0
"""Calls of layers: which arguments one layer has from the one before, and how to call it again.

A slot is where a layer takes what the one before it returned: the number of an argument, or its
name. Calls go around `Module.__call__` by the attribute that `Module.compile()` uses, so that
hooks run where the layer does.
"""
from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Union

import torch
from torch.utils._pytree import tree_leaves

from ..plan._errors import PlanError
from ..plan._live import tensors_of
from ..plan._types import Loss, Tree

Slot = Union[int, str]


def arguments_of(example: Tree) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return (args, kwargs): a tuple is arguments, a dict named ones, all else the only one."""
    if isinstance(example, dict):
        return (), example
    return (example if isinstance(example, tuple) else (example,)), {}


def loss_of(output: Tree, loss: Loss | None = None) -> torch.Tensor | None:
    """Return what a step calls backward() on: loss(output), its `loss`, or itself, a number.

    None where the output is neither: a backward then begins with gradients of ones.
    """
    if loss is not None:
        value = loss(output)
    else:
        value = output.get("loss") if isinstance(output, dict) else getattr(output, "loss", None)
        value = output if value is None else value
    is_number = isinstance(value, torch.Tensor) and value.numel() == 1
    if loss is not None and not is_number:
        raise PlanError("loss has to return a tensor of one element")
    return value if is_number else None


def call_layer(layer: torch.nn.Module, args: Sequence[Any], kwargs: dict[str, Any]) -> Tree:
    """Call as Module.__call__ does where nobody stands in between."""
    return layer._call_impl(*args, **kwargs)


def stand_before(layer: torch.nn.Module, function: Callable[..., Tree]) -> None:
    """Have calls of `layer` go to function(*args, **kwargs) instead."""
    if layer._compiled_call_impl is not None:
        raise PlanError(f"a {type(layer).__name__} is compiled, or has a plan already")
    layer._compiled_call_impl = function


def step_aside(layer: torch.nn.Module) -> None:
    layer.__dict__.pop("_compiled_call_impl", None)


@contextlib.contextmanager
def standing_before(layers: Sequence[torch.nn.Module],
                    function: Callable[[int, tuple[Any, ...], dict[str, Any]], Tree]
                    ) -> Iterator[None]:
    """Have calls of layer `index` go to function(index, args, kwargs), for a while."""
    def take(index: int, *args: Any, **kwargs: Any) -> Tree:
        return function(index, args, kwargs)

    placed: list[torch.nn.Module] = []
    try:
        for index, layer in enumerate(layers):
            stand_before(layer, functools.partial(take, index))
            placed.append(layer)
        yield
    finally:
        for layer in placed:
            step_aside(layer)


def value_at(slot: Slot, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
    return kwargs[slot] if isinstance(slot, str) else args[slot]


def put_at(slot: Slot, args: list[Any], kwargs: dict[str, Any], value: Any) -> None:
    if isinstance(slot, str):
        kwargs[slot] = value
    else:
        args[slot] = value


def _every_value(args: Sequence[Any], kwargs: dict[str, Any]) -> list[tuple[Slot, Any]]:
    return [*enumerate(args), *kwargs.items()]


def find_slots(outputs: Sequence[torch.Tensor], args: Sequence[Any],
               kwargs: dict[str, Any]) -> list[Slot] | None:
    """Return the slots whose values are these tensors, in their order; None if one is missing."""
    values = _every_value(args, kwargs)
    slots: list[Slot] = []
    for tensor in outputs:
        found = [slot for slot, value in values if value is tensor]
        if not found:
            return None
        slots.append(found[0])
    return slots


def first_slot(args: Sequence[Any], kwargs: dict[str, Any]) -> list[Slot] | None:
    """Return the slot of the first tensor that can have a gradient, in a list of its own."""
    for slot, value in _every_value(args, kwargs):
        if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
            return [slot]
    for slot, value in _every_value(args, kwargs):
        if isinstance(value, torch.Tensor):
            return [slot]
    return None


def one_or_all(tensors: Sequence[torch.Tensor]) -> Tree:
    """Return x as stages are called with it: a tensor, or a tuple of several."""
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def refuse_cache(name: str, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """A cache of keys and values grows with each run of a layer, and would with the second."""
    for leaf in tree_leaves((args, kwargs)):
        if leaf is not None and type(leaf).__name__.endswith("Cache"):
            raise PlanError(f"{name} is given a {type(leaf).__name__}, which a second run would "
                            "change: turn it off, as by model.config.use_cache = False")


class Bound(torch.nn.Module):
    """A layer as a stage: what it takes beside x is that of one call.

    If wants_output, what the layer returned in its first run is kept until somebody takes it.
    """

    def __init__(self, layer: torch.nn.Module, slots: Sequence[Slot], args: Sequence[Any],
                 kwargs: dict[str, Any], wants_output: bool = True) -> None:
        super().__init__()
        self.layer = layer
        self.slots = slots
        self.args, self.kwargs = list(args), dict(kwargs)
        for slot in slots:  # the stage's x takes its place, and must not be held here
            put_at(slot, self.args, self.kwargs, None)
        self.wants_output = wants_output
        self.output: Tree = None

    def forward(self, *x: Any) -> Tree:
        args, kwargs = list(self.args), dict(self.kwargs)
        for slot, value in zip(self.slots, x):
            put_at(slot, args, kwargs, value)
        output = call_layer(self.layer, args, kwargs)
        if self.wants_output:
            self.wants_output, self.output = False, output
        return one_or_all(tensors_of(output))

    def take_output(self) -> Tree:
        output, self.output = self.output, None
        return output


def module_name(model: torch.nn.Module, layer: torch.nn.Module) -> str:
    """Return the layer's name in the model, as named_modules() has it."""
    return next((name for name, module in model.named_modules() if module is layer), "")
