# SPDX-License-Identifier: Apache-2.0
"""A model under a budget in one call: its layers are found, measured, planned, and run by it."""
from __future__ import annotations

from collections.abc import Callable

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException, FakeTensorMode
from torch.utils._pytree import tree_map_only

from .. import plan as planning
from ..plan._errors import PlanError
from ..plan._items import read_items
from ..plan._measure import Clock, Estimate, Runner, Timer
from ..plan._roofline import BYTES_PER_SECOND, FLOPS_PER_SECOND
from ..plan._stage import untouched
from ..plan._types import Json, Loss, Stage, Tree
from ..plan._verify import Verdict
from ._call import arguments_of
from ._chain import Layout, chain_of
from ._find import Layers, find_layers
from ._optimizer import optimizer_bytes
from ._record import Call, Recording, called_layers, record
from ._report import Report
from ._size import read_size
from ._steps import Steps
from ._watch import watch_step


class AutoCheckpoint:
    """What auto_checkpoint() returns: the plan at work, and the way back. str() is the report.

    chain, plan  as drystone.plan has them
    report       the promise: peak, time added, what runs again
    """

    def __init__(self, model: torch.nn.Module, example: Tree, loss: Loss | None, steps: Steps,
                 chain: Json, plan: Json) -> None:
        self.model, self.example, self.loss = model, example, loss
        self.chain, self.plan = chain, plan
        self.report = Report(chain, plan, steps.layout)
        self._steps = steps
        steps.place()

    def __str__(self) -> str:
        return str(self.report)

    @property
    def peak_bytes(self) -> int:
        """The most that is alive in a step, weights, gradients and states of an optimizer too."""
        return self.report.peak_bytes

    @property
    def layers(self) -> list[torch.nn.Module]:
        """The modules that may run twice, in their order."""
        return list(self._steps.layers)

    def verify(self, example: Tree = None) -> Verdict:
        """Run one real step, and return promised against seen bytes: a drystone.plan Verdict.

        Gradients, buffers and random numbers are afterwards what they were. On a GPU the
        allocator counts; elsewhere, all tensors that operations return.
        """
        if not self._steps.is_placed:
            raise PlanError("the plan is undone: there is nothing to verify")
        seen = watch_step(self._steps, self.example if example is None else example, self.loss)
        return planning.verify(self.chain, self.plan, seen)

    def undo(self) -> None:
        """Give the model its own calls back. A second undo does nothing."""
        self._steps.remove()


# --- the one call --------------------------------------------------------------------------


_Measured = tuple[list[Call], Json, Layout]
_Finish = Callable[[Recording, Tree, Callable[[Stage], Runner], Timer], _Measured]


class _Request:
    """What auto_checkpoint() was asked for."""

    def __init__(self, model: torch.nn.Module, example: Tree, layers: Layers | None,
                 loss: Loss | None) -> None:
        self.model, self.example, self.loss = model, example, loss
        self.is_named = layers is not None
        self.layers = find_layers(model, layers)

    def record(self, run: Callable[[], Tree], weights: list[torch.Tensor], inputs: Tree,
               rates: tuple[float, float] | None = None) -> Recording:
        called = called_layers(self.model, run, self.layers, self.is_named)
        return record(self.model, run, called, weights, inputs, self.loss, rates)


class _Around(torch.nn.Module):
    """A model, with something else to run while its weights are others."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, run: Callable[[], Tree]) -> Tree:
        return run()


def _with_weights(model: torch.nn.Module, weights: dict[str, torch.Tensor],
                  run: Callable[[], Tree]) -> Tree:
    """Run with these weights in the model, also in what a backward runs again."""
    named = {f"model.{name}": weight for name, weight in weights.items()}
    return torch.func.functional_call(_Around(model), named, (run,))


def _measure_fake(request: _Request, rates: tuple[float, float], finish: _Finish) -> _Measured:
    """The chain of fake tensors, by a roofline."""
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        inputs = tree_map_only(torch.Tensor, mode.from_tensor, request.example)
        weights = {name: mode.from_tensor(tensor) for name, tensor in [
            *request.model.named_parameters(), *request.model.named_buffers()]}

        def run() -> Tree:
            args, kwargs = arguments_of(inputs)
            return request.model(*args, **kwargs)

        try:
            recording = _with_weights(request.model, weights, lambda: request.record(
                run, list(weights.values()), inputs, rates))
        except DataDependentOutputException as why:
            raise PlanError(f"the model asks for numbers, which nobody computes here ({why}): "
                            "plan with fake=False") from why
        for weight in weights.values():
            weight.grad = None
        return finish(recording, inputs, lambda stage: Runner(stage, mode), Estimate(*rates))


def _measure_real(request: _Request, repeats: int, finish: _Finish) -> _Measured:
    """The chain of real tensors, by the clock."""
    args, kwargs = arguments_of(request.example)
    with untouched([request.model]):
        weights = [*request.model.parameters(), *request.model.buffers()]
        recording = request.record(lambda: request.model(*args, **kwargs), weights, request.example)
        return finish(recording, request.example, Runner, Clock(repeats))


def auto_checkpoint(model: torch.nn.Module, example: Tree, budget: int | str = "8GB", *,
                    loss: Loss | None = None, optimizer: torch.optim.Optimizer | None = None,
                    layers: Layers | None = None, fake: bool = True, repeats: int = 3,
                    grads: str = "lazy", operations: bool = False, method: str | None = None,
                    flops_per_second: float = FLOPS_PER_SECOND,
                    bytes_per_second: float = BYTES_PER_SECOND,
                    command: str | None = None) -> AutoCheckpoint:
    """Have a model's training step fit a budget of memory: an AutoCheckpoint.

    model      used afterwards as before; gradients are bit for bit those without a plan
    example    what the model is called with: a tensor, a tuple of arguments, a dict of named ones
    budget     of all tensors of a step: "8GB", "7.5GiB", or bytes. It is PyTorch's *allocated*
               memory: the CUDA context and holes in segments are beside it
    loss       a function of the model's output; without it the output's `loss`, or the output
    optimizer  whose states and whose step's temporaries count; None: there are none
    layers     what may run twice: a name such as "model.h", or several, or modules;
               None: found by structure
    fake       nothing runs and no memory is taken: sizes by FakeTensorMode, times by a roofline
               of the two rates. False: a real step, each layer a checkpoint, and real times
    operations True: single operations of a layer may be kept, too
    grads, repeats, method, command   of drystone.plan

    PlanError, with the least budget, when nothing fits; when the model has no layers, or none
    that a step calls once; when something else than the next layer needs a layer's cache.
    Autocast has to be entered around this call as it is around the step.
    """
    size = read_size(budget)
    if grads not in ("lazy", "static"):
        raise PlanError(f"grads is {grads!r}: it is 'lazy' or 'static'")
    request = _Request(model, example, layers, loss)
    states = optimizer_bytes(optimizer) if optimizer else (0, 0)

    def finish(recording: Recording, inputs: Tree, make_runner: Callable[[Stage], Runner],
               clock: Timer) -> _Measured:
        return (recording.calls, *chain_of(recording, inputs, make_runner, clock, states, grads,
                                           operations))

    calls, chain, layout = (_measure_fake(request, (flops_per_second, bytes_per_second), finish)
                            if fake else _measure_real(request, repeats, finish))
    plan = planning.plan(chain, size, method=method, command=command)
    items, _ = read_items(plan, chain, len(layout.names), True)
    return AutoCheckpoint(model, example, loss, Steps(model, calls, layout, items), chain, plan)
