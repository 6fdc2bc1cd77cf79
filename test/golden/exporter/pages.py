# SPDX-License-Identifier: Apache-2.0
"""Pages of running programs, as <drystone/live.h> lays them out, written by this process.

The layout is written down a second time here, so that a reader is held against the header and not
against the library's own writer.
"""
import ctypes
import fcntl
import os
import pathlib
import time

UNKNOWN = (1 << 64) - 1
POOL, PINNED, OTHER = 1, 2, 3
SOURCES_MAX, LANES_MAX, LINES_MAX, TEXT, PATH = 24, 48, 16, 128, 1024
FIGURES = ("reserved", "allocated", "active", "requested", "reserved_peak", "allocated_peak",
           "limit", "retries", "ooms", "driver_allocs", "driver_frees", "driver_calls", "pages_moved",
           "driver_time_ns")
SUMS = ("reserved", "pending", "releasable", "stranded", "largest_hole")
LANE = ("reserved", "allocated", "pending", "releasable", "stranded", "largest_hole")


def fields(*names, kind=ctypes.c_uint64):
    return [(name, kind) for name in names]


class Program(ctypes.Structure):
    _fields_ = [*fields("process", "started_ns"),
                *fields("rank", "world", kind=ctypes.c_int32),
                ("name", ctypes.c_char * TEXT), ("labels", ctypes.c_char * (2 * TEXT))]


class Lane(ctypes.Structure):
    _fields_ = [*fields("stream", "pool_a", "pool_b", "reserved", "allocated", "pending",
                        "releasable", "stranded", "largest_hole")]


class Line(ctypes.Structure):
    _fields_ = [("text", ctypes.c_char * TEXT), *fields("bytes", "count")]


class Figures(ctypes.Structure):
    _fields_ = fields(*FIGURES)


class Detail(ctypes.Structure):
    _fields_ = [*fields("at_ns", *SUMS),
                *fields("lane_count", "line_count", kind=ctypes.c_uint32),
                *fields("stock", "more_lanes"),
                ("lanes", Lane * LANES_MAX), ("lines", Line * LINES_MAX)]


class Source(ctypes.Structure):
    _fields_ = [("kind", ctypes.c_uint32), ("device", ctypes.c_int32),
                ("name", ctypes.c_char * 32), ("uuid", ctypes.c_char * 48),
                *fields("updated_ns", "updates"), ("figures", Figures), ("detail", Detail)]


class Slot(ctypes.Structure):
    _fields_ = [("sequence", ctypes.c_uint64), ("source", Source)]


class Layout(ctypes.Structure):
    _fields_ = [("magic", ctypes.c_uint64),
                *fields("version", "page_bytes", kind=ctypes.c_uint32),
                ("program", Program), ("source_count", ctypes.c_uint64),
                ("request_number", ctypes.c_uint64), ("request_path", ctypes.c_char * PATH),
                ("answer_number", ctypes.c_uint64), ("answer_result", ctypes.c_int64),
                ("answer_text", ctypes.c_char * TEXT), ("slots", Slot * SOURCES_MAX)]


def now_ns():
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class Page:
    """A page in a folder. This process holds its lock, and so is its program."""

    next_number = 0

    def __init__(self, folder, name=b"train", labels=b"", rank=-1, process=None):
        process = process or os.getpid()
        self.number = f"{process}-{Page.next_number}"
        Page.next_number += 1
        self.path = pathlib.Path(folder) / f"drystone-live-{self.number}"
        self.layout = Layout(magic=0x314556494C595244, version=2,
                             page_bytes=ctypes.sizeof(Layout))
        self.layout.program = Program(process=process, started_ns=now_ns(), rank=rank, world=8,
                                      name=name, labels=labels)
        self.file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self.write()
        fcntl.lockf(self.file, fcntl.LOCK_EX, 1)

    def write(self):
        os.pwrite(self.file, bytes(self.layout), 0)

    def add(self, name=b"paged", kind=POOL, device=0, uuid=b"", lanes=(), stock=0, more_lanes=0,
            sums=None, **figures):
        """Add a source. Of `lanes`, each (stream, pool, *LANE); `sums` are the detail's."""
        source = self.layout.slots[self.layout.source_count].source
        source.kind, source.device, source.name, source.uuid = kind, device, name, uuid
        source.figures = Figures(**{"limit": UNKNOWN, **figures})
        if sums:
            source.detail = Detail(at_ns=now_ns(), stock=stock, more_lanes=more_lanes,
                                   lane_count=len(lanes), **dict(zip(SUMS, sums)))
        for i, (stream, pool, *bytes_of) in enumerate(lanes):
            source.detail.lanes[i] = Lane(stream=stream, pool_a=pool[0], pool_b=pool[1],
                                          **dict(zip(LANE, bytes_of)))
        self.layout.source_count += 1
        return self.update(self.layout.source_count - 1)

    def update(self, number, **figures):
        source = self.layout.slots[number].source
        for name, value in figures.items():
            setattr(source.figures, name, value)
        source.updated_ns, source.updates = now_ns(), source.updates + 1
        self.write()
        return source

    def close_and_leave(self):
        """End as a program that was killed does: the lock is gone, and the file is there."""
        os.close(self.file)
