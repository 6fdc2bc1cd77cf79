# SPDX-License-Identifier: Apache-2.0
"""Tables as the library exports them (drystone/arrow.h): for our columns, and for others.

Arrow's structs are made and released by the library alone: a release may come on a thread
without Python, while an exception is being handled, or after the interpreter's end.
"""
from __future__ import annotations

import ctypes as c
import sys
import threading
from collections.abc import Sequence
from typing import Any, Callable

from .._errors import Error
from ._column import Column, Lists
from ._trace import DryError, Trace, library

TABLES = ("events", "segments", "blocks", "devices", "annotations", "stacks", "frames")
# Arrow's, memoryview's.
_FORMATS: dict[Any, str] = {b"C": "B", b"i": "i", b"I": "I", b"l": "q", b"L": "Q"}
_NULLABLE = 2


class _Schema(c.Structure):
    pass


class _Array(c.Structure):
    pass


class _Stream(c.Structure):
    pass


_Schema._fields_ = [("format", c.c_char_p), ("name", c.c_char_p), ("metadata", c.c_void_p),
                    ("flags", c.c_int64), ("n_children", c.c_int64),
                    ("children", c.POINTER(c.POINTER(_Schema))),
                    ("dictionary", c.POINTER(_Schema)),
                    ("release", c.CFUNCTYPE(None, c.POINTER(_Schema))), ("private", c.c_void_p)]
_Array._fields_ = [("length", c.c_int64), ("null_count", c.c_int64), ("offset", c.c_int64),
                   ("n_buffers", c.c_int64), ("n_children", c.c_int64),
                   ("buffers", c.POINTER(c.c_void_p)),
                   ("children", c.POINTER(c.POINTER(_Array))), ("dictionary", c.POINTER(_Array)),
                   ("release", c.CFUNCTYPE(None, c.POINTER(_Array))), ("private", c.c_void_p)]
_Stream._fields_ = [("get_schema", c.CFUNCTYPE(c.c_int, c.POINTER(_Stream), c.POINTER(_Schema))),
                    ("get_next", c.CFUNCTYPE(c.c_int, c.POINTER(_Stream), c.POINTER(_Array))),
                    ("get_last_error", c.c_void_p),
                    ("release", c.CFUNCTYPE(None, c.POINTER(_Stream))), ("private", c.c_void_p)]


def _export(trace: Trace, table: str) -> _Stream:
    stream, error = _Stream(), DryError()
    if library().dry_arrow_export(trace.address, TABLES.index(table), None, c.byref(stream),
                                  c.byref(error)) != 0:
        raise Error(error.text.decode("utf-8", "replace"))
    return stream


def _release(struct: Any) -> None:
    if struct is not None and struct.release:
        struct.release(c.byref(struct))


class Batch:
    """The rows of one table, in memory of the library; views of it keep it."""

    _schema: Any = None
    _array: Any = None

    def __init__(self, trace: Trace, table: str):
        stream, schema, array = _export(trace, table), _Schema(), _Array()
        status = stream.get_schema(c.byref(stream), c.byref(schema))
        stream.get_next(c.byref(stream), c.byref(array))
        self._array = array
        _release(stream)
        if status != 0:
            raise MemoryError(f"no memory for the {table}")
        self._schema = schema
        self.count = array.length

    def __del__(self) -> None:
        _release(self._schema)
        _release(self._array)

    def columns(self) -> dict[str, Any]:
        """The columns by name: each a Column, or Lists."""
        parts = ((self._schema.children[i].contents, self._array.children[i].contents)
                 for i in range(self._schema.n_children))
        return {schema.name.decode(): self._column(schema, array) for schema, array in parts}

    def _column(self, schema: _Schema, array: _Array) -> Any:
        name, count = schema.name.decode(), array.length
        if schema.format == b"+L":
            items = array.children[0].contents
            return Lists(name, self._numbers(array.buffers[1], count + 1, "q"),
                         self._numbers(items.buffers[1], items.length, "I"))
        if schema.format == b"b":
            return Column(name, _unpack_bits(self._numbers(array.buffers[1],
                                                           (count + 7) // 8, "B"), count))
        return Column(name, self._numbers(array.buffers[1], count, _FORMATS[schema.format]),
                      self._labels(array) if schema.dictionary else None,
                      is_nullable=bool(schema.flags & _NULLABLE))

    def _labels(self, array: _Array) -> Callable[[], list[str]]:
        texts = array.dictionary.contents
        offsets = self._numbers(texts.buffers[1], texts.length + 1, "q")
        blob = self._numbers(texts.buffers[2], offsets[-1], "B")
        return lambda: _read_texts(offsets.tolist(), blob)

    def _numbers(self, address: int, count: int, form: Any) -> memoryview:
        """Read-only numbers of memoryview's `form`, which keep this batch."""
        size = count * memoryview(b"").cast(form).itemsize
        place: Any = (c.c_char * size).from_address(address)
        place.batch = self
        return memoryview(place).cast("B").cast(form).toreadonly()


def _read_texts(offsets: Sequence[int], blob: memoryview) -> list[str]:
    return [str(blob[begin:end], "utf-8") for begin, end in zip(offsets, offsets[1:])]


def _unpack_bits(bits: memoryview, count: int) -> Any:
    """A bool for each bit, from the lowest of the first byte on."""
    digits = f"{int.from_bytes(bits, 'little'):0{count}b}"[::-1][:count]
    return memoryview(digits.encode().translate(bytes.maketrans(b"01", b"\0\1"))).cast("?")


_python = c.PyDLL(None)  # a prototype of our own: ctypes.pythonapi is everybody's
_python.PyCapsule_New.argtypes = [c.c_void_p, c.c_char_p, c.c_void_p]
_python.PyCapsule_New.restype = c.py_object
_out: list[tuple[Any, Any, bytes]] = []  # capsules that are out, with the structs they show
_lock = threading.Lock()
_new = (object(),)
_ALONE = sys.getrefcount(_new[0])  # what a capsule counts that only _out has


def _hand_out(struct: Any, name: bytes) -> Any:
    """A capsule of a struct of Arrow's.

    A destructor would be a callback while an exception may be handled. So capsules stay
    here until the next one is made, and those that nobody has any more end then.
    """
    with _lock:
        over = [each for each in _out
                if not each[1].release or sys.getrefcount(each[0]) <= _ALONE]
        for each in over:
            _out.remove(each)
            _release(each[1])
        capsule = _python.PyCapsule_New(c.addressof(struct), name, None)
        _out.append((capsule, struct, name))
    return capsule


def hand_out_stream(trace: Trace, table: str) -> Any:
    """A capsule of the stream of a table, which shares nothing with `trace`."""
    return _hand_out(_export(trace, table), b"arrow_array_stream")


def hand_out_schema(trace: Trace, table: str) -> Any:
    """A capsule of the schema of a table."""
    stream, schema = _export(trace, table), _Schema()
    status = stream.get_schema(c.byref(stream), c.byref(schema))
    _release(stream)
    if status != 0:
        raise MemoryError(f"no memory for the schema of the {table}")
    return _hand_out(schema, b"arrow_schema")
