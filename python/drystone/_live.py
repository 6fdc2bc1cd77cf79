# SPDX-License-Identifier: Apache-2.0
"""<drystone/live.h> by ctypes: a page in which this process shows its memory."""
from __future__ import annotations

import ctypes
import os
from typing import Any

from ._call import CError, check, declare, options_of

PINNED, OTHER = 2, 3  # enum dry_live_kind
LANES_MAX, LINES_MAX, TEXT_BYTES, PATH_BYTES = 48, 16, 128, 1024
UNKNOWN = 2**64 - 1
HOST = -1

_U64 = ctypes.c_uint64


class Options(ctypes.Structure):
    """struct dry_live_options"""

    _fields_ = [("struct_size", ctypes.c_size_t), ("memory", ctypes.c_void_p),
                ("folder", ctypes.c_char_p), ("name", ctypes.c_char_p),
                ("labels", ctypes.c_char_p), ("rank", ctypes.c_int32), ("world", ctypes.c_int32),
                ("detail_rest", ctypes.c_uint32)]


class Figures(ctypes.Structure):
    """struct dry_live_figures"""

    _fields_ = [(name, _U64) for name in (
        "reserved", "allocated", "active", "requested", "reserved_peak", "allocated_peak", "limit",
        "retries", "ooms", "driver_allocs", "driver_frees", "driver_calls", "pages_moved",
        "driver_time_ns")]


class Lane(ctypes.Structure):
    """struct dry_live_lane; the pool is two numbers in it"""

    _fields_ = [(name, _U64) for name in (
        "stream", "pool_a", "pool_b", "reserved", "allocated", "pending", "releasable", "stranded",
        "largest_hole")]


class Line(ctypes.Structure):
    """struct dry_live_line"""

    _fields_ = [("text", ctypes.c_char * TEXT_BYTES), ("bytes", _U64), ("count", _U64)]


class Detail(ctypes.Structure):
    """struct dry_live_detail"""

    _fields_ = [("at_ns", _U64), ("reserved", _U64), ("pending", _U64), ("releasable", _U64),
                ("stranded", _U64), ("largest_hole", _U64), ("lane_count", ctypes.c_uint32),
                ("line_count", ctypes.c_uint32), ("stock", _U64), ("more_lanes", _U64),
                ("lanes", Lane * LANES_MAX), ("lines", Line * LINES_MAX)]


def cut(text: str, capacity: int = TEXT_BYTES) -> bytes:
    """Return the text as bytes with place for a zero behind them, cut between characters."""
    whole = text.encode("utf-8", "replace").replace(b"\0", b" ")
    return whole[:capacity - 1].decode("utf-8", "ignore").encode()


class LivePage:
    """A page of this process. One thread calls at a time; what a forked child calls does nothing.

    folder  of the file; None: the library's default
    name    of the program; "": what the system calls it
    labels  "pod=train-0,namespace=ml"; rank and world -1: none
    """

    def __init__(self, folder: str | None = None, name: str = "", labels: str = "",
                 rank: int = -1, world: int = -1) -> None:
        options = options_of(Options, "dry_live_options_init")
        folder_bytes = os.fsencode(folder) if folder else options.folder
        options.folder = folder_bytes
        options.name = cut(name)
        options.labels = cut(labels, 2 * TEXT_BYTES)
        options.rank, options.world = rank, world
        self._live = ctypes.c_void_p()
        self._call("dry_live_create", ctypes.byref(options), ctypes.byref(self._live))
        file = declare("dry_live_name", ctypes.c_void_p, result=ctypes.c_char_p)(self._live)
        self.folder = os.fsdecode(folder_bytes)
        self.file = file.decode()

    @staticmethod
    def _call(function: str, *given: Any) -> None:
        """Call a function whose last parameter is the error."""
        err = CError()
        types = [ctypes.c_void_p] * (len(given) + 1)
        check(declare(function, *types)(*given, ctypes.byref(err)), err)

    def add_other(self, name: str, device: int) -> int:
        """Return the number of a new source of kind OTHER."""
        number, err = ctypes.c_uint32(), CError()
        add = declare("dry_live_add_other", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int32,
                      ctypes.c_void_p, ctypes.c_void_p)
        check(add(self._live, name.encode(), device, ctypes.byref(number), ctypes.byref(err)), err)
        return number.value

    def add_pinned(self, name: str) -> int:
        """Return the number of a new source of kind PINNED, of a cache that is not ours."""
        number, err = ctypes.c_uint32(), CError()
        add = declare("dry_live_add_pinned", ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p,
                      ctypes.c_void_p, ctypes.c_void_p)
        check(add(self._live, name.encode(), None, ctypes.byref(number), ctypes.byref(err)), err)
        return number.value

    def set_uuid(self, number: int, uuid: str) -> None:
        declare("dry_live_set_uuid", ctypes.c_void_p, ctypes.c_uint32, ctypes.c_char_p,
                result=None)(self._live, number, uuid.encode())

    def put(self, number: int, figures: Figures) -> None:
        declare("dry_live_put", ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p)(
            self._live, number, ctypes.byref(figures))

    def put_detail(self, number: int, detail: Detail) -> None:
        declare("dry_live_put_detail", ctypes.c_void_p, ctypes.c_uint32, ctypes.c_void_p)(
            self._live, number, ctypes.byref(detail))

    def request(self) -> tuple[int, str] | None:
        """Return the number and the path of a request that has no answer yet."""
        number, path = _U64(), ctypes.create_string_buffer(PATH_BYTES)
        get = declare("dry_live_get_request", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p,
                      ctypes.c_size_t, result=ctypes.c_bool)
        if not get(self._live, ctypes.byref(number), path, PATH_BYTES):
            return None
        return number.value, os.fsdecode(path.value)

    def answer(self, number: int, result: int, text: str) -> None:
        """Answer a request: `result` 0 for done, else errno or -1."""
        declare("dry_live_answer", ctypes.c_void_p, _U64, ctypes.c_int64, ctypes.c_char_p,
                result=None)(self._live, number, result, cut(text))

    def close(self) -> None:
        """Remove the file. The page is not used again."""
        declare("dry_live_destroy", ctypes.c_void_p, result=None)(self._live)
        self._live = ctypes.c_void_p()

    def abandon(self) -> None:
        """Remove the file while another thread may be using the page, whose memory stays."""
        try:
            os.unlink(os.path.join(self.folder, self.file))
        except OSError:
            pass
