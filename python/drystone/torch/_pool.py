# SPDX-License-Identifier: Apache-2.0
"""A part of a program with Drystone's memory, under PyTorch's own allocator."""
import threading
from typing import Any

from . import _plug
from ._conf import warn_of_ignored
from ._enable import enabled
from ._shim import ShimError, release_of

OLDEST = (2, 8)

_segments: Any = None  # PyTorch's handle of our functions: every MemPool has it, until the exit


class pool:
    """`with drystone.torch.pool(): ...`: what this part allocates has memory of Drystone's.

    placement  "paged" or "torch", of the segments; one for all pools of a process
    conf       options of the placement, as text

    PyTorch's native allocator makes the blocks, so statistics, history, snapshots and errors are
    PyTorch's. Only its segments come from Drystone: those of a torch.cuda.MemPool.

    It covers the GPU that is current at its beginning, and the requests of the thread which begins
    it; autograd's threads have their own. The object can be entered any number of times, also
    while it is entered and from several threads. Its memory serves the next time, and goes back to
    the driver after the object's end, with torch.cuda.empty_cache() or when memory runs out.
    Tensors may outlive it.
    """

    def __init__(self, placement: str = "paged", *, conf: str = "") -> None:
        import torch
        _check(torch)
        _make_segments(torch, placement, conf)
        if placement == "paged":
            warn_of_ignored(conf, replaces_torch=False)
        self._torch = torch
        self._lock = threading.Lock()
        self._idle: list[Any] = []  # pools that no entry is using
        self._entered = threading.local()

    def __enter__(self) -> "pool":
        _check(self._torch)  # enable() may have been called since
        with self._lock:
            mine = self._idle.pop() if self._idle else None
        if mine is None:
            mine = self._torch.cuda.MemPool(_segments.allocator())
        scope = self._torch.cuda.use_mem_pool(mine)
        scope.__enter__()
        if not hasattr(self._entered, "stack"):
            self._entered.stack = []
        self._entered.stack.append((mine, scope))
        return self

    def __exit__(self, *why: Any) -> None:
        mine, scope = self._entered.stack.pop()
        scope.__exit__(*why)
        with self._lock:
            self._idle.append(mine)


def _check(torch: Any) -> None:
    if torch.version.cuda is None:
        raise ShimError(f"PyTorch {torch.__version__} is built without CUDA: there is no device "
                        "memory to allocate")
    if enabled():
        raise ShimError("drystone.torch.enable() is on: all memory is Drystone's already. For a "
                        "pool of its own, use torch.cuda.MemPool()")
    backend = torch.cuda.get_allocator_backend()
    if backend != "native":
        raise ShimError(f"PyTorch runs with the allocator \"{backend}\": a part of a program needs "
                        "its native one")
    if release_of(torch) < OLDEST:
        raise ShimError(f"PyTorch {torch.__version__} has no torch.cuda.MemPool, or one that fails "
                        "when two are nested: 2.8 is the oldest release for a part")


def _make_segments(torch: Any, placement: str, conf: str) -> None:
    global _segments
    path = _plug.configured(torch, placement, conf)
    if _segments is None:
        _segments = torch.cuda.memory.CUDAPluggableAllocator(
            path, "drystone_plug_alloc_segment", "drystone_plug_free_segment")
