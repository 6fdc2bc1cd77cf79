# SPDX-License-Identifier: Apache-2.0
"""How many bytes of tensors are alive, counted operation by operation.

On a GPU the allocator knows. On a CPU, and for tensors without memory (FakeTensorMode), nobody
does: so every storage that an operation returns is entered here, and a weak reference says when
it goes. What was there before the first operation that touched it is not counted: weights,
buffers, inputs. What a kernel takes and gives back within one operation is not seen.
"""
import weakref

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def tensors_of(tree):
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def key_of(tensor):
    """The same for all views of one storage, while it is alive."""
    return tensor.untyped_storage()._cdata


def bytes_of(tree):
    """Of distinct storages."""
    return sum({key_of(t): t.untyped_storage().nbytes() for t in tensors_of(tree)}.values())


class LiveBytes(TorchDispatchMode):
    """Counts while it is entered; `live` and `peak` are of what began to live inside.

    set_label() names what runs from here on; `peaks` has the most that was alive under each.
    """

    def __init__(self):
        super().__init__()
        self.live = 0
        self.peak = 0
        self.peaks = {}
        self.label = None
        self.born = {}   # key: (weak reference, bytes)
        self.older = {}  # key: weak reference

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        for tensor in tensors_of((args, kwargs)):
            self._enter_older(tensor)
        out = func(*args, **kwargs)
        for tensor in tensors_of(out):
            self._enter_born(tensor)
        return out

    def _enter_older(self, tensor):
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self.born and key not in self.older:
            self.older[key] = weakref.ref(
                storage, lambda _, key=key: self.older.pop(key, None))

    def _enter_born(self, tensor):
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key in self.born or key in self.older:
            return
        size = storage.nbytes()
        self.born[key] = (weakref.ref(storage, lambda _, key=key: self._leave(key)), size)
        self.live += size
        self._note()

    def _leave(self, key):
        self.live -= self.born.pop(key)[1]

    def _note(self):
        self.peak = max(self.peak, self.live)
        if self.label is not None:
            self.peaks[self.label] = max(self.peaks.get(self.label, 0), self.live)

    def restart_peak(self):
        self.peak = self.live

    def set_label(self, label):
        self.label = label
        self._note()


class Seen:
    """What saved_tensors_hooks show: bytes by storage."""

    def __init__(self):
        self.storages = {}

    def pack(self, tensor):
        self.storages[key_of(tensor)] = tensor.untyped_storage().nbytes()
        return tensor.detach()  # not itself: an output would keep its own node, for ever

    def watching(self):
        return torch.autograd.graph.saved_tensors_hooks(self.pack, lambda tensor: tensor)


class CudaBytes:
    """The same as the GPU's allocator tells it: with what a kernel takes for itself."""

    def __enter__(self):
        torch.cuda.synchronize()
        self.base = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        self.before = 0  # the peak until it was last reset
        self.peaks = {}
        self.label = None
        return self

    def __exit__(self, *_):
        self.set_label(None)

    @property
    def live(self):
        return torch.cuda.memory_allocated() - self.base

    @property
    def peak(self):
        return max(self.before, torch.cuda.max_memory_allocated() - self.base)

    def restart_peak(self):
        torch.cuda.reset_peak_memory_stats()
        self.before = 0

    def set_label(self, label):
        recent = torch.cuda.max_memory_allocated() - self.base
        if self.label is not None:
            self.peaks[self.label] = max(self.peaks.get(self.label, 0), recent)
        self.before = max(self.before, recent)
        self.label = label
        torch.cuda.reset_peak_memory_stats()


def meter_for(tree):
    return CudaBytes() if any(t.is_cuda for t in tensors_of(tree)) else LiveBytes()
