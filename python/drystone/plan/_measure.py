# SPDX-License-Identifier: Apache-2.0
"""A list of modules becomes a chain: what each takes in time and leaves in memory.

Each stage runs alone, on the real output of the one before: forward, then backward with a
gradient of ones. So a model is measured that as a whole does not fit. What autograd saves is
seen by saved_tensors_hooks; what is alive beside it, by counting (LiveBytes).
"""
from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Union

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map_only
from torch.utils.checkpoint import CheckpointError, checkpoint

from ._errors import PlanError
from ._live import LiveBytes, Meter, bytes_of, meter_for, tensors_of
from ._offload import fit
from ._operations import OperationClock, OperationEstimate, limit_operations, operations_of
from ._policy import policy_contexts, policy_of
from ._roofline import BYTES_PER_SECOND, FLOPS_PER_SECOND, Roofline
from ._sizes import Facts, Names, settle
from ._stage import call, cut, cut_loose, run_backward, untouched
from ._types import Json, Loss, Policy, Stage, Tree

FORMAT = "ckpt-chain/1"

Selective = Mapping[str, Iterable[str]]  # options, and the operations that each keeps


class MeasureOptions(NamedTuple):
    selective: Selective | None
    operations: bool
    offload: float | None
    offload_least: int


class Runner:
    """A stage, and how it is run: as it is, or with its tensors replaced by fake ones."""

    def __init__(self, stage: Stage, fake: FakeTensorMode | None = None) -> None:
        self.stage = stage
        self.is_fake = fake is not None
        self.tensors = {}
        if isinstance(stage, torch.nn.Module):
            self.tensors = {**dict(stage.named_parameters()), **dict(stage.named_buffers())}
        if fake is not None:
            self.tensors = {name: fake.from_tensor(t) for name, t in self.tensors.items()}

    def __call__(self, *args: Any) -> Tree:
        if self.is_fake and self.tensors:
            return torch.func.functional_call(self.stage, self.tensors, args)
        return self.stage(*args)

    def clear_gradients(self) -> None:
        for tensor in self.tensors.values():
            tensor.grad = None

    def gradient_bytes(self) -> int:
        return bytes_of([t.grad for t in self.tensors.values() if t.grad is not None])


Run = Callable[[Runner, Tree], Tree]

# --- bytes -----------------------------------------------------------------------------


def _run_once(runner: Runner, x: Tree, meter: Meter, run: Run = call) -> dict[str, int]:
    """Forward and backward, with the meter's numbers."""
    x = cut(x)
    runner.clear_gradients()
    with meter:
        y = run(runner, x)
        held, forward_peak = meter.live, meter.peak
        meter.restart_peak()
        ends = cut_loose(y)
        del y
        run_backward(*ends)
        backward_peak = meter.peak
    gradient_in = bytes_of([t.grad for t in tensors_of(x) if t.grad is not None])
    kept = runner.gradient_bytes()
    return {
        "held": held,
        "fwd_tmp": max(0, forward_peak - held),
        "bwd_tmp": max(0, backward_peak - held - bytes_of(ends[1]) - gradient_in - kept),
        "grad_out": bytes_of(ends[1]),
        "grads": kept,
    }


def _checkpointed(runner: Runner, x: Tree, **words: Any) -> Tree:
    return checkpoint(call, runner, x, use_reentrant=False,
                      preserve_rng_state=not runner.is_fake, **words)


def _selected(policy: Policy) -> Run:
    def run(runner: Runner, x: Tree) -> Tree:
        return _checkpointed(runner, x, context_fn=policy_contexts(policy))
    return run


# --- times -----------------------------------------------------------------------------


class Clock:
    """Of what runs: the median of so many, after one that is not counted."""

    def __init__(self, repeats: int) -> None:
        self.repeats = repeats

    def _now(self, x: Tree) -> float:
        if any(t.is_cuda for t in tensors_of(x)):
            torch.cuda.synchronize()
        return time.perf_counter()

    def _once(self, runner: Runner, x: Tree, run: Run) -> tuple[float, float]:
        x = cut(x)
        runner.clear_gradients()
        begin = self._now(x)
        y = run(runner, x)
        middle = self._now(x)
        run_backward(*cut_loose(y))
        return middle - begin, self._now(x) - middle

    def times(self, runner: Runner, x: Tree, run: Run = call) -> tuple[float, float]:
        self._once(runner, x, run)
        taken = [self._once(runner, x, run) for _ in range(self.repeats)]
        forward, backward = (statistics.median(column) for column in zip(*taken))
        return forward, backward

    def operation_times(self, runner: Runner, x: Tree) -> list[float]:
        """Of a forward, in the order of operations; none if these are not the same each time."""
        taken = []
        for _ in range(self.repeats):
            with OperationClock(any(t.is_cuda for t in tensors_of(x))) as clock:
                call(runner, cut(x))
            taken.append(clock.seconds)
        if len({len(seconds) for seconds in taken}) != 1:
            return []
        return [statistics.median(column) for column in zip(*taken)]


class Estimate:
    """Of what does not run."""

    def __init__(self, flops_per_second: float, bytes_per_second: float) -> None:
        self.rates = (flops_per_second, bytes_per_second)

    def times(self, runner: Runner, x: Tree, run: Run = call) -> tuple[float, float]:
        x = cut(x)
        runner.clear_gradients()
        with Roofline(*self.rates) as forward:
            y = run(runner, x)
        with Roofline(*self.rates) as backward:
            run_backward(*cut_loose(y))
        return forward.seconds, backward.seconds

    def operation_times(self, runner: Runner, x: Tree) -> list[float]:
        clock = OperationEstimate(*self.rates)
        with clock:
            call(runner, cut(x))
        return clock.each


Timer = Union[Clock, Estimate]


def microseconds(seconds: float) -> float:
    return round(max(seconds, 0) * 1e6, 3)


# --- can it run twice? -----------------------------------------------------------------


def _changes_input(runner: Runner, x: Tree) -> bool:
    with torch.no_grad():
        x = tree_map_only(torch.Tensor, torch.clone, x)
        before = [t._version for t in tensors_of(x)]
        call(runner, x)
        return before != [t._version for t in tensors_of(x)]


def _random_states(x: Tree) -> list[torch.Tensor]:
    states = [torch.get_rng_state()]
    if any(t.is_cuda for t in tensors_of(x)):
        states.append(torch.cuda.get_rng_state())
    return states


def _draws(runner: Runner, x: Tree) -> bool:
    """Does it take random numbers? Of what does not run nobody knows."""
    if runner.is_fake:
        return False
    before = _random_states(x)
    with torch.no_grad():
        call(runner, tree_map_only(torch.Tensor, torch.clone, x))
    return not all(map(torch.equal, before, _random_states(x)))


# --- the chain -------------------------------------------------------------------------


def _measure_option(runner: Runner, x: Tree, clock: Timer, stage: Json, option_id: str,
                    policy: Policy) -> Json:
    counted = _run_once(runner, x, meter_for(x), _selected(policy))
    forward, backward = clock.times(runner, x, _selected(policy))
    more = microseconds(forward + backward) - stage["fwd"] - stage["bwd"]
    return {"id": option_id, "saved": counted["held"], "recompute": round(max(0.0, more), 3),
            "bwd_tmp": counted["bwd_tmp"], "policy": policy}


def _measure_options(runner: Runner, x: Tree, clock: Timer, stage: Json,
                     selective: Selective) -> list[Json]:
    options = []
    for option_id, operations in selective.items():
        policy = policy_of(lambda: call(runner, cut(x)), operations)
        if policy:
            options.append(_measure_option(runner, x, clock, stage, option_id, policy))
    return options


def _asking(runner: Runner, x: Tree, clock: Timer, stage: Json) -> float | None:
    """What selective checkpointing takes for itself, in microseconds: Python, at every
    operation. Of what does not run nobody knows. None: it does not work, since the second run
    saves something else."""
    if runner.is_fake:
        return 0
    try:
        forward, backward = clock.times(runner, x, _selected({}))
    except CheckpointError:
        return None
    more: float = microseconds(forward + backward) - 2 * stage["fwd"] - stage["bwd"]
    return max(0.0, more)


def _add_offloading(stages: list[Json], facts: list[Facts], rate: float, least: int) -> None:
    """What the next stage's forward hides, and its backward."""
    for stage, each, after in zip(stages, facts, stages[1:]):
        window = min(after["fwd"], after["bwd"]) * 1e-6 * rate
        sizes = [size for size in each.own if size >= least]
        moved = sum(sizes[index] for index in fit(sizes, window))
        if moved:
            stage.setdefault("options", []).append(
                {"id": "offload", "saved": stage["saved"], "recompute": 0,
                 "bwd_tmp": stage["bwd_tmp"], "offload": moved})


def _warm_up(runner: Runner, x: Tree) -> int:
    """Bytes that a stage makes once and keeps, which are no activations: a table of angles, or
    weights in another type, which autocast keeps to its end."""
    x = tree_map_only(torch.Tensor, torch.clone, cut(x))
    live = LiveBytes()
    with live:
        call(runner, x)
        return live.live


def _measure_stage(name: str, runner: Runner, x: Tree, clock: Timer,
                   selective: Selective | None) -> tuple[Json, int]:
    """(All but what it saves, bytes that it keeps from step to step)."""
    kept = _warm_up(runner, x)
    if _changes_input(runner, x):
        raise PlanError(f"{name} changes its input in place: join it with the stage before")
    counted = _run_once(runner, x, meter_for(x))
    forward, backward = clock.times(runner, x)
    stage = {"name": name, "fwd": microseconds(forward), "bwd": microseconds(backward),
             "grad_out": counted["grad_out"], "fwd_tmp": counted["fwd_tmp"],
             "bwd_tmp": counted["bwd_tmp"], "grads": counted["grads"],
             "rng": _draws(runner, x)}
    if selective:
        stage["options"] = _measure_options(runner, x, clock, stage, selective)
    return stage, kept


def measure_all(runners: Sequence[Runner], x: Tree, names: Sequence[str], has_loss: bool,
                kinds: MeasureOptions, clock: Timer) -> tuple[list[Json], int]:
    """(Stages, bytes that they keep from step to step)."""
    stages, facts, storages, kept = [], [], Names(x), 0
    torch.clear_autocast_cache()
    for index, (runner, name) in enumerate(zip(runners, names)):
        is_loss = has_loss and index == len(runners) - 1
        stage, more = _measure_stage(name, runner, x, clock,
                                     None if is_loss else kinds.selective)
        stages.append(stage)
        kept += more
        facts.append(Facts(runner, x, storages))
        if kinds.operations and not is_loss:
            stages[-1]["operations"] = operations_of(
                runner, x, clock, stages[-1]["fwd"], _asking(runner, x, clock, stages[-1]))
        x = cut(call(runner, cut(x)))
        storages.follow(x)
    settle(stages, facts)
    if has_loss:  # a number: nobody holds it, and its gradient is 1
        stages[-1].update(out=0, grad_out=0, saved_has_output=False)
    if kinds.operations:
        limit_operations(stages, facts)
    if kinds.offload:
        _add_offloading(stages, facts, kinds.offload, kinds.offload_least)
    return stages, kept


def _persistent(stages: Sequence[Stage], grads: str, optimizer: torch.optim.Optimizer | None,
                step_bytes: int) -> Json:
    modules = [stage for stage in stages if isinstance(stage, torch.nn.Module)]
    parameters = [p for m in modules for p in m.parameters()]
    states = bytes_of(list(optimizer.state.values())) if optimizer else 0
    if optimizer and not states and any(g.get("momentum", 1) for g in optimizer.param_groups):
        raise PlanError("the optimizer has no states yet: measure after its first step")
    return {"params": bytes_of(parameters),
            "grads": {"bytes": bytes_of([p for p in parameters if p.requires_grad]),
                      "alloc": grads},
            "optimizer": states, "step_transient": step_bytes,
            "buffers": bytes_of([b for m in modules for b in m.buffers()])}


def _names(stages: Sequence[Stage], names: Sequence[str] | None, loss: Loss | None) -> list[str]:
    if names is None:
        names = [f"{index}.{getattr(stage, '__name__', type(stage).__name__)}"
                 for index, stage in enumerate(stages[:len(stages) - bool(loss)])]
    names = list(names) + ["loss"] * bool(loss)
    if len(names) != len(stages):
        raise PlanError(f"{len(names)} names for {len(stages)} stages")
    return names


def measure(stages: Iterable[Stage], example: Tree, *, loss: Loss | None = None,
            names: Sequence[str] | None = None, fake: bool = False, repeats: int = 3,
            flops_per_second: float = FLOPS_PER_SECOND, bytes_per_second: float = BYTES_PER_SECOND,
            grads: str = "lazy", optimizer: torch.optim.Optimizer | None = None,
            step_bytes: int = 0, selective: Selective | None = None, operations: bool = False,
            offload: float | None = None, offload_least: int = 1 << 20) -> Json:
    """The chain of `stages`, called one after the other on `example`: a dict, ckpt-chain/1.

    stages     modules or functions; a tuple is handed on as several arguments
    loss       a function of the last output, the last stage of the chain
    fake       nothing runs: sizes by FakeTensorMode, times by a roofline of the two rates.
               Stages that are functions are run as they are, on fake tensors
    repeats    of the timing; the median counts
    grads      "lazy": gradients of weights come to be in the backward (set_to_none);
               "static": they are there from step to step
    optimizer  its states are counted; step_bytes is what its step takes beyond them
    selective  {"sac:matmul": ["aten.mm.default", ...]}: ways to keep less of a stage, each
               measured
    operations  True: what each stage is made of, so that the command finds ways to keep less of
               it by itself; a few runs more of each stage
    offload    bytes a second between device and host: an option "offload" for stages, of what
               can be copied while the next one runs, in storages of offload_least bytes or more

    Parameters, buffers, gradients and the state of the random numbers are left as they were.
    """
    stages = list(stages) + ([loss] if loss else [])
    if not stages:
        raise PlanError("there is no stage to measure")
    if grads not in ("lazy", "static"):
        raise PlanError(f"grads is {grads!r}: it is 'lazy' or 'static'")
    if offload is not None and (isinstance(offload, bool) or
                                not isinstance(offload, (int, float)) or not offload > 0):
        raise PlanError(f"offload is {offload!r}: it is bytes a second")
    kinds = MeasureOptions(selective, operations, offload, offload_least)
    names = _names(stages, names, loss)
    persistent = _persistent(stages, grads, optimizer, step_bytes)
    if fake:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            example = tree_map_only(torch.Tensor, mode.from_tensor, example)
            runners = [Runner(stage, mode) for stage in stages]
            measured, kept = measure_all(runners, example, names, bool(loss), kinds,
                                          Estimate(flops_per_second, bytes_per_second))
    else:
        with untouched(stages):
            runners = [Runner(stage) for stage in stages]
            measured, kept = measure_all(runners, example, names, bool(loss), kinds,
                                          Clock(repeats))
    persistent["buffers"] += kept
    if grads == "static":
        for stage in measured:
            del stage["grads"]
    wanted = [t for t in tensors_of(example) if t.requires_grad]
    return {"format": FORMAT, "convention": "autograd", "persistent": persistent,
            "input": {"bytes": bytes_of(example), "grad": bytes_of(wanted)},
            "stages": measured}
