# SPDX-License-Identifier: Apache-2.0
"""Which of torch.compile's activation memory budgets really fits, by the byte.

PyTorch's budget is a part of what the compiler would save between forward and backward. The
peak of a step is something else, and can grow when that budget shrinks. So each candidate is
compiled and run, and the peak decides. On a CUDA device, or under `drystone dry-run`, PyTorch's
allocator says it, of the code that Inductor makes. Elsewhere the partitioned graphs run operation
by operation, and every tensor is counted: what Inductor fuses away is then too much.
"""
from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, Union

import torch

from ..plan._errors import PlanError
from ..plan._knapsack import solver as drystone_solver
from ..plan._live import LiveBytes, bytes_of, tensors_of
from ..plan._roofline import BYTES_PER_SECOND, FLOPS_PER_SECOND, Roofline
from ..plan._stage import cut_loose, run_backward, untouched
from ..plan._types import Context, Loss, Tree
from ._call import arguments_of, loss_of
from ._optimizer import optimizer_bytes
from ._size import read_size, write_size

_BUDGETS = (1.0, 0.8, 0.6, 0.4, 0.2, 0.0)

Backend = Union[str, Callable[..., Any]]


class _Live(LiveBytes):
    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True  # or nothing would be compiled beneath it


class _Time(Roofline):
    @classmethod
    def ignore_compile_internals(cls) -> bool:
        return True


class Judged:
    """One candidate.

    budget          PyTorch's: a part of 1
    promised_bytes  that part of what the budget 1 was seen to save
    saved_bytes     what was there between forward and backward, beyond what was before
    peak_bytes      the most that was allocated; None: it ran out of memory
    seconds         of the step: by the clock on CUDA, by a roofline elsewhere
    """

    def __init__(self, budget: float, saved_bytes: int | None, peak_bytes: int | None,
                 seconds: float | None) -> None:
        self.budget, self.saved_bytes = budget, saved_bytes
        self.peak_bytes, self.seconds = peak_bytes, seconds
        self.promised_bytes = 0

    def fits(self, size: int) -> bool:
        return self.peak_bytes is not None and self.peak_bytes <= size


# --- one step ------------------------------------------------------------------------------


class _Step:
    """The model's step, compiled under one budget and counted."""

    def __init__(self, model: torch.nn.Module, example: Tree, loss: Loss | None,
                 backend: Backend | None) -> None:
        self.model, self.example, self.loss, self.backend = model, example, loss, backend
        weights = [*model.parameters(), *model.buffers()]
        self.is_cuda = any(t.is_cuda for t in [*weights, *tensors_of(example)])
        self.frame = bytes_of([*weights, example])

    def _run(self, compiled: Callable[..., Tree],
             note: Callable[[], object] = lambda: None) -> None:
        args, kwargs = arguments_of(self.example)
        output = compiled(*args, **kwargs)
        value = loss_of(output, self.loss)
        note()
        run_backward(*cut_loose(output if value is None else value))

    def _backend(self) -> Backend:
        if self.backend or self.is_cuda:
            return self.backend or "inductor"
        from torch._dynamo.backends.common import aot_autograd
        from torch._functorch.compilers import nop
        from torch._functorch.partitioners import min_cut_rematerialization_partition
        made: Backend = aot_autograd(fw_compiler=nop, bw_compiler=nop,
                                     partition_fn=min_cut_rematerialization_partition)
        return made

    def _count_live(self, compiled: Callable[..., Tree]) -> tuple[int, int, float]:
        """(Saved, peak, seconds) where operations can be watched."""
        live, clock = _Live(), _Time(FLOPS_PER_SECOND, BYTES_PER_SECOND)
        held: list[int] = []
        with clock, live:
            self._run(compiled, lambda: held.append(live.live))
        return held[0], self.frame + live.peak, clock.seconds

    def _count_cuda(self, compiled: Callable[..., Tree]) -> tuple[int, int, float]:
        """(Saved, peak, seconds), by the allocator."""
        torch.cuda.synchronize()
        base = torch.cuda.memory_allocated()
        held: list[int] = []
        torch.cuda.reset_peak_memory_stats()
        begin = time.perf_counter()
        self._run(compiled, lambda: held.append(torch.cuda.memory_allocated() - base))
        torch.cuda.synchronize()
        return held[0], torch.cuda.max_memory_allocated(), time.perf_counter() - begin

    def judge(self, budget: float, repeats: int) -> Judged:
        """Return a Judged: the most of so many steps, after one that compiles."""
        torch._dynamo.reset()
        gc.collect()
        count = self._count_cuda if self.is_cuda else self._count_live
        runs: list[Callable[[Callable[..., Tree]], Any]] = [self._run, *[count] * repeats]
        seen: list[Any] = []
        try:
            with patched(budget):
                compiled = torch.compile(self.model, backend=self._backend())
                for run in runs:
                    with untouched([self.model], tensors_of(self.example)):
                        seen.append(run(compiled))
        except torch.cuda.OutOfMemoryError:
            return Judged(budget, None, None, None)
        saved, peaks, seconds = zip(*seen[1:])
        return Judged(budget, max(saved), max(peaks), statistics.median(seconds))


def patched(budget: float) -> Context:
    """A context in which the compiler has this budget, and Drystone's knapsack for it."""
    from torch._functorch import config
    made: Context = config.patch(activation_memory_budget=float(budget),
                                 activation_memory_budget_solver=drystone_solver())
    return made


# --- all of them -----------------------------------------------------------------------------


class CompileBudget:
    """What compile_budget() returns. str() is a table.

    budget      for torch._functorch.config.activation_memory_budget
    peak_bytes  of the step under it
    judged      every candidate, the largest budget first
    """

    def __init__(self, size: int, judged: list[Judged], chosen: Judged,
                 optimizer_bytes: int) -> None:
        self.size, self.judged, self._chosen = size, judged, chosen
        self.optimizer_bytes = optimizer_bytes
        self._stack: contextlib.ExitStack | None = None

    @property
    def budget(self) -> float:
        return self._chosen.budget

    @property
    def peak_bytes(self) -> int:
        assert self._chosen.peak_bytes is not None  # it fits
        return self._chosen.peak_bytes

    def patched(self) -> Context:
        """A context for compiling: the first forward and backward of a compiled model."""
        return patched(self.budget)

    def apply(self) -> None:
        """Have all that is compiled from now on use this budget, until undo()."""
        if self._stack is None:
            self._stack = contextlib.ExitStack()
            self._stack.enter_context(self.patched())

    def undo(self) -> None:
        stack, self._stack = self._stack, None
        if stack is not None:
            stack.close()

    def __str__(self) -> str:
        return table_of(self.judged, self.size, self._chosen)


def table_of(judged: list[Judged], size: int, chosen: Judged | None = None) -> str:
    """Candidates, a line each."""
    base = next((each.seconds for each in judged if each.seconds), None)
    lines = [f"{'budget':>6}{'promised':>12}{'saved':>12}{'peak':>12}{'time':>8}"]
    for each in judged:
        if each.peak_bytes is None or each.saved_bytes is None or each.seconds is None:
            lines.append(f"{each.budget:>6.3g}{'':>24}{'out of memory':>20}")
            continue
        mark = "  <" if each is chosen else "" if each.fits(size) else "  does not fit"
        lines.append(f"{each.budget:>6.3g}{write_size(each.promised_bytes):>12}"
                     f"{write_size(each.saved_bytes):>12}{write_size(each.peak_bytes):>12}"
                     f"{each.seconds / base if base else 1:>8.2f}{mark}")
    return "\n".join(lines)


def _bisect(judge: Callable[[float], bool], fitting: Judged, refused: Judged, count: int) -> None:
    """Candidates between one that fits and a larger one that does not."""
    low, high = fitting.budget, refused.budget
    for _ in range(count):
        middle = (low + high) / 2
        if judge(middle):
            low = middle
        else:
            high = middle


def compile_budget(model: torch.nn.Module, example: Tree, budget: int | str = "8GB", *,
                   loss: Loss | None = None, optimizer: torch.optim.Optimizer | None = None,
                   budgets: Sequence[float] | None = None, refine: int = 2, repeats: int = 1,
                   backend: Backend | None = None) -> CompileBudget:
    """Find the largest activation memory budget of torch.compile whose step fits: CompileBudget.

    model      is compiled, as by torch.compile(model); the loss is not
    example    what it is called with: a tensor, a tuple of arguments, a dict of named ones
    budget     of all that a step allocates: "8GB", "7.5GiB", or bytes
    loss       a function of the model's output; without it the output's `loss`, or the output
    optimizer  whose states count, if it has not stepped yet, and whose step has to fit, too
    budgets    candidates, each of which is judged; None: 1, 0.8 ... 0, from the largest on to the
               first that fits, and between that and the one before `refine` times half-way
    repeats    steps that are counted, after one that compiles
    backend    of torch.compile; None: Inductor on CUDA, else the partitioned graphs as they are

    A larger budget recomputes less, so that the largest that fits is the fastest; that a smaller
    one needs less is not assumed. The knapsack is Drystone's. PlanError, with the least peak
    seen, when nothing fits. Each candidate compiles anew and clears what was compiled before.
    """
    size = read_size(budget)
    wanted = sorted(set(budgets or _BUDGETS), reverse=True)
    if not all(isinstance(each, (int, float)) and 0 <= each <= 1 for each in wanted):
        raise PlanError(f"budgets has {wanted}: they are parts of 1")
    if repeats < 1:
        raise PlanError(f"repeats is {repeats}: at least one step is counted")
    step = _Step(model, example, loss, backend)
    states, transient = optimizer_bytes(optimizer) if optimizer else (0, 0)
    unborn = states - (bytes_of(list(optimizer.state.values())) if optimizer and step.is_cuda
                       else 0)
    gradients = bytes_of([p for p in model.parameters() if p.requires_grad])
    judged: list[Judged] = []

    def judge(fraction: float) -> bool:
        found = step.judge(fraction, repeats)
        if found.peak_bytes is not None:
            stepping = step.frame + gradients + states + transient if optimizer else 0
            found.peak_bytes = max(found.peak_bytes + unborn, stepping)
        judged.append(found)
        return found.fits(size)

    _judge_all(judge, judged, wanted, is_given=bool(budgets), size=size, refine=refine)
    return _chosen_of(judged, size, states)


def _judge_all(judge: Callable[[float], bool], judged: list[Judged], wanted: list[float],
               is_given: bool, size: int, refine: int) -> None:
    judge(1.0)  # what the others promise is a part of what this one saves
    for fraction in wanted:
        if fraction != 1.0 and (is_given or not judged[-1].fits(size)):
            judge(fraction)
    if not is_given and len(judged) > 1 and judged[-1].fits(size):
        _bisect(judge, judged[-1], judged[-2], refine)


def _chosen_of(judged: list[Judged], size: int, states: int) -> CompileBudget:
    judged.sort(key=lambda each: -each.budget)
    whole = judged[0].saved_bytes
    for each in judged:
        each.promised_bytes = round(each.budget * (whole or 0))
    fitting = [each for each in judged if each.fits(size)]
    if not fitting:
        peaks = [(each.peak_bytes, each.budget) for each in judged if each.peak_bytes is not None]
        least = f"the least peak seen is {min(peaks)[0]}, with {min(peaks)[1]:.3g}" if peaks else \
            "every one ran out of memory"
        raise PlanError(f"no activation memory budget fits {size} bytes: {least}", 1)
    return CompileBudget(size, judged, fitting[0], states)
