# SPDX-License-Identifier: Apache-2.0
"""Each of several GPUs keeps a part of all weights, gradients and states: fully_shard() for DDP.

Made in the place of DistributedDataParallel: the layers one by one, then the model. Numbers stay
the same. Weights are gathered for each pass, which moves once their bytes more in a step. What the
program saves of its model are parts, too.
"""
from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from ._layers import find_parts
from ._run import Run
from ._states_sharded import has_ranks
from ._trees import tensors_of
from ._wrap import Former, wrap

NAME, NUMBERS, HELPS = "model_sharded", "same", "any"
TEXT = "weights, gradients and states sharded over the GPUs (fully_shard)"
PATCH = ("from torch.distributed.fsdp import fully_shard  # instead of DDP, before the optimizer\n"
         "for layer in model.layers:\n"
         "    fully_shard(layer)\n"
         "fully_shard(model)\n")
UNSEEN = "the program makes no DistributedDataParallel of several GPUs"
DDP = nn.parallel.DistributedDataParallel


def begin(run: Run, value: Any) -> None:
    held: Any = WeakIdKeyDictionary()  # weights of optimizers

    def take(former: Former, optimizer: Any, *args: Any, **kwargs: Any) -> None:
        former(optimizer, *args, **kwargs)
        held.update((weight, True) for weight in tensors_of(optimizer.param_groups))

    def new(cls: Any, *args: Any, **kwargs: Any) -> Any:
        model = kwargs.get("module", args[0] if args else None)
        made = None
        if cls is DDP and isinstance(model, nn.Module) and has_ranks() and \
                run.guard(can_shard, NAME)(model) and value is not None:
            made = run.guard(shard, NAME)(model)
        return object.__new__(cls) if made is None else made

    def can_shard(model: nn.Module) -> bool:
        if any(weight in held for weight in model.parameters()):
            run.refuse(NAME, "the optimizer is made before DistributedDataParallel")
        elif not hasattr(_import_fsdp(), "fully_shard"):
            run.refuse(NAME, "this PyTorch has no fully_shard()")
        else:
            run.offer(NAME, [True])
            return True
        return False

    def shard(model: nn.Module) -> nn.Module:
        count = sum(weight.nbytes for weight in model.parameters())
        run.steps.count_moves(count)
        for part in [*find_parts(model)[0], model]:
            _import_fsdp().fully_shard(part)
        _have_names_of_ddp(type(model))
        run.apply(NAME, value)
        return model

    wrap(torch.optim.Optimizer, "__init__", take)
    DDP.__new__ = staticmethod(new)


def _import_fsdp() -> Any:
    return importlib.import_module("torch.distributed.fsdp")


def _have_names_of_ddp(kind: Any) -> None:
    """Give a sharded model's own class what programs ask of DistributedDataParallel."""
    @contextlib.contextmanager
    def no_sync(self: Any) -> Iterator[None]:
        self.set_requires_gradient_sync(False)
        try:
            yield
        finally:
            self.set_requires_gradient_sync(True)

    kind.module, kind.no_sync = property(lambda self: self), no_sync
