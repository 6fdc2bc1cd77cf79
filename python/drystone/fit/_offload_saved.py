# SPDX-License-Identifier: Apache-2.0
"""What the backward pass needs waits in pinned memory of the host.

Tensors that a training call of an outermost module saves, of LEAST bytes or more, are copied to the
host, and back when the backward pass asks for them. Weights stay. Numbers stay the same. It costs
the link twice the bytes, which are counted, and as much memory of the host.
"""
from __future__ import annotations

import threading
import weakref
from typing import Any

import torch

from ._calls import trains
from ._run import Run

NAME, NUMBERS, HELPS = "offload_saved", "same", "backward"
TEXT = "saved activations wait in the host's memory"
PATCH = ("with torch.autograd.graph.save_on_cpu(pin_memory=True):\n"
         "    output = model(batch)\n")
UNSEEN = "no module was called in training with gradients"
LEAST = 1 << 20  # bytes: smaller copies take longer than they save


class _Waiting:
    """A tensor on the host, and where it is back on the device while somebody uses it there."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.device = tensor.device
        self.host = torch.empty_like(tensor, device="cpu", pin_memory=tensor.is_cuda)
        self.host.copy_(tensor, non_blocking=tensor.is_cuda)
        self.back: Any = lambda: None

    def fetch(self) -> tuple[torch.Tensor, int]:
        """Return the tensor on its device, and the bytes that moved."""
        tensor = self.back()
        if tensor is not None:
            return tensor, 0
        tensor = torch.empty_like(self.host, device=self.device)
        tensor.copy_(self.host, non_blocking=True)
        self.back = weakref.ref(tensor)
        return tensor, self.host.nbytes


class _Offload:
    def __init__(self, run: Run, value: Any) -> None:
        self.run, self.value, self.local = run, value, threading.local()
        self.waiting: dict[Any, tuple[weakref.ref[Any], weakref.ref[_Waiting]]] = {}

    def enter(self, module: torch.nn.Module) -> None:
        self.local.hooks = None
        if not trains(module):
            return
        if self.value is None:
            self.run.offer(NAME, [True])
            return
        self.run.apply(NAME, self.value)
        self.local.hooks = torch.autograd.graph.saved_tensors_hooks(self.pack, self.unpack)
        self.local.hooks.__enter__()

    def leave(self, module: torch.nn.Module, result: Any) -> None:
        if self.local.hooks is not None:
            self.local.hooks.__exit__()

    def pack(self, tensor: torch.Tensor) -> Any:
        is_weight = tensor.requires_grad and tensor.grad_fn is None
        if is_weight or tensor.nbytes < LEAST or tensor.is_sparse or \
                any(not stride and size > 1 for stride, size in zip(tensor.stride(), tensor.shape)):
            return tensor
        storage = tensor.untyped_storage()
        key = (storage._cdata, tensor.data_ptr(), tensor._version, tensor.dtype, tensor.shape,
               tensor.stride())
        known = self.waiting.get(key)
        waiting = known[1]() if known is not None and known[0]() is storage else None
        if waiting is None:
            waiting = _Waiting(tensor.detach())
            self.run.steps.moved_bytes += tensor.nbytes
            self.waiting[key] = (weakref.ref(storage), weakref.ref(waiting))
            weakref.finalize(waiting, self.waiting.pop, key, None)
        return waiting

    def unpack(self, kept: Any) -> Any:
        if not isinstance(kept, _Waiting):
            return kept
        tensor, moved = kept.fetch()
        self.run.steps.moved_bytes += moved
        return tensor


def begin(run: Run, value: Any) -> None:
    offload = _Offload(run, value)
    run.calls.subscribe(NAME, offload.enter, offload.leave)
