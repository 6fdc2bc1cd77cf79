# SPDX-License-Identifier: Apache-2.0
"""A pool of a CUDA device's memory: drystone/pool.h over drystone/cuda.h, as ctypes has them.

drystone.cupy, drystone.numba and drystone.rmm share it: a process has one pool for each device.
"""
from __future__ import annotations

import ctypes
import gc
import threading
from typing import NamedTuple

from ._call import NO_SPACE, OK, UNSUPPORTED, CError, check, declare, error_of, options_of
from ._errors import ArgumentError, Error
from ._stats import visit_stats

_PLACEMENTS = {"paged": 0, "torch": 1}


class _CudaOptions(ctypes.Structure):
    """struct dry_cuda_options"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("memory", ctypes.c_void_p),
                ("device", ctypes.c_int32), ("library", ctypes.c_char_p),
                ("no_pages", ctypes.c_bool), ("gpu_direct", ctypes.c_bool),
                ("shareable", ctypes.c_bool)]


class _Device(ctypes.Structure):
    """struct dry_device"""

    _fields_ = [("ops", ctypes.c_void_p), ("self", ctypes.c_void_p)]


class _PoolOptions(ctypes.Structure):
    """struct dry_pool_options"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("memory", ctypes.c_void_p),
                ("device", _Device), ("device_index", ctypes.c_int32),
                ("placement", ctypes.c_int), ("conf", ctypes.c_char_p),
                ("compat", ctypes.c_char_p), ("observe", ctypes.c_void_p),
                ("observe_self", ctypes.c_void_p)]


class _Explanation(ctypes.Structure):
    """struct dry_pool_explanation"""

    _fields_ = [("struct_size", ctypes.c_size_t), *[(name, ctypes.c_uint64) for name in (
        "size", "segment_size", "total_bytes", "free_bytes", "limit_bytes", "allocated_bytes",
        "reserved_bytes", "private_free_bytes", "largest_hole", "largest_hole_any",
        "releasable_bytes", "pending_bytes", "pinned_bytes", "pinner_bytes", "pinner_count",
        "largest_pinner_address", "largest_pinner_hole", "would_fit")],
        ("is_rejected", ctypes.c_bool)]


class MemoryInfo(NamedTuple):
    """Bytes of the device: free ones, all there are, and the largest block to be had."""

    free: int
    total: int
    largest: int


class Pool:
    """Memory of one device, for streams. It lives as long as the process: blocks may outlive it.

    device     the ordinal, as CUDA_VISIBLE_DEVICES leaves them
    placement  "paged": pages move under addresses; "torch": PyTorch's decisions
    conf       options as text, see drystone-pool(5)
    library    of the driver; None: libcuda.so.1

    Streams are CUstreams as numbers. A block belongs to the stream it was asked for, which may
    take the memory again at once when the block is freed. Any thread may call.
    """

    def __init__(self, device: int = 0, placement: str = "paged", conf: str = "", *,
                 library: str | None = None) -> None:
        if placement not in _PLACEMENTS:
            raise ArgumentError(f"placement {placement!r}: 'paged' or 'torch' is expected")
        self.device, self.placement, self.conf = device, placement, conf
        self._open(library)
        self._alloc = declare("dry_pool_alloc", ctypes.c_void_p, ctypes.c_uint64,
                              ctypes.c_uint64, ctypes.c_void_p)
        self._free = declare("dry_pool_free", ctypes.c_void_p, ctypes.c_uint64)
        self._record = declare("dry_pool_record_stream", ctypes.c_void_p, ctypes.c_uint64,
                               ctypes.c_uint64)

    def _open(self, library: str | None) -> None:
        err = CError()
        cuda, self.pointer = ctypes.c_void_p(), ctypes.c_void_p()
        of_cuda = options_of(_CudaOptions, "dry_cuda_options_init")
        of_cuda.device = self.device
        of_cuda.library = library.encode() if library else of_cuda.library
        check(declare("dry_cuda_open", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
            ctypes.byref(of_cuda), ctypes.byref(cuda), ctypes.byref(err)), err)
        options = options_of(_PoolOptions, "dry_pool_options_init")
        options.device = declare("dry_cuda_get_device", ctypes.c_void_p, result=_Device)(cuda)
        options.device_index = self.device
        options.placement = _PLACEMENTS[self.placement]
        options.conf = self.conf.encode()
        status = declare("dry_pool_create", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)(
            ctypes.byref(options), ctypes.byref(self.pointer), ctypes.byref(err))
        if status != OK:
            declare("dry_cuda_close", ctypes.c_void_p, result=None)(cuda)
        check(status, err)

    def alloc(self, size: int, stream: int = 0) -> int:
        """Return the address of a block of `size` bytes for `stream`; 0 for 0 bytes.

        Before a refusal Python's garbage is collected, and the request is tried once more.
        SpaceError: out of memory; the text says who has it.
        """
        address = ctypes.c_uint64()
        status = self._alloc(self.pointer, size, stream, ctypes.byref(address))
        if status == NO_SPACE and gc.collect():
            status = self._alloc(self.pointer, size, stream, ctypes.byref(address))
        if status != OK:
            raise self._refusal(status, size, stream)
        return address.value

    def _refusal(self, status: int, size: int, stream: int) -> Error:
        if status == NO_SPACE:
            return error_of(status, self.explain(size, stream))
        if status == UNSUPPORTED:
            return error_of(status, "this is the child of a fork, and the device belongs to the "
                                    "parent: begin the child by 'spawn' or 'forkserver'")
        text = declare("dry_status_text", ctypes.c_int, result=ctypes.c_char_p)(status).decode()
        return error_of(status, f"{size} bytes on device {self.device}: {text}")

    def free(self, address: int) -> None:
        """Free the block at `address`. Nothing is raised: this runs in destructors."""
        self._free(self.pointer, address)

    def record_stream(self, address: int, stream: int) -> None:
        """Note that `stream`, too, uses the block at `address`, until it is freed."""
        status = self._record(self.pointer, address, stream)
        if status != OK:
            raise error_of(status, f"{address:#x} is no block of this pool in use")

    def stream_waits(self, stream: int, on: int) -> None:
        """Note that the program has made `stream` wait for all work on `on` so far."""
        declare("dry_pool_stream_waits", ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64)(
            self.pointer, stream, on)

    def empty_cache(self) -> None:
        """Give all cached memory back to the device; waits for streams."""
        status = declare("dry_pool_empty_cache", ctypes.c_void_p)(self.pointer)
        if status != OK:
            raise error_of(status, "cached memory could not be given back")

    def set_limit(self, size: int | None) -> None:
        """Take no more than `size` bytes from the device; None: no limit."""
        limit = 2 ** 64 - 1 if size is None else size
        status = declare("dry_pool_set_limit", ctypes.c_void_p, ctypes.c_uint64)(
            self.pointer, limit)
        if status != OK:
            raise error_of(status, f"a limit of {size} bytes is refused")

    def stats(self) -> dict[str, int]:
        """Return the figures of torch.cuda.memory_stats(), by PyTorch's names."""
        return visit_stats("dry_pool_get_stats", "dry_stats_visit", self.pointer)

    def reset_peaks(self) -> None:
        """Let every peak begin again at what there is now."""
        declare("dry_pool_reset_peaks", ctypes.c_void_p, result=None)(self.pointer)

    def memory_info(self) -> MemoryInfo:
        """Return what the device has. Cost: a walk over all blocks."""
        about = self._explain(512, 0)
        return MemoryInfo(about.free_bytes, about.total_bytes, about.would_fit)

    def explain(self, size: int, stream: int = 0) -> str:
        """Return in one line why a request of `size` bytes on `stream` fails, or would."""
        about = self._explain(size, stream)
        limit = ""
        if about.limit_bytes < about.total_bytes:
            limit = f", limit {text_of(about.limit_bytes)}"
        return (f"{text_of(size)} on device {self.device}: the largest block to be had is "
                f"{text_of(about.would_fit)}; {text_of(about.allocated_bytes)} in use, "
                f"{text_of(about.reserved_bytes - about.allocated_bytes)} cached, of which "
                f"{text_of(about.pinned_bytes)} lie beside blocks in use, "
                f"{text_of(about.free_bytes)} of {text_of(about.total_bytes)} free{limit}")

    def _explain(self, size: int, stream: int) -> _Explanation:
        about = _Explanation(struct_size=ctypes.sizeof(_Explanation))
        status = declare("dry_pool_explain", ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint64,
                         ctypes.c_void_p)(self.pointer, size, stream, ctypes.byref(about))
        if status != OK:
            raise error_of(status, f"a request of {size} bytes cannot be explained")
        return about

    def verify(self) -> None:
        """Walk all invariants; Error: one is broken."""
        err = CError()
        check(declare("dry_pool_check", ctypes.c_void_p, ctypes.c_void_p)(
            self.pointer, ctypes.byref(err)), err)


def text_of(size: int) -> str:
    """Return a size as people read one: "1.50 GiB"."""
    value, unit = float(size), "bytes"
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    return f"{size} bytes" if unit == "bytes" else f"{value:.2f} {unit}"


_pools: dict[int, Pool] = {}
_lock = threading.Lock()


def pool_for(device: int, placement: str = "paged", conf: str = "",
             library: str | None = None) -> Pool:
    """Return the process's pool of a device, made by the first call.

    ArgumentError: the pool is there, with another placement or other options.
    """
    with _lock:
        pool = _pools.get(device)
        if pool is None:
            pool = _pools[device] = Pool(device, placement, conf, library=library)
    if (pool.placement, pool.conf) != (placement, conf):
        raise ArgumentError(f"device {device} has a pool already, with placement "
                            f"{pool.placement!r} and options {pool.conf!r}: ask for the same")
    return pool


def pool_of(device: int = 0) -> Pool:
    """Return the pool that pool_for() made for a device; Error: there is none."""
    with _lock:
        pool = _pools.get(device)
    if pool is None:
        raise Error(f"device {device} has no pool yet")
    return pool
