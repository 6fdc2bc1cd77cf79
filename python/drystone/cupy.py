# SPDX-License-Identifier: Apache-2.0
"""CuPy's memory by Drystone: pages that move under addresses, and a cache of pinned memory.

    import cupy
    import drystone.cupy

    drystone.cupy.enable()               # before the first array
    x = cupy.zeros((1 << 20,), "float32")
    print(drystone.cupy.used_bytes())

Arrays that CuPy's own pool handed out before stay valid and go back to that pool.
"""
from __future__ import annotations

import os
import threading
from typing import Any

import cupy as _cupy

from ._errors import ArgumentError, Error, SpaceError
from ._pinned import PinnedCache
from ._pool import Pool, pool_for

__all__ = ["OutOfMemoryError", "disable", "enable", "free_all_blocks", "pool", "record_stream",
           "total_bytes", "used_bytes"]

_MemoryPointer = _cupy.cuda.MemoryPointer
_PinnedMemoryPointer = _cupy.cuda.PinnedMemoryPointer


class OutOfMemoryError(SpaceError, _cupy.cuda.memory.OutOfMemoryError):
    """CuPy's error, with the text that says who has the memory."""

    def __init__(self, text: str, status: int | None = None) -> None:
        SpaceError.__init__(self, text, status)

    def __reduce__(self) -> Any:
        return (type(self), (str(self), self.status))


class _Block(_cupy.cuda.BaseMemory):
    """A block of a pool's, which goes back with the last array that shows it."""

    def __init__(self, pool: Pool, size: int, stream: int) -> None:
        self.ptr = 0
        self.pool = pool
        self.size = size
        self.device_id = pool.device
        self.ptr = pool.alloc(size, stream)

    def __del__(self) -> None:
        if self.ptr:
            self.pool.free(self.ptr)


class _PinnedBlock:
    """A block of pinned memory, with the members that CuPy reads."""

    __slots__ = ("ptr", "size", "cache")

    def __init__(self, cache: PinnedCache, size: int) -> None:
        self.ptr = 0
        self.size = size
        self.cache = cache
        self.ptr = cache.alloc(size)

    def __del__(self) -> None:
        if self.ptr:
            self.cache.free(self.ptr)


def _current() -> tuple[int, int]:
    """Return the device and the stream that an allocation is for."""
    return _cupy.cuda.device.get_device_id(), _cupy.cuda.get_current_stream().ptr


class _Allocators:
    """Allocators for CuPy to call: a pool for each device, and one cache of pinned memory."""

    def __init__(self, placement: str, conf: str, library: str | None) -> None:
        self.placement, self.conf, self.library = placement, conf, library
        self.pools: dict[int, Pool] = {}
        self.cache: PinnedCache | None = None
        self.lock = threading.Lock()

    def pool(self, device: int) -> Pool:
        found = self.pools.get(device)
        if found is None:
            found = pool_for(device, self.placement, self.conf, self.library)
            self.pools[device] = found
        return found

    def alloc(self, size: int) -> Any:
        device, stream = _current()
        try:
            return _MemoryPointer(_Block(self.pool(device), size, stream), 0)
        except SpaceError as why:
            raise OutOfMemoryError(str(why), why.status) from None

    def alloc_pinned(self, size: int) -> Any:
        cache = self.cache
        if cache is None:
            with self.lock:
                if self.cache is None:
                    self.cache = PinnedCache("cuda", _current()[0], library=self.library)
                cache = self.cache
        return _PinnedMemoryPointer(_PinnedBlock(cache, size), 0)


_installed: _Allocators | None = None


def enable(placement: str = "paged", conf: str = "", *, pinned: bool = True,
           library: str | None = None) -> None:
    """Let CuPy take its memory from pools of ours, one for each device.

    placement  "paged": pages move under addresses, so that free memory anywhere serves a
               request everywhere; "torch": PyTorch's decisions
    conf       options of the pool as text, see drystone-pool(5)
    pinned     also page-locked memory: what cupy.asnumpy() and copies from the host go through
    library    of the driver; None: libcuda.so.1

    Error: no pool can be opened, or this CuPy is for AMD's devices. ArgumentError: an option
    cannot be, or the device has a pool with other options. CuPy's own error: it has no device.
    Nothing is installed then.
    """
    global _installed
    if os.environ.get("CUPY_CUDA_PER_THREAD_DEFAULT_STREAM", "0") not in ("", "0"):
        raise Error("per-thread default streams have one handle for all threads, so a pool cannot "
                    "tell them apart: unset CUPY_CUDA_PER_THREAD_DEFAULT_STREAM")
    if _cupy.cuda.runtime.is_hip:
        raise Error("this CuPy is built for AMD's devices, and the pool is of NVIDIA's alone")
    made = _Allocators(placement, conf, library)
    made.pool(_current()[0])  # so that a refusal comes here
    _cupy.cuda.set_allocator(made.alloc)
    if pinned:
        _cupy.cuda.set_pinned_memory_allocator(made.alloc_pinned)
    _installed = made


def disable() -> None:
    """Let CuPy take memory from its own default pools again. Arrays of ours stay valid."""
    global _installed
    _cupy.cuda.set_allocator(_cupy.get_default_memory_pool().malloc)
    _cupy.cuda.set_pinned_memory_allocator(_cupy.get_default_pinned_memory_pool().malloc)
    _installed = None


def pool(device: int | None = None) -> Pool:
    """Return the pool of a device, by default of the current one; Error if not enabled."""
    if _installed is None:
        raise Error("drystone.cupy is not enabled: call drystone.cupy.enable() first")
    return _installed.pool(_current()[0] if device is None else device)


def used_bytes(device: int | None = None) -> int:
    """Return the bytes in use by arrays, as rounded by the pool."""
    return pool(device).stats()["allocated_bytes.all.current"]


def total_bytes(device: int | None = None) -> int:
    """Return the bytes that the pool has from the device."""
    return pool(device).stats()["reserved_bytes.all.current"]


def free_all_blocks() -> None:
    """Give cached memory back: of every device, and idle pinned memory."""
    if _installed is None:
        raise Error("drystone.cupy is not enabled: call drystone.cupy.enable() first")
    for found in list(_installed.pools.values()):
        found.empty_cache()
    if _installed.cache is not None:
        _installed.cache.clear()


def record_stream(array: Any, stream: Any) -> None:
    """Note that `stream`, too, uses an array's memory: it is used again only after that work.

    array   of CuPy's, or a MemoryPointer
    stream  of CuPy's, or a CUstream as a number

    ArgumentError: the memory is not of a pool of ours.
    """
    memory = getattr(array, "data", array).mem
    if not isinstance(memory, _Block):
        raise ArgumentError("this array's memory is not of a pool of Drystone's")
    if memory.ptr:
        memory.pool.record_stream(memory.ptr, int(getattr(stream, "ptr", stream)))
