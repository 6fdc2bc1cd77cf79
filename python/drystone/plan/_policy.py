# SPDX-License-Identifier: Apache-2.0
"""Keep the outputs of some operations of a stage, make the others again.

A policy is {"aten.mm.default": [0, 2], ...}: which calls of which operations are kept, counted
from the beginning of the stage. Older releases of PyTorch ask in the second run as well, and
one counter for both would then keep the wrong ones: each run has its own.
"""
from __future__ import annotations

import collections
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

from ._types import Contexts, Policy, Tree

if TYPE_CHECKING:
    from torch.utils.checkpoint import SelectiveCheckpointContext


class Cached(Protocol):
    """A tensor that selective checkpointing keeps, as PyTorch holds it."""

    val: torch.Tensor
    version: int


class _Ask:
    def __init__(self, policy: Policy) -> None:
        self.kept = {name: frozenset(calls) for name, calls in policy.items()}
        self.counts: dict[tuple[bool, str], int] = collections.defaultdict(int)

    def __call__(self, context: SelectiveCheckpointContext, operation: object, *args: Any,
                 **kwargs: Any) -> CheckpointPolicy:
        key = (context.is_recompute, str(operation))
        index = self.counts[key]
        self.counts[key] += 1
        if index in self.kept.get(str(operation), ()):
            return CheckpointPolicy.MUST_SAVE
        return CheckpointPolicy.PREFER_RECOMPUTE


def policy_contexts(policy: Policy) -> Callable[[], Contexts]:
    """For checkpoint(context_fn=...): called once for each run of the stage."""
    return functools.partial(_contexts, policy)


def _contexts(policy: Policy) -> Contexts:
    made: Contexts = create_selective_checkpoint_contexts(_Ask(policy))
    return made


def kept_values(keeping: Any) -> Iterator[Cached]:
    """Where PyTorch has what the first of the two contexts kept: objects with val and version."""
    for calls in keeping.storage.values():
        for kept in calls.values() if isinstance(calls, dict) else calls:
            for value in tree_leaves(kept):
                if isinstance(getattr(value, "val", None), torch.Tensor):
                    yield value


class _Counter(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.counts: collections.Counter[str] = collections.Counter()

    def __torch_dispatch__(self, func: torch._ops.OpOverload, types: Sequence[type],
                           args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Tree:
        self.counts[str(func)] += 1
        return func(*args, **(kwargs or {}))


def policy_of(run: Callable[[], object], operations: Iterable[str]) -> Policy:
    """Keeps every call of these operations that run() makes; {} if it makes none."""
    with torch.no_grad(), _Counter() as counter:
        run()
    return {name: list(range(counter.counts[name])) for name in operations
            if counter.counts[name]}
