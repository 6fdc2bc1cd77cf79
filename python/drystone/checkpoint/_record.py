# SPDX-License-Identifier: Apache-2.0
"""One step of the whole model, looked at from the layers: who is called, and what lies between.

Every layer runs as a checkpoint, so that the step takes the least memory. A section is what runs
outside of layers: before the first, after the last with the loss, and between two of them if
anything does. Its bytes are differences of what is alive, from the layer before to the one after.
"""
from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

from ..plan._errors import PlanError
from ..plan._live import LiveBytes, Meter, bytes_of, key_of, meter_for, tensors_of
from ..plan._roofline import Roofline
from ..plan._stage import cut, cut_loose, run_backward
from ..plan._types import Loss, Tree
from ._call import (
    Bound,
    Slot,
    call_layer,
    find_slots,
    first_slot,
    loss_of,
    module_name,
    put_at,
    refuse_cache,
    standing_before,
    value_at,
)

Shape = tuple[type, tuple[bool, ...]]  # of what a layer returns, see _shape_of()


class Call:
    """A layer's call in the recording. It holds no tensor that a step would let go."""

    def __init__(self, layer: torch.nn.Module, name: str, args: tuple[Any, ...],
                 kwargs: dict[str, Any]) -> None:
        self.layer, self.name = layer, name
        self.args, self.kwargs = list(args), kwargs
        self.slots: list[Slot] = []  # where x is
        self.is_loose = False    # does something stand between it and the layer before?
        self.x: Tree = None      # detached, if it is loose
        self.fresh_bytes = 0     # of x, beyond what the layer before returned
        self.output_shape: Shape | None = None
        self.output_bytes = self.gradient_bytes = 0  # of what it returned
        self._outputs: list[weakref.ref[Any]] = []
        self._storages: list[weakref.ref[Any]] = []

    def let_go(self) -> None:
        """x is the stage's, and what else the model made on the way belongs to no graph here."""
        self.x = cut(self.x) if self.is_loose else None
        self.args, self.kwargs = cut(self.args), cut(self.kwargs)
        for slot in self.slots:
            put_at(slot, self.args, self.kwargs, None)

    def returned(self, output: Tree) -> None:
        tensors = tensors_of(output)
        self.output_shape = _shape_of(output)
        self.output_bytes = bytes_of(tensors)
        self.gradient_bytes = bytes_of([t for t in tensors if t.requires_grad])
        self._outputs = [weakref.ref(t) for t in tensors]
        self._storages = [weakref.ref(t.untyped_storage()) for t in tensors]

    @property
    def outputs(self) -> list[torch.Tensor]:
        """Those that are still there."""
        return [t for t in (each() for each in self._outputs) if t is not None]

    @property
    def is_output_alive(self) -> bool:
        return any(each() is not None for each in self._storages)


# --- who is called ----------------------------------------------------------------------


def _changes(args: Sequence[Any], kwargs: dict[str, Any], before: list[int]) -> bool:
    return [t._version for t in tensors_of((args, kwargs))] != before


def called_layers(model: torch.nn.Module, run: Callable[[], Tree],
                  layers: Sequence[torch.nn.Module], is_named: bool) -> list[torch.nn.Module]:
    """Return the layers that a step calls once each, in that order.

    run       calls the model on the example
    is_named  the layers were chosen by somebody, who is told if one of them cannot be

    Layers that change an input in place run with what is around them.
    """
    order: list[int] = []
    counts: dict[int, int] = {}
    changing: set[int] = set()
    depth = [0]

    def note(index: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tree:
        if depth[0]:
            raise PlanError(f"{module_name(model, layers[index])} is a part of another layer")
        order.append(index)
        counts[index] = counts.get(index, 0) + 1
        versions = [t._version for t in tensors_of((args, kwargs))]
        depth[0] += 1
        try:
            output = call_layer(layers[index], args, kwargs)
        finally:
            depth[0] -= 1
        if _changes(args, kwargs, versions):
            changing.add(index)
        return output

    with standing_before(layers, note), torch.no_grad():
        run()
    for index, layer in enumerate(layers):
        is_fine = counts.get(index) == 1 and index not in changing
        if is_named and not is_fine:
            why = "changes its input in place" if index in changing else \
                f"is called {counts.get(index, 0)} times in a step"
            raise PlanError(f"{module_name(model, layer)} {why}")
    fine = [i for i in order if counts[i] == 1 and i not in changing]
    if not fine:
        raise PlanError(f"no layer of {type(model).__name__} is called once in a step: name "
                        "others with layers=[...]")
    return [layers[i] for i in fine]


# --- what lies between -------------------------------------------------------------------


class _Ops(TorchDispatchMode):
    """Has any operation run?"""

    def __init__(self) -> None:
        super().__init__()
        self.has_run = False

    def __torch_dispatch__(self, func: torch._ops.OpOverload, types: Sequence[type],
                           args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Tree:
        self.has_run = True
        return func(*args, **(kwargs or {}))


class _OutputReads(TorchFunctionMode):
    """Has anybody looked at what the last layer returned, at its shape for instance?"""

    def __init__(self) -> None:
        super().__init__()
        self.call: Call | None = None  # until the next one begins
        self.was_read = False

    def __torch_function__(self, func: Callable[..., Tree], types: Sequence[type],
                           args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Tree:
        if self.call and not self.was_read:
            seen = {id(t) for t in tensors_of((args, kwargs))}
            self.was_read = any(id(t) in seen for t in self.call.outputs)
        return func(*args, **(kwargs or {}))


class _Times:
    """Seconds of what runs, or what a roofline says of it."""

    def __init__(self, roofline: Roofline | None, is_cuda: bool) -> None:
        self.roofline, self.is_cuda = roofline, is_cuda

    def now(self) -> float:
        if self.roofline:
            return self.roofline.seconds
        if self.is_cuda:
            torch.cuda.synchronize()
        return time.perf_counter()


class Section:
    """What runs outside of layers; bytes and seconds as the recording saw them."""

    def __init__(self) -> None:
        self.begin = self.end = self.peak = 0            # forward
        self.back_begin: int | None = None
        self.back_peak = 0                               # backward, which may come in parts
        self.seconds = self.back_seconds = 0.0
        self.gradients_begin = self.gradients = 0        # of weights


class Recording:
    """Calls in order; section i lies before call i, the last one after all."""

    def __init__(self, model: torch.nn.Module, layers: Sequence[torch.nn.Module],
                 weights: list[torch.Tensor], is_fake: bool) -> None:
        self.model, self.layers, self.is_fake = model, layers, is_fake
        within = {id(p) for layer in layers for p in layer.parameters()}
        self.weights = weights
        self.outside = [w for w in weights if id(w) not in within]
        self.calls: list[Call] = []
        self.sections = [Section() for _ in range(len(layers) + 1)]
        self.has_loss = False
        self.keeps_last = False  # is the last layer's output there when the loss is?
        self.returned_bytes = 0  # of what the model returns
        self.returns_last = False  # is what the last layer returned all there?
        self.older: set[int] = set()  # storages of weights and of the example

    def gradient_bytes(self) -> int:
        """Of weights outside of layers: those of layers are measured with them."""
        return bytes_of([w.grad for w in self.outside if w.grad is not None])


class _Recorder:
    """Runs the step."""

    def __init__(self, recording: Recording, meter: Meter, times: _Times) -> None:
        self.recording, self.meter, self.times = recording, meter, times
        self.ops, self.output_reads = _Ops(), _OutputReads()
        self.seen: set[int] = set()  # storages that a layer was given
        self.at: tuple[str, int] | None = None  # (phase, index of the section that runs)
        self.since = 0.0

    # Where a section begins and ends.

    def enter(self, phase: str, index: int) -> None:
        self.leave()
        section = self.recording.sections[index]
        self.at, self.since = (phase, index), self.times.now()
        if phase == "forward":
            section.begin = self.meter.live
        else:
            if section.back_begin is None:
                section.back_begin = self.meter.live
            section.gradients_begin = self.recording.gradient_bytes()
        self.meter.set_label(self.at)

    def leave(self) -> None:
        if self.at is None:
            return
        (phase, index), self.at = self.at, None
        self.meter.set_label(None)
        section, taken = self.recording.sections[index], self.times.now() - self.since
        peak = self.meter.peaks.get((phase, index), 0)
        if phase == "forward":
            section.end, section.peak, section.seconds = self.meter.live, peak, taken
        else:
            section.back_peak = peak
            section.back_seconds += taken
            section.gradients += self.recording.gradient_bytes() - section.gradients_begin

    def _hook(self, tensors: Sequence[torch.Tensor], index: int | None) -> None:
        """The gradient of these ends or begins a section: which, if any."""
        def reached(_: torch.Tensor) -> None:
            if index is None:
                self.leave()
            else:
                self.enter("backward", index)

        for tensor in tensors:
            if tensor.requires_grad:
                tensor.register_hook(reached)

    # The layers.

    def call(self, index: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tree:
        recording = self.recording
        self.output_reads.call = None
        layer = recording.layers[index]
        call = Call(layer, module_name(recording.model, layer), args, kwargs)
        refuse_cache(call.name, args, kwargs)
        self._link(call)
        self.leave()
        x = call.x
        given = [t for t in tensors_of((args, kwargs)) if key_of(t) not in self.seen]
        self._hook(given, index)  # of what came to be right before
        self.seen.update(map(key_of, given))
        bound = Bound(layer, call.slots, args, kwargs)
        call.let_go()
        checkpoint(bound, *x, use_reentrant=False, preserve_rng_state=not recording.is_fake)
        output = bound.take_output()
        call.returned(output)
        self._hook(call.outputs, None)
        recording.calls.append(call)
        self.ops.has_run, self.output_reads.was_read, self.output_reads.call = False, False, call
        self.enter("forward", len(recording.calls))
        return output

    def _link(self, call: Call) -> None:
        """Find x, and whether it is all that the layer before returned, as it was returned."""
        before = self.recording.calls[-1] if self.recording.calls else None
        linked = find_slots(before.outputs, call.args, call.kwargs) if before else None
        call.slots = linked or first_slot(call.args, call.kwargs) or []
        if not call.slots:
            raise PlanError(f"{call.name} is called without a tensor among its arguments")
        call.is_loose = (not linked or self.ops.has_run or self.output_reads.was_read or
                         before is None or before.output_shape is None)
        call.x = [value_at(slot, call.args, call.kwargs) for slot in call.slots]
        older = self.recording.older | {key_of(t) for t in (before.outputs if before else [])}
        call.fresh_bytes = bytes_of([t for t in call.x if key_of(t) not in older])

    def run(self, call_model: Callable[[], Tree], example: Tree, loss: Loss | None) -> None:
        recording = self.recording
        recording.older = {key_of(t) for t in tensors_of(example) + recording.weights}
        with standing_before(recording.layers, self.call), contextlib.ExitStack() as stack:
            for mode in (self.times.roofline, self.output_reads, self.meter, self.ops):
                if mode is not None:
                    stack.enter_context(mode)
            self.enter("forward", 0)
            output = call_model()
            value = loss_of(output, loss)
            recording.has_loss = value is not None
            last = recording.calls[-1]
            recording.keeps_last = last.is_output_alive
            returned = [t for t in tensors_of(output) if key_of(t) not in recording.older]
            recording.returned_bytes = bytes_of(returned)
            recording.returns_last = ({key_of(t) for t in last.outputs} <=
                                      {key_of(t) for t in returned})
            self.enter("backward", len(recording.layers))
            run_backward(*cut_loose(output if value is None else value))
            self.leave()


def _shape_of(output: Tree) -> Shape | None:
    """(Kind, is it a tensor? of each place) if its tensors stand at the top; else None."""
    if isinstance(output, torch.Tensor):
        return torch.Tensor, (True,)
    if type(output) in (tuple, list) and all(
            isinstance(each, torch.Tensor) or each is None for each in output):
        return type(output), tuple(isinstance(each, torch.Tensor) for each in output)
    return None


def record(model: torch.nn.Module, run: Callable[[], Tree], layers: Sequence[torch.nn.Module],
           weights: list[torch.Tensor], example: Tree, loss: Loss | None,
           rates: tuple[float, float] | None = None) -> Recording:
    """Return the Recording of one step: forward, loss and backward.

    run    calls the model on the example
    rates  FLOPs and bytes a second if the tensors are fake; None: the clock counts
    """
    recording = Recording(model, layers, weights, bool(rates))
    is_cuda = any(t.is_cuda for t in tensors_of(example) + weights) and not rates
    meter = LiveBytes() if rates else meter_for((example, weights))
    times = _Times(Roofline(*rates) if rates else None, is_cuda)
    _Recorder(recording, meter, times).run(run, example, loss)
    return recording
