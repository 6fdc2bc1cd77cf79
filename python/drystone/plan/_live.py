# SPDX-License-Identifier: Apache-2.0
"""How many bytes of tensors are alive, counted operation by operation.

On a GPU the allocator knows. On a CPU, and for tensors without memory (FakeTensorMode), nobody
does: so every storage that an operation returns is entered here, and a weak reference says when
it goes. What was there before the first operation that touched it is not counted: weights,
buffers, inputs. What a kernel takes and gives back within one operation is not seen.
"""
from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any, Optional, Union

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from ._types import Tree

Label = Optional[tuple[str, int]]  # a phase, and a stage or a section


def tensors_of(tree: Tree) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def key_of(tensor: torch.Tensor) -> int:
    """The same for all views of one storage, while it is alive."""
    key: int = tensor.untyped_storage()._cdata
    return key


def bytes_of(tree: Tree) -> int:
    """Of distinct storages."""
    return sum({key_of(t): t.untyped_storage().nbytes() for t in tensors_of(tree)}.values())


class LiveBytes(TorchDispatchMode):
    """Counts while it is entered; `live` and `peak` are of what began to live inside.

    set_label() names what runs from here on; `peaks` has the most that was alive under each.
    """

    def __init__(self) -> None:
        super().__init__()
        self.live = 0
        self.peak = 0
        self.peaks: dict[tuple[str, int], int] = {}
        self.label: Label = None
        self.born: dict[int, tuple[weakref.ref[Any], int]] = {}  # by key, with the bytes
        self.older: dict[int, weakref.ref[Any]] = {}             # by key

    def __torch_dispatch__(self, func: torch._ops.OpOverload, types: Sequence[type],
                           args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Tree:
        kwargs = kwargs or {}
        for tensor in tensors_of((args, kwargs)):
            self._enter_older(tensor)
        out = func(*args, **kwargs)
        for tensor in tensors_of(out):
            self._enter_born(tensor)
        return out

    def _enter_older(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self.born and key not in self.older:
            self.older[key] = weakref.ref(storage, lambda _: self.older.pop(key, None))

    def _enter_born(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.born or key in self.older:
            return
        size = storage.nbytes()
        self.born[key] = (weakref.ref(storage, lambda _: self._leave(key)), size)
        self.live += size
        self._note()

    def _leave(self, key: int) -> None:
        self.live -= self.born.pop(key)[1]

    def _note(self) -> None:
        self.peak = max(self.peak, self.live)
        if self.label is not None:
            self.peaks[self.label] = max(self.peaks.get(self.label, 0), self.live)

    def restart_peak(self) -> None:
        self.peak = self.live

    def set_label(self, label: Label) -> None:
        self.label = label
        self._note()


class Seen:
    """What saved_tensors_hooks show: bytes by storage."""

    def __init__(self) -> None:
        self.storages: dict[int, int] = {}

    def pack(self, tensor: torch.Tensor) -> torch.Tensor:
        self.storages[key_of(tensor)] = tensor.untyped_storage().nbytes()
        return tensor.detach()  # not itself: an output would keep its own node, for ever

    def watching(self) -> torch.autograd.graph.saved_tensors_hooks:
        return torch.autograd.graph.saved_tensors_hooks(self.pack, lambda tensor: tensor)


class CudaBytes:
    """The same as the GPU's allocator tells it: with what a kernel takes for itself."""

    def __enter__(self) -> CudaBytes:
        torch.cuda.synchronize()
        self.base = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        self.before = 0  # the peak until it was last reset
        self.peaks: dict[tuple[str, int], int] = {}
        self.label: Label = None
        return self

    def __exit__(self, *_: object) -> None:
        self.set_label(None)

    @property
    def live(self) -> int:
        return int(torch.cuda.memory_allocated() - self.base)

    @property
    def peak(self) -> int:
        return max(self.before, int(torch.cuda.max_memory_allocated() - self.base))

    def restart_peak(self) -> None:
        torch.cuda.reset_peak_memory_stats()
        self.before = 0

    def set_label(self, label: Label) -> None:
        recent = torch.cuda.max_memory_allocated() - self.base
        if self.label is not None:
            self.peaks[self.label] = max(self.peaks.get(self.label, 0), recent)
        self.before = max(self.before, recent)
        self.label = label
        torch.cuda.reset_peak_memory_stats()


Meter = Union[LiveBytes, CudaBytes]


def meter_for(tree: Tree) -> Meter:
    return CudaBytes() if any(t.is_cuda for t in tensors_of(tree)) else LiveBytes()
