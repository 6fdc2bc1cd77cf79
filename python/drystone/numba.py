# SPDX-License-Identifier: Apache-2.0
"""Numba's memory by Drystone: its External Memory Management plug-in.

    NUMBA_CUDA_MEMORY_MANAGER=drystone.numba python program.py

or, before a device is used:

    import drystone.numba
    drystone.numba.enable()

Numba does not say on which streams a kernel uses an array. So a freed block is used again only
after the work that all streams had been given by then, as far as the legacy default stream
waits for them: streams made with CU_STREAM_NON_BLOCKING need record_stream().
"""
from __future__ import annotations

import ctypes
import os
import threading
import weakref
from typing import Any

from numba import cuda as _cuda
from numba.cuda.cudadrv import driver as _driver

from ._errors import ArgumentError, Error
from ._pinned import PinnedCache
from ._pool import Pool, pool_for

__all__ = ["Manager", "enable", "pool", "record_stream"]

_LEGACY_STREAM = 0
# Pointers of the host are numbers, but for a Numba that calls the driver by ctypes.
_HAS_NUMBERS = getattr(_driver, "USE_NV_BINDING", True)

_settings: dict[str, Any] = {"placement": "paged", "conf": "", "library": None}
_caches: dict[int, PinnedCache] = {}
_lock = threading.Lock()


def _pinned_cache(device: int) -> PinnedCache:
    with _lock:
        if device not in _caches:
            _caches[device] = PinnedCache("cuda", device, library=_settings["library"])
        return _caches[device]


class Manager(_cuda.GetIpcHandleMixin, _cuda.HostOnlyCUDAMemoryManager):
    """The plug-in; Numba makes one for each context."""

    def initialize(self) -> None:
        """Open the pool of the context's device; Error: there is none to be had."""
        if os.environ.get("NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM", "0") not in ("", "0"):
            raise Error("per-thread default streams have one handle for all threads, so a pool "
                        "cannot tell them apart: unset NUMBA_CUDA_PER_THREAD_DEFAULT_STREAM")
        if self.deallocations.memory_capacity == _driver._SizeNotSet:
            self.deallocations.memory_capacity = self.get_memory_info().total
        if not hasattr(self, "_owner"):
            # The blocks' own stream, on which nothing runs: so an event of the legacy stream
            # decides when memory is used again.
            self._owner = self.context.create_stream()

    def _pool(self) -> Pool:
        return pool_for(self.context.device.id, _settings["placement"], _settings["conf"],
                        _settings["library"])

    def memalloc(self, size: int) -> Any:
        """Return a MemoryPointer to `size` bytes; SpaceError: out of memory."""
        pool = self._pool()
        address = pool.alloc(size, _handle_of(self._owner))
        if address:
            pool.record_stream(address, _LEGACY_STREAM)
        return _driver.MemoryPointer(weakref.proxy(self.context), ctypes.c_void_p(address), size,
                                     finalizer=lambda: pool.free(address))

    def memhostalloc(self, size: int, mapped: bool = False, portable: bool = False,
                     wc: bool = False) -> Any:
        """Return pinned memory from our cache; memory that is write-combined from the driver."""
        if wc:
            return super().memhostalloc(size, mapped, portable, wc)
        cache = _pinned_cache(self.context.device.id)
        address = cache.alloc(size, _LEGACY_STREAM)
        pointer = address if _HAS_NUMBERS else ctypes.c_void_p(address)
        context = weakref.proxy(self.context)
        if not mapped:
            return _driver.PinnedMemory(context, pointer, size,
                                        finalizer=lambda: cache.free(address))
        allocations = self.allocations  # has the only strong reference: own() gives weak ones

        def give_back() -> None:
            allocations.pop(address, None)
            cache.free(address)
        memory = allocations[address] = _driver.MappedMemory(context, pointer, size,
                                                             finalizer=give_back)
        return memory.own()

    def get_memory_info(self) -> Any:
        """Return (free, total): what the device has that nobody has, and all of it."""
        memory_info = self._pool().memory_info()
        return _cuda.MemoryInfo(free=memory_info.free, total=memory_info.total)

    def get_ipc_handle(self, memory: Any) -> Any:
        """Return an IPC handle; Error: placement paged, whose pages the driver exports not so."""
        if _settings["placement"] == "paged":
            raise Error("IPC handles are of whole cudaMalloc'ed ranges, which placement 'paged' "
                        "has none of: call drystone.numba.enable(placement='torch')")
        return super().get_ipc_handle(memory)

    def reset(self) -> None:
        """Give cached memory back; arrays that are alive keep theirs."""
        super().reset()
        self._pool().empty_cache()

    @property
    def interface_version(self) -> int:
        return 1


_numba_memory_manager = Manager


def _handle_of(stream: Any) -> int:
    """Return a CUstream as a number; `stream` is Numba's or such a number."""
    handle = getattr(stream, "handle", stream)
    return int(getattr(handle, "value", handle) or 0)


def enable(placement: str = "paged", conf: str = "", *, library: str | None = None) -> None:
    """Let Numba take its memory from ours, from the first use of a device on.

    placement  "paged" or "torch", see drystone.cupy.enable(); IPC handles need "torch"
    conf       options of the pool as text, see drystone-pool(5)
    library    of the driver; None: libcuda.so.1

    Error: a device is in use already. CuPy and Numba share a pool if both are enabled alike.
    """
    if placement not in ("paged", "torch"):
        raise ArgumentError(f"placement {placement!r}: 'paged' or 'torch' is expected")
    current = _driver._memory_manager
    if current is not None and current is not Manager:
        raise Error("Numba has used its own memory manager already: enable ours before a device "
                    "is used, or set NUMBA_CUDA_MEMORY_MANAGER=drystone.numba")
    _settings.update(placement=placement, conf=conf, library=library)
    _cuda.set_memory_manager(Manager)


def pool(device: int | None = None) -> Pool:
    """Return the pool of a device, by default of the current one."""
    number = _cuda.get_current_device().id if device is None else device
    return pool_for(number, _settings["placement"], _settings["conf"], _settings["library"])


def record_stream(array: Any, stream: Any) -> None:
    """Note that `stream`, too, uses a device array's memory: for streams that do not block.

    array   a device array of Numba's
    stream  of Numba's, or a CUstream as a number
    """
    address = int(array.__cuda_array_interface__["data"][0])
    pool().record_stream(address, _handle_of(stream))
