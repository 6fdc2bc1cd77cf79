# SPDX-License-Identifier: Apache-2.0
"""A trace: a file, read by the library. It is walked, never unpickled."""
from __future__ import annotations

import ctypes as c
import functools
import os
from typing import Any

from .._errors import Error
from .._library import load_library

_FINE, _SYSTEM, _CANCELLED = 0, -6, -8
_NO_OFFSET = 0xFFFFFFFFFFFFFFFF
_SMALL_FILE_BYTES = 4 << 30  # memory that any file may take
_UNFOLDING = 64  # more than so many times its own bytes no honest file takes


class DryError(c.Structure):
    """struct dry_error"""

    _fields_ = [("status", c.c_int), ("os_errno", c.c_int), ("offset", c.c_uint64),
                ("text", c.c_char * 232)]


_Read = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_size_t, c.POINTER(c.c_size_t),
                    c.POINTER(DryError))


class _Source(c.Structure):
    """struct dry_source"""

    _fields_ = [("read", _Read), ("self", c.c_void_p)]


class _Options(c.Structure):
    """struct dry_trace_options"""

    _fields_ = [("struct_size", c.c_size_t), ("memory", c.c_void_p),
                ("memory_bytes_max", c.c_uint64), ("depth_max", c.c_uint32),
                ("string_bytes_max", c.c_uint32), ("progress", c.c_void_p),
                ("progress_self", c.c_void_p)]


@functools.cache
def library() -> c.CDLL:
    """The library with its functions declared; Error where there is none."""
    found = load_library()
    if found is None or not hasattr(found, "dry_arrow_export"):
        raise Error("there is no libdrystone that reads snapshots: set DRYSTONE_LIBRARY")
    found.dry_trace_options_init_sized.argtypes = [c.c_void_p, c.c_size_t]
    found.dry_trace_options_init_sized.restype = None
    found.dry_trace_read.argtypes = [c.c_void_p] * 4
    found.dry_trace_destroy.argtypes = [c.c_void_p]
    found.dry_trace_destroy.restype = None
    found.dry_arrow_export.argtypes = [c.c_void_p, c.c_int, c.c_void_p, c.c_void_p, c.c_void_p]
    return found


def memory_allowed(file_bytes: int) -> int:
    """Bytes that reading may take: a packed file may unfold without end."""
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 4 * 3
    return min(machine, max(_SMALL_FILE_BYTES, file_bytes * _UNFOLDING))


class _Reader:
    """A dry_source over a Python file; an exception waits here until the library is back."""

    def __init__(self, file: Any) -> None:
        self._file = file
        self.failure: BaseException | None = None
        self.source = _Source(_Read(self._read), None)

    def _read(self, _self: int | None, buffer: int, capacity: int, got: c.Array[c.c_size_t],
              _error: object) -> int:
        try:
            place = (c.c_char * capacity).from_address(buffer)
            got[0] = self._file.readinto(memoryview(place).cast("B")) or 0
            return _FINE
        except BaseException as failure:  # KeyboardInterrupt, too: C cannot carry it
            self.failure = failure
            return _SYSTEM if isinstance(failure, Exception) else _CANCELLED


class Trace:
    """What the library read; its memory is given back with the object."""

    def __init__(self, file: Any, file_bytes: int, name: str, is_unpacked: bool = False) -> None:
        """Read `file`, which has readinto(); errors give its `name`.

        is_unpacked  its bytes are not those of the file called so
        """
        self._library = library()
        self.address: c.c_void_p | None = c.c_void_p()
        reader, options = _Reader(file), _Options()
        self._library.dry_trace_options_init_sized(c.byref(options), c.sizeof(options))
        options.memory_bytes_max = memory_allowed(file_bytes)
        error = DryError(offset=_NO_OFFSET)
        status = self._library.dry_trace_read(c.byref(reader.source), c.byref(options),
                                              c.byref(self.address), c.byref(error))
        if reader.failure is not None:
            raise reader.failure
        if status != _FINE:
            raise _refused(error, name, is_unpacked)

    def __del__(self) -> None:
        if getattr(self, "address", None):
            self._library.dry_trace_destroy(self.address)
            self.address = None


def _refused(error: DryError, name: str, is_unpacked: bool) -> Error:
    text, offset = error.text.decode("utf-8", "replace"), None
    if error.offset != _NO_OFFSET:
        offset = error.offset
        text = f"byte {offset}{' of the unpacked data' if is_unpacked else ''}: {text}"
    return Error(f"{name}: {text}", file=name, offset=offset)
