# SPDX-License-Identifier: Apache-2.0
"""What a stage is made of: the "operations" of a chain, for options that keep a part of it.

They are what selective checkpointing of PyTorch is asked about, in the same order, so that the
number of a call in a plan is that of the call when the plan runs. And they say what PyTorch can
do, which is less than one would think:

* What is not kept runs again, whether anybody needs it or not, up to the last tensor that is
  saved; what comes after that does not. So every operation is entered as one whose result is
  read; the bytes are those that the backward reads, and what the operation makes beside that,
  which is held as well if it is kept, is a line of its own, "drystone.beside", tied to it.
* What writes in place must run again, and what it writes to must be made again, or it would be
  written to twice. Views are made again, too.
* Random numbers are all drawn again or none of them: who leaves one out gets others.
* Collectives are not repeated.
* Under autocast casts are made again: it keeps those of weights for a while, so that there are
  fewer of them in one run than in the other, and the number of a call says nothing.
"""
from __future__ import annotations

import time
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import SAC_IGNORED_OPS

from ._live import Seen, key_of, tensors_of
from ._roofline import Roofline
from ._stage import call, cut
from ._types import Json, Tree

if TYPE_CHECKING:
    from ._measure import Runner, Timer
    from ._sizes import Facts

BESIDE, ASKING = "drystone.beside", "drystone.asking"
ASKING_MAX = 100  # microseconds of Python at one operation, in both runs
# Of drystone-chain(5): what more there is, is left out.
STAGE_MAX, CHAIN_MAX, INPUTS_MAX = 1024, 16384, 65536
_COLLECTIVES = ("c10d", "_c10d_functional", "_c10d_functional_autograd")


# --- times -----------------------------------------------------------------------------


class OperationClock(TorchDispatchMode):
    def __init__(self, is_cuda: bool) -> None:
        super().__init__()
        self.is_cuda = is_cuda
        self.seconds: list[float] = []

    def _now(self) -> float:
        if self.is_cuda:
            torch.cuda.synchronize()
        return time.perf_counter()

    def __torch_dispatch__(self, func: torch._ops.OpOverload, types: Sequence[type],
                           args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Tree:
        if func in SAC_IGNORED_OPS:
            return func(*args, **(kwargs or {}))
        begin = self._now()
        out = func(*args, **(kwargs or {}))
        self.seconds.append(self._now() - begin)
        return out


class OperationEstimate(Roofline):
    def __init__(self, *rates: float) -> None:
        super().__init__(*rates)
        self.each: list[float] = []

    def note(self, func: torch._ops.OpOverload, seconds: float) -> None:
        if func not in SAC_IGNORED_OPS:
            self.each.append(seconds)


# --- what there is ---------------------------------------------------------------------


def _written(func: torch._ops.OpOverload, args: Sequence[Any],
             kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """Tensors that it writes to."""
    given = dict(zip((argument.name for argument in func._schema.arguments), args))
    given.update(kwargs)
    return tensors_of([given.get(argument.name) for argument in func._schema.arguments
                       if argument.alias_info is not None and argument.alias_info.is_write])


def _has_autocast() -> bool:
    return bool(torch.is_autocast_enabled() or torch.is_autocast_enabled("cpu"))


def _is_random(func: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any]) -> bool:
    if torch.Tag.nondeterministic_seeded not in func.tags:
        return False
    arguments = [argument.name for argument in func._schema.arguments]
    if "dropout_p" not in arguments:
        return True
    place = arguments.index("dropout_p")
    chance = kwargs.get("dropout_p", args[place] if place < len(args)
                        else func._schema.arguments[place].default_value)
    return bool(chance != 0)


class _Operation:
    def __init__(self, func: torch._ops.OpOverload, args: Sequence[Any],
                 kwargs: dict[str, Any]) -> None:
        self.name = str(func)
        self.is_known = isinstance(func, torch._ops.OpOverload)
        self.is_mutable = self.is_known and func._schema.is_mutable
        self.is_random = self.is_known and _is_random(func, args, kwargs)
        self.is_collective = self.is_known and func.namespace in _COLLECTIVES
        self.is_written = False  # by another one
        self.is_view = False
        self.is_cast = False     # one whose number says nothing
        self.inputs: set[int] = set()
        self.fresh: dict[int, int] = {}  # storages that it made: bytes
        self.read = 0        # bytes of them that the backward reads and nobody else holds
        self.beside = 0      # that are held only if it is kept

    @property
    def can_be_kept(self) -> bool:
        return (self.is_known and bool(self.fresh) and not self.is_mutable and
                not self.is_written and not self.is_cast)


class _Tracer(TorchDispatchMode):
    """Who makes which storage, while it lives: its number may be another's afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[_Operation] = []
        # By key, with who made it, and who wrote to it last.
        self.makers: dict[int, tuple[weakref.ref[Any], int, int]] = {}
        self.older: dict[int, weakref.ref[Any]] = {}  # by key
        self.has_autocast = _has_autocast()  # while an operation is handled nobody says so

    def __torch_dispatch__(self, func: torch._ops.OpOverload, types: Sequence[type],
                           args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Tree:
        kwargs = kwargs or {}
        if func in SAC_IGNORED_OPS:
            return func(*args, **kwargs)
        inputs = tensors_of((args, kwargs))
        for tensor in inputs:
            self._enter_older(tensor.untyped_storage())
        out = func(*args, **kwargs)
        operation = _Operation(func, args, kwargs)
        operation.is_cast = self.has_autocast and func.overloadpacket is torch.ops.aten._to_copy
        operation.inputs = {self.makers[key][2] for key in map(key_of, inputs)
                            if key in self.makers}
        number = len(self.operations)
        self.operations.append(operation)
        if operation.is_mutable:
            self._write(_written(func, args, kwargs), number)
        self._enter_made(operation, tensors_of(out), number)
        return out

    def _enter_older(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key not in self.makers and key not in self.older:
            self.older[key] = weakref.ref(storage, lambda _: self.older.pop(key, None))

    def _watched(self, storage: torch.UntypedStorage, key: int) -> weakref.ref[Any]:
        return weakref.ref(storage, lambda _: self.makers.pop(key, None))

    def _write(self, tensors: Sequence[torch.Tensor], number: int) -> None:
        for key in map(key_of, tensors):
            if key in self.makers:
                storage, maker, _ = self.makers[key]
                self.operations[maker].is_written = True
                self.makers[key] = storage, maker, number

    def _enter_made(self, operation: _Operation, tensors: Sequence[torch.Tensor],
                    number: int) -> None:
        has_old = False
        for storage in (tensor.untyped_storage() for tensor in tensors):
            key = storage._cdata
            if key in operation.fresh:
                continue
            if key in self.makers or key in self.older:
                has_old = True
                continue
            operation.fresh[key] = storage.nbytes()
            self.makers[key] = self._watched(storage, key), number, number
        operation.is_view = has_old and not operation.fresh and not operation.is_mutable
        if has_old and operation.fresh:
            operation.is_written = True  # to keep it is to keep what is not its own


class _Order(Seen):
    """And after how many operations the last tensor was saved."""

    def __init__(self, tracer: _Tracer) -> None:
        super().__init__()
        self.tracer = tracer
        self.last = 0

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        self.last = len(self.tracer.operations)
        return super().pack(tensor)


def _trace(runner: Runner, x: Tree) -> tuple[list[_Operation], int]:
    """(operations, how many run before the last tensor is saved)."""
    x = cut(x)
    tracer = _Tracer()
    seen = _Order(tracer)
    with tracer, seen.watching():
        y = call(runner, x)
    ends = {key_of(tensor) for tensor in tensors_of((x, y))}
    for number, operation in enumerate(tracer.operations):
        for key, size in operation.fresh.items():
            is_alive = key in tracer.makers and tracer.makers[key][1] == number
            if is_alive and key in ends:
                continue
            if is_alive and key in seen.storages:
                operation.read += size
            else:
                operation.beside += size
    return tracer.operations, seen.last


# --- as the chain has it ---------------------------------------------------------------


def _line(operation: _Operation, seconds: float, numbers: dict[int, int]) -> Json:
    line = {"name": operation.name, "bytes": operation.read,
            "time": round(seconds * 1e6, 3),
            "inputs": sorted(numbers[i] for i in operation.inputs if i in numbers)}
    if not operation.can_be_kept:
        line["keep"] = "never"
    elif operation.is_collective:
        line["keep"] = "always"
    if operation.is_random:
        line["group"] = 1
    return line


def _lines(operations: Sequence[_Operation], seconds: Sequence[float]) -> list[Json]:
    """Without what costs nothing, unless calls of its name are counted."""
    counted = {each.name for each in operations if each.can_be_kept}
    lines: list[Json] = []
    numbers: dict[int, int] = {}
    for index, (each, time_taken) in enumerate(zip(operations, seconds)):
        if each.name not in counted and not time_taken and not each.read:
            continue
        numbers[index] = len(lines)
        lines.append(_line(each, time_taken, numbers))
        if each.can_be_kept and each.beside:
            lines.append({"name": BESIDE, "bytes": each.beside, "time": 0, "inputs": [],
                          "tied_to": numbers[index], "unread": True})
    return lines


def operations_of(runner: Runner, x: Tree, clock: Timer, forward: float,
                  asking: float | None = 0) -> list[Json]:
    """A stage's, whose times add up to that of its forward, in microseconds.

    What asking about them takes is a line of its own, "drystone.asking", of every choice; None:
    they cannot be chosen from.
    """
    if asking is None:
        return []
    operations, last = _trace(runner, x)
    seconds = clock.operation_times(runner, x)
    if len(seconds) != len(operations):
        return []  # it does something else each time: a number says nothing
    seconds = [0.0 if each.is_view else taken for each, taken in zip(operations, seconds)]
    scale = forward * 1e-6 / sum(seconds) if sum(seconds) else 1.0
    lines = _lines(operations, [taken * scale if index < last else 0.0
                                for index, taken in enumerate(seconds)])
    asking = min(asking, ASKING_MAX * len(operations))  # what is more is noise
    if lines and asking:
        lines.append({"name": ASKING, "bytes": 0, "time": round(asking, 3), "inputs": [],
                      "keep": "never"})
    return lines


def limit_operations(stages: list[Json], facts: list[Facts]) -> None:
    """What a chain cannot have, or says more than the stage saves, is left out."""
    left, inputs_left = CHAIN_MAX, INPUTS_MAX
    for stage, each in zip(stages, facts):
        lines = stage.get("operations", [])
        inputs = sum(len(line["inputs"]) for line in lines)
        read = sum(line["bytes"] for line in lines if not line.get("unread"))
        if (len(lines) > min(left, STAGE_MAX) or inputs > inputs_left or
                read > sum(each.own) + each.beside):
            lines = []
        if lines:
            left -= len(lines)
            inputs_left -= inputs
        else:
            stage.pop("operations", None)
