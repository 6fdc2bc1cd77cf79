# SPDX-License-Identifier: Apache-2.0
"""Layers of a model that compute again in the backward pass what they did not keep.

The model is the first module that is called in training with gradients; _layers.py says what its
layers are. Numbers stay the same: random numbers, autocast and batch statistics are those of the
first run. Not for compiled models (see compile_budget), nor for layers that alter their inputs or
buffers. A model's cache of keys and values is off while it trains, since a second run would add to
it.
"""
from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.checkpoint import checkpoint

from ._calls import trains
from ._changes import LEVERS
from ._layers import Chain, find_parts
from ._trees import tensors_of

if TYPE_CHECKING:
    from ._run import Run

Take = Callable[[], None]
Contexts = Callable[[], "tuple[Any, Any]"]


class Twice:
    """layers   those of the first model that trains, in its order; empty before its first call."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.layers: list[torch.nn.Module] = []
        self.chains: list[Chain] = []
        self.configs: dict[int, tuple[Any, torch.nn.Module]] = {}  # they had a cache on
        self.has_caches = True  # until layers compute twice
        self.takes: dict[str, Take] = {}

    def subscribe(self, name: str, take: Take) -> None:
        """Have take() called for the change of this name once there are layers."""
        if not self.takes:
            self.run.calls.subscribe(name, self._enter)
        self.takes[name] = self.run.guard(take, name)

    def look(self, name: str) -> None:
        """Refuse a change whose layers turn out not to be fit for it."""
        _Purity(self.run, name, self.layers[0])

    def compute(self, name: str, layers: Sequence[torch.nn.Module], then: Take,
                contexts: Contexts | None = None) -> None:
        """Have layers compute twice; then() once the first did.

        contexts   make two managers of contexts: for the first run, and for the second
        """
        for chain in self.chains:
            chain.stand_before()
        self.has_caches = False
        for layer in layers:
            layer._compiled_call_impl = _Layer(self.run, name, layer, then, contexts).call

    def _enter(self, module: torch.nn.Module) -> None:
        """Find the layers before the first call of their model; switch its cache."""
        if not self.layers and trains(module):
            self._find(module)
        if not self.has_caches:
            for config, owner in self.configs.values():
                config.use_cache = not owner.training

    def _find(self, module: torch.nn.Module) -> None:
        layers, chains = find_parts(module)
        if not layers:
            return  # a loss, or a part of a model
        why = None
        if any(getattr(each, "gradient_checkpointing", False) for each in module.modules()):
            why = "the program checkpoints its layers already"
        elif self.run.steps.is_compiled or any(_is_compiled(each) for each in module.modules()):
            why = "the program compiles its model: see compile_budget"
        self.layers, self.chains = layers, chains
        self.configs = {id(each.config): (each.config, module) for each in module.modules()
                        if getattr(getattr(each, "config", None), "use_cache", None) is True}
        for name, take in self.takes.items():
            if not why:
                take()
            elif name in LEVERS or name in self.run.changes:
                self.run.refuse(name, why)


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

    def __init__(self, run: Run, name: str, layer: torch.nn.Module) -> None:
        self.run, self.name = run, name
        self.versions: _Versions | None = None
        self.handles = [
            layer.register_forward_pre_hook(run.guard(self.enter), with_kwargs=True),
            layer.register_forward_hook(run.guard(self.leave))]

    def enter(self, layer: torch.nn.Module, args: Any, kwargs: Any) -> None:
        self.versions = _Versions(layer, (args, kwargs))

    def leave(self, *_: Any) -> None:
        why = self.versions and self.versions.altered()
        if why:
            self.run.refuse(self.name, why)
        for handle in self.handles:
            handle.remove()


class _Layer:
    """Stands before a layer's call. A copy of the layer has none, and works as it did."""

    def __init__(self, run: Run, name: str, layer: torch.nn.Module, then: Take,
                 contexts: Contexts | None) -> None:
        self.run, self.name, self.then, self.contexts = run, name, then, contexts
        self.layer, self.is_known = weakref.ref(layer), False
        self.has_statistics = any("running_mean" in each._buffers for each in layer.modules())

    def call(self, *args: Any, **kwargs: Any) -> Any:
        layer = self.layer()
        assert layer is not None
        if not (layer.training and torch.is_grad_enabled()):
            return layer._call_impl(*args, **kwargs)
        if _has_cache([*args, *kwargs.values()]):
            self.run.refuse(self.name,
                            "its layers are given a cache, to which a second run would add")
            return layer._call_impl(*args, **kwargs)
        more: dict[str, Any] = {"context_fn": self.make_contexts} \
            if self.has_statistics or self.contexts else {}
        before = None if self.is_known else _Versions(layer, (args, kwargs))
        result = checkpoint(_stoppable(layer), *args, use_reentrant=False, **more, **kwargs)
        why = before and before.altered()
        if why:
            self.run.refuse(self.name, why)
            raise RuntimeError(f"drystone fit: {self.name}: {why}")
        if not self.is_known and self.name not in self.run.refused:
            self.then()
        self.is_known = True
        return result

    def make_contexts(self) -> tuple[Any, Any]:
        first, second = self.contexts() if self.contexts else (contextlib.nullcontext(),) * 2
        layer = self.layer()
        return first, _unmoved(layer, second) if self.has_statistics and layer else second


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
def _unmoved(layer: torch.nn.Module, within: Any) -> Iterator[None]:
    """Have a second run update copies of batch statistics, not the statistics themselves."""
    kept = [(each, dict(each._buffers)) for each in layer.modules()
            if "running_mean" in each._buffers]
    try:
        for each, buffers in kept:
            each._buffers.update({name: one if one is None else one.clone()
                                  for name, one in buffers.items()})
        with within:
            yield
    finally:
        for each, buffers in kept:
            each._buffers.update(buffers)
