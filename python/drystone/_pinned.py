# SPDX-License-Identifier: Apache-2.0
"""A cache of page-locked memory: drystone/pinned.h, as ctypes has it."""
from __future__ import annotations

import ctypes

from ._call import CError, check, declare, error_of, options_of
from ._stats import visit_stats

_NO_STREAM = 2 ** 64 - 1
_BACKENDS = {"auto": 0, "cuda": 1, "lock": 2}


class _Options(ctypes.Structure):
    """struct dry_pinned_options"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("memory", ctypes.c_void_p),
                ("backend", ctypes.c_int), ("device", ctypes.c_int32),
                ("library", ctypes.c_char_p), ("node", ctypes.c_int32), ("mode", ctypes.c_int),
                ("arena_bytes", ctypes.c_uint64), ("threshold_bytes", ctypes.c_uint64),
                ("warm_bytes", ctypes.c_uint64), ("in_background", ctypes.c_bool),
                ("budget_bytes", ctypes.c_uint64), ("cached_max_bytes", ctypes.c_uint64),
                ("keep_max_bytes", ctypes.c_uint64), ("thread_caches", ctypes.c_bool),
                ("event_batch", ctypes.c_uint32), ("block_bytes", ctypes.c_uint64),
                ("block_count", ctypes.c_uint32), ("page_kind", ctypes.c_int),
                ("page_bytes", ctypes.c_uint64), ("page_policy", ctypes.c_int)]


class PinnedCache:
    """Page-locked memory, cut to size. It lives as long as the process: blocks may outlive it.

    backend  "cuda": registered with the driver; "lock": mlock(); "auto": whichever there is
    device   the ordinal of the device whose context registers
    conf     options as text, "mode:buddy,block_mb:64", see <drystone/pinned.h>
    library  of the driver's; None: libcuda.so.1
    members  of struct dry_pinned_options, by name
    """

    def __init__(self, backend: str = "cuda", device: int = 0, conf: str = "",
                 library: str | None = None, **members: int) -> None:
        err = CError()
        options = options_of(_Options, "dry_pinned_options_init")
        options.backend, options.device = _BACKENDS[backend], device
        options.library = library.encode() if library else options.library
        for name, value in members.items():
            setattr(options, name, value)
        if conf:
            parse = declare("dry_pinned_options_parse", ctypes.c_void_p, ctypes.c_char_p,
                            ctypes.c_void_p)
            check(parse(ctypes.byref(options), conf.encode(), ctypes.byref(err)), err)
        self.pointer = ctypes.c_void_p()
        create = declare("dry_pinned_create", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
        check(create(ctypes.byref(options), ctypes.byref(self.pointer), ctypes.byref(err)), err)
        self._alloc = declare("dry_pinned_alloc", ctypes.c_void_p, ctypes.c_uint64,
                              ctypes.c_uint64, ctypes.c_void_p)
        self._free = declare("dry_pinned_free", ctypes.c_void_p, ctypes.c_void_p)

    def alloc(self, size: int, stream: int = _NO_STREAM) -> int:
        """Return the address of a block of `size` bytes, 0 for none; `stream` is recorded."""
        address = ctypes.c_void_p()
        status = self._alloc(self.pointer, size, stream, ctypes.byref(address))
        if status:
            raise error_of(status, f"{size} bytes of page-locked memory are not to be had")
        return address.value or 0

    def free(self, address: int) -> None:
        """Free the block at `address`. Nothing is raised: this runs in destructors."""
        self._free(self.pointer, address)

    def record_stream(self, address: int, stream: int) -> None:
        """Note that `stream`, a CUstream as a number, uses the block at `address`."""
        status = declare("dry_pinned_record_stream", ctypes.c_void_p, ctypes.c_void_p,
                         ctypes.c_uint64)(self.pointer, address, stream)
        if status:
            raise error_of(status, f"{address:#x} is no block of this cache in use")

    def clear(self) -> None:
        """Give back every idle arena."""
        status = declare("dry_pinned_clear", ctypes.c_void_p)(self.pointer)
        if status:
            raise error_of(status, "idle memory could not be given back")

    def stats(self) -> dict[str, int]:
        """Return the figures of torch.cuda.host_memory_stats(), and more, by name."""
        return visit_stats("dry_pinned_get_stats", "dry_pinned_stats_visit", self.pointer)
