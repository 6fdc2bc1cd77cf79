# SPDX-License-Identifier: Apache-2.0
"""Layers keep only their inputs; what they made is recomputed in the backward pass.

Value: how many of the model's layers, the first ones, whose activations live longest. The model is
the first module that is called in training with gradients; _layers.py says what its layers are.
Numbers stay the same: random numbers, autocast and batch statistics are those of the first run. A
checkpointed layer's forward pass is computed twice: at most a third more work for all layers. Not
for compiled models (see compile_budget), nor for layers that alter their inputs or buffers.

A model's cache of keys and values is off while it trains, since a second run would add to it.
"""
from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils.checkpoint import checkpoint

from ._calls import trains
from ._layers import Chain, find_parts
from ._run import Run
from ._trees import tensors_of

NAME, NUMBERS, HELPS = "checkpoint", "same", "backward"
PARTS = 64  # the most values that are offered
TEXT = "checkpoint {} layers"
PATCH = ("# in the model's forward(), for its first {} layers:\n"
         "# - hidden = layer(hidden, mask)\n"
         "hidden = torch.utils.checkpoint.checkpoint(layer, hidden, mask, use_reentrant=False)\n")
UNSEEN = "no model with layers, or none of its layers, was called in training with gradients"


def begin(run: Run, value: Any) -> None:
    checkpoints = _Checkpoints(run, value)
    run.calls.subscribe(NAME, checkpoints.enter)


class _Checkpoints:
    def __init__(self, run: Run, value: Any) -> None:
        self.run, self.value = run, value
        self.layers: list[torch.nn.Module] = []
        self.caches: list[tuple[Any, torch.nn.Module]] = []  # configurations that had one on

    def enter(self, module: torch.nn.Module) -> None:
        """Find the layers before the first call of their model; switch its cache."""
        if not self.layers and NAME not in self.run.refused and trains(module):
            self.find(module)
        for config, owner in self.caches:
            config.use_cache = not owner.training

    def find(self, module: torch.nn.Module) -> None:
        layers, chains = find_parts(module)
        if not layers:
            return  # a loss, or a part of a model
        if any(getattr(each, "gradient_checkpointing", False) for each in module.modules()):
            self.run.refuse(NAME, "the program checkpoints its layers already")
        elif self.run.steps.is_compiled or any(_is_compiled(each) for each in module.modules()):
            self.run.refuse(NAME, "the program compiles its model: see compile_budget")
        else:
            self.layers = layers
            self.take(module, chains)

    def take(self, module: torch.nn.Module, chains: list[Chain]) -> None:
        count = len(self.layers)
        if self.value is None:
            for layer in self.layers[:1]:
                _Purity(self.run, layer)
            values = sorted({-(-count * part // PARTS) for part in range(1, PARTS + 1)})
            self.run.offer(NAME, values, f"checkpoint {{}} of {count} layers")
            return
        if not 0 < int(self.value) <= count:
            self.run.refuse(NAME, f"the model has {count} layers, not {self.value}")
            return
        for chain in chains:
            chain.stand_before()
        text = f"checkpoint {self.value} of {count} layers"
        for layer in self.layers[:int(self.value)]:
            layer._compiled_call_impl = _Twice(self, layer, text).call
        configs = {id(each.config): (each.config, module) for each in module.modules()
                   if getattr(getattr(each, "config", None), "use_cache", None) is True}
        self.caches = list(configs.values())


def _is_compiled(module: torch.nn.Module) -> bool:
    return hasattr(module, "_orig_mod") or module._compiled_call_impl is not None


def _has_cache(tree: Any) -> bool:
    return any(type(value).__name__.endswith("Cache") for value in tree)


class _Versions:
    """How often tensors were altered that a second run of a layer reads."""

    def __init__(self, layer: torch.nn.Module, inputs: Any) -> None:
        known = {id(buffer) for each in layer.modules() if "num_batches_tracked" in each._buffers
                 for buffer in each._buffers.values()}
        self.inputs = [(one, one._version) for one in tensors_of(inputs)]
        self.buffers = [(one, one._version) for one in layer.buffers() if id(one) not in known]

    def altered(self) -> str | None:
        for what, tensors in (("inputs", self.inputs), ("buffers", self.buffers)):
            if any(one._version != version for one, version in tensors):
                return f"its layers alter their {what}, so that a second run would differ"
        return None


class _Purity:
    """Looks at one call of a layer: may it run twice?"""

    def __init__(self, run: Run, layer: torch.nn.Module) -> None:
        self.run = run
        self.versions: _Versions | None = None
        self.handles = [
            layer.register_forward_pre_hook(run.guard(self.enter), with_kwargs=True),
            layer.register_forward_hook(run.guard(self.leave))]

    def enter(self, layer: torch.nn.Module, args: Any, kwargs: Any) -> None:
        self.versions = _Versions(layer, (args, kwargs))

    def leave(self, *_: Any) -> None:
        why = self.versions and self.versions.altered()
        if why:
            self.run.refuse(NAME, why)
        for handle in self.handles:
            handle.remove()


class _Twice:
    """Stands before a layer's call. A copy of the layer has none, and works as it did."""

    def __init__(self, all_of: _Checkpoints, layer: torch.nn.Module, text: str) -> None:
        self.run, self.value, self.text = all_of.run, all_of.value, text
        self.layer, self.is_known = weakref.ref(layer), False
        self.has_statistics = any("running_mean" in each._buffers for each in layer.modules())

    def call(self, *args: Any, **kwargs: Any) -> Any:
        layer = self.layer()
        assert layer is not None
        if not (layer.training and torch.is_grad_enabled()):
            return layer._call_impl(*args, **kwargs)
        if _has_cache([*args, *kwargs.values()]):
            self.run.refuse(NAME, "its layers are given a cache, to which a second run would add")
            return layer._call_impl(*args, **kwargs)
        more: dict[str, Any] = {"context_fn": lambda: (contextlib.nullcontext(), _unmoved(layer))} \
            if self.has_statistics else {}
        before = None if self.is_known else _Versions(layer, (args, kwargs))
        result = checkpoint(_stoppable(layer), *args, use_reentrant=False, **more, **kwargs)
        why = before and before.altered()
        if why:
            self.run.refuse(NAME, why)
            raise RuntimeError(f"drystone fit: {NAME}: {why}")
        if not self.is_known and NAME not in self.run.refused:
            self.run.apply(NAME, self.value, self.text)
        self.is_known = True
        return result


def _stoppable(layer: torch.nn.Module) -> Any:
    """Return a layer's call, which a checkpoint ends by an exception once it has all it needs, even
    where the layer catches that and raises another one. No frame keeps an exception: its tensors
    would wait for the collector."""
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return layer._call_impl(*args, **kwargs)
        except Exception as error:
            end = _find_end(error)
            if end is None:
                raise
        try:
            raise end
        finally:
            del end

    return call


def _find_end(error: BaseException) -> BaseException | None:
    """Return a new exception of the kind under `error` that ends a checkpoint; None: there is none,
    or nothing over it."""
    kind = getattr(torch.utils.checkpoint, "_StopRecomputationError", None)
    below = error.__cause__ or error.__context__
    while kind and below is not None and not isinstance(below, kind):
        below = below.__cause__ or below.__context__
    return kind() if kind and below is not None and not isinstance(error, kind) else None


@contextlib.contextmanager
def _unmoved(layer: torch.nn.Module) -> Iterator[None]:
    """Have a second run update copies of batch statistics, not the statistics themselves."""
    kept = [(each, dict(each._buffers)) for each in layer.modules()
            if "running_mean" in each._buffers]
    try:
        for each, buffers in kept:
            each._buffers.update({name: one if one is None else one.clone()
                                  for name, one in buffers.items()})
        yield
    finally:
        for each, buffers in kept:
            each._buffers.update(buffers)
