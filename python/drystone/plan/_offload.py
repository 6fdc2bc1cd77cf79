# SPDX-License-Identifier: Apache-2.0
"""What a stage saves, on the host between its forward and its backward.

As the judge has it: what leaves is copied while the next stage runs forward, and is gone when
that one is done; it comes back while the next stage runs backward. On a GPU the copies run on a
stream of their own, from and to page-locked memory, and the work that needs them waits for them;
elsewhere they are done at once.

A storage is moved once, however many tensors in it are saved. Weights, buffers, what the stage
was given and what it returns stay, for others hold them. What somebody else holds, too, is copied
and stays where it is all the same: that is not known beforehand. Changing a saved tensor in place
is the error that it is without hooks, up to where its copy is done: that nobody changes.
"""
from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ._live import key_of, tensors_of
from ._types import Tree


def fit(sizes: Sequence[int], budget: float) -> list[int]:
    """Indices, the largest first, of what fits; the same again for the budget that was used."""
    chosen = []
    for index in sorted(range(len(sizes)), key=lambda index: -sizes[index]):
        if sizes[index] <= budget:
            chosen.append(index)
            budget -= sizes[index]
    return chosen


def cover(sizes: Sequence[int], wanted: float) -> list[int]:
    """Indices of what makes up so many bytes, or a little more; all if there is less."""
    chosen = fit(sizes, wanted)
    rest = set(range(len(sizes))) - set(chosen)
    if rest and sum(sizes[index] for index in chosen) < wanted:
        chosen.append(min(rest, key=lambda index: (sizes[index], index)))
    return chosen


@contextlib.contextmanager
def _unseen() -> Iterator[None]:
    """Copies are no part of the model: nobody counts, keeps or differentiates them."""
    with torch.no_grad(), _disable_current_modes():
        yield


def _bytes_in(storage: torch.UntypedStorage) -> torch.Tensor:
    return torch.empty(0, dtype=torch.uint8, device=storage.device).set_(storage)


class Link:
    """Copies between a device and the host."""

    def __init__(self) -> None:
        self.streams: dict[torch.device, torch.cuda.Stream] = {}

    def copy(self, to: torch.Tensor, source: torch.Tensor,
             device: torch.device) -> torch.cuda.Event | None:
        """The event that says when it is done; None: it is."""
        if device.type != "cuda":
            to.copy_(source)
            return None
        if device not in self.streams:
            self.streams[device] = torch.cuda.Stream(device)
        stream = self.streams[device]
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            to.copy_(source, non_blocking=True)
            return stream.record_event()


def wait_for(event: torch.cuda.Event | None, device: torch.device) -> None:
    if event is not None:
        torch.cuda.current_stream(device).wait_event(event)


class _Storage:
    """On the device or on the host; the handles of tensors in it hold it, and nobody else."""

    def __init__(self, storage: torch.UntypedStorage) -> None:
        self.on_device, self.on_host = storage, None
        self.device, self.size = storage.device, storage.nbytes()
        self.done = None  # the event of the copy that was begun last
        self.handles: weakref.WeakSet[_Handle] = weakref.WeakSet()

    def begin_to_leave(self, link: Link) -> None:
        with _unseen():
            self.on_host = torch.empty(self.size, dtype=torch.uint8, device="cpu",
                                       pin_memory=self.device.type == "cuda")
            self.done = link.copy(self.on_host, _bytes_in(self.on_device), self.device)

    def leave(self) -> None:
        """What is queued behind this may use the memory."""
        wait_for(self.done, self.device)
        for handle in self.handles:
            handle.let_go()
        self.on_device = self.done = None

    def begin_to_return(self, link: Link) -> None:
        if self.on_device is not None:
            return
        with torch.no_grad():  # where tensors are counted, these count
            there = torch.empty(self.size, dtype=torch.uint8, device=self.device)
            self.done = link.copy(there, self.on_host, self.device)
        self.on_device = there.untyped_storage()

    def get(self, link: Link) -> torch.UntypedStorage:
        self.begin_to_return(link)
        wait_for(self.done, self.device)
        self.done = self.on_host = None
        return self.on_device

    def __del__(self) -> None:
        """Nobody wanted it back: its memory is not for others while the copy writes to it."""
        wait_for(self.done, self.device)


class _Handle:
    """A saved tensor. What autograd holds is this, or the checkpoint does."""

    def __init__(self, tensor: torch.Tensor, storage: _Storage | None, link: Link) -> None:
        self.tensor, self.storage, self.link = tensor, storage, link
        self.version, self.is_changed = tensor._version, False
        self.form = tensor.dtype, tensor.storage_offset(), tensor.size(), tensor.stride()
        if storage is not None:
            storage.handles.add(self)

    def let_go(self) -> None:
        self._note_change()
        self.tensor = None

    def _note_change(self) -> None:
        if self.tensor is not None:
            self.is_changed = self.tensor._version != self.version

    def get(self) -> torch.Tensor:
        self._note_change()
        if self.is_changed:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an "
                f"inplace operation: a {list(self.form[2])} of {self.form[0]}, saved as version "
                f"{self.version}")
        if self.tensor is not None or self.storage is None:
            return self.tensor
        return self._restored(self.storage.get(self.link))

    def _restored(self, storage: torch.UntypedStorage) -> torch.Tensor:
        dtype, offset, size, stride = self.form
        with torch.no_grad():
            tensor = torch.empty(0, dtype=dtype, device=storage.device)
            return tensor.set_(storage, offset, size, stride)


def _can_move(tensor: torch.Tensor) -> bool:
    """Plain ones, of which size and strides say all; weights are not moved."""
    return (type(tensor) in (torch.Tensor, torch.nn.Parameter) and
            tensor.layout == torch.strided and not tensor.is_quantized and
            not tensor.is_conj() and not tensor.is_neg() and
            not (tensor.is_leaf and tensor.requires_grad))


class Away:
    """What one run of a stage saves, of which `wanted` bytes are to leave."""

    def __init__(self, wanted: float, link: Link) -> None:
        self.wanted, self.link = wanted, link
        # By key, in the order of their saving.
        self.storages: weakref.WeakValueDictionary[int, _Storage] = weakref.WeakValueDictionary()
        self.leaving: list[weakref.ref[_Storage]] = []

    def pack(self, tensor: torch.Tensor) -> _Handle:
        """A handle, to be held in place of the tensor."""
        storage = None
        if _can_move(tensor):
            key = key_of(tensor)
            storage = self.storages.get(key)
            if storage is None:
                storage = self.storages[key] = _Storage(tensor.untyped_storage())
        return _Handle(tensor.detach(), storage, self.link)

    def watching(self, handles: list[_Handle] | None = None
                 ) -> torch.autograd.graph.saved_tensors_hooks:
        """Autograd holds handles; or they go into the list, and autograd's graph is not used."""
        hooks = torch.autograd.graph.saved_tensors_hooks
        if handles is None:
            return hooks(self.pack, _Handle.get)
        return hooks(lambda tensor: handles.append(self.pack(tensor)), _Handle.get)

    def close(self, staying: Tree) -> None:
        """The run is over. What it was given, what it returns and weights stay."""
        stay = {key_of(tensor) for tensor in tensors_of(staying)}
        free = [storage for key, storage in list(self.storages.items()) if key not in stay]
        self.storages.clear()
        chosen = cover([storage.size for storage in free], self.wanted)
        self.leaving = [weakref.ref(free[index]) for index in chosen]

    def _each(self) -> Iterator[_Storage]:
        return filter(None, (ref() for ref in self.leaving))

    def begin_to_leave(self) -> None:
        for storage in self._each():
            storage.begin_to_leave(self.link)

    def leave(self) -> None:
        for storage in self._each():
            storage.leave()

    def begin_to_return(self) -> None:
        for storage in self._each():
            storage.begin_to_return(self.link)


class Traffic:
    """One run forward, stage after stage: what the stage before sends leaves during the next."""

    def __init__(self) -> None:
        self.leaving: Away | None = None

    @contextlib.contextmanager
    def during_stage(self) -> Iterator[None]:
        leaving, self.leaving = self.leaving, None
        if leaving:
            leaving.begin_to_leave()
        try:
            yield
        finally:  # also where a second run ends early within the stage
            if leaving:
                leaving.leave()


class _Again(torch.autograd.Function):
    """Saves these tensors, and does nothing."""

    @staticmethod
    def forward(context: Any, anchor: torch.Tensor, *tensors: Any) -> torch.Tensor:
        context.save_for_backward(*tensors)
        return anchor.clone()

    @staticmethod
    def backward(context: Any, *_: object) -> None:
        raise AssertionError("nobody goes back through a second run")


def save_again(handles: Iterable[_Handle]) -> torch.Tensor:
    """As the stage did, without running it: the checkpoint around it takes what is saved."""
    return _Again.apply(torch.zeros((), requires_grad=True), *(h.get() for h in handles))
