# SPDX-License-Identifier: Apache-2.0
"""Calls of layers: which arguments one layer has from the one before, and how to call it again.

A slot is where a layer takes what the one before it returned: the number of an argument, or its
name. Calls go around `Module.__call__` by the attribute that `Module.compile()` uses, so that
hooks run where the layer does.
"""
import contextlib
import functools

import torch
from torch.utils._pytree import tree_leaves

from ..plan._errors import PlanError
from ..plan._live import tensors_of


def arguments_of(example):
    """Return (args, kwargs): a tuple is arguments, a dict named ones, all else the only one."""
    if isinstance(example, dict):
        return (), example
    return (example if isinstance(example, tuple) else (example,)), {}


def loss_of(output, loss=None):
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


def call_layer(layer, args, kwargs):
    """Call as Module.__call__ does where nobody stands in between."""
    return layer._call_impl(*args, **kwargs)


def stand_before(layer, function):
    """Have calls of `layer` go to function(*args, **kwargs) instead."""
    if layer._compiled_call_impl is not None:
        raise PlanError(f"a {type(layer).__name__} is compiled, or has a plan already")
    layer._compiled_call_impl = function


def step_aside(layer):
    layer.__dict__.pop("_compiled_call_impl", None)


@contextlib.contextmanager
def standing_before(layers, function):
    """Have calls of layer `index` go to function(index, args, kwargs), for a while."""
    def take(index, *args, **kwargs):
        return function(index, args, kwargs)

    placed = []
    try:
        for index, layer in enumerate(layers):
            stand_before(layer, functools.partial(take, index))
            placed.append(layer)
        yield
    finally:
        for layer in placed:
            step_aside(layer)


def value_at(slot, args, kwargs):
    return kwargs[slot] if isinstance(slot, str) else args[slot]


def _every_value(args, kwargs):
    return [*enumerate(args), *kwargs.items()]


def find_slots(outputs, args, kwargs):
    """Return the slots whose values are these tensors, in their order; None if one is missing."""
    values = _every_value(args, kwargs)
    slots = []
    for tensor in outputs:
        found = [slot for slot, value in values if value is tensor]
        if not found:
            return None
        slots.append(found[0])
    return slots


def first_slot(args, kwargs):
    """Return the slot of the first tensor that can have a gradient, in a list of its own."""
    for slot, value in _every_value(args, kwargs):
        if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
            return [slot]
    for slot, value in _every_value(args, kwargs):
        if isinstance(value, torch.Tensor):
            return [slot]
    return None


def one_or_all(tensors):
    """Return x as stages are called with it: a tensor, or a tuple of several."""
    return tensors[0] if len(tensors) == 1 else tuple(tensors)


def refuse_cache(name, args, kwargs):
    """A cache of keys and values grows with each run of a layer, and would with the second."""
    for leaf in tree_leaves((args, kwargs)):
        if leaf is not None and type(leaf).__name__.endswith("Cache"):
            raise PlanError(f"{name} is given a {type(leaf).__name__}, which a second run would "
                            "change: turn it off, as by model.config.use_cache = False")


class Bound(torch.nn.Module):
    """A layer as a stage: what it takes beside x is that of one call.

    If wants_output, what the layer returned in its first run is kept until somebody takes it.
    """

    def __init__(self, layer, slots, args, kwargs, wants_output=True):
        super().__init__()
        self.layer = layer
        self.slots = slots
        self.args, self.kwargs = list(args), dict(kwargs)
        for slot in slots:  # the stage's x takes its place, and must not be held here
            (self.kwargs if isinstance(slot, str) else self.args)[slot] = None
        self.wants_output = wants_output
        self.output = None

    def forward(self, *x):
        args, kwargs = list(self.args), dict(self.kwargs)
        for slot, value in zip(self.slots, x):
            (kwargs if isinstance(slot, str) else args)[slot] = value
        output = call_layer(self.layer, args, kwargs)
        if self.wants_output:
            self.wants_output, self.output = False, output
        return one_or_all(tensors_of(output))

    def take_output(self):
        output, self.output = self.output, None
        return output


def module_name(model, layer):
    """Return the layer's name in the model, as named_modules() has it."""
    return next((name for name, module in model.named_modules() if module is layer), "")
