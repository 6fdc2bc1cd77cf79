# SPDX-License-Identifier: Apache-2.0
"""The owner of a tensor of the library's, as long as Python has a view."""
from __future__ import annotations

import ctypes
from typing import Any

from .._call import CError, check, declare, options_of
from .._pinned import PinnedCache
from ._layout import Form, Legacy, TensorInfo, TensorView, Versioned

READ_ONLY, COPIED = 1, 2
_NAMES = {Legacy: b"dltensor", Versioned: b"dltensor_versioned"}
_EXPORTS = {Legacy: "dry_tensor_export_legacy", Versioned: "dry_tensor_export"}


class Handle:
    """A `struct dry_tensor`. Its memory goes back when this and every export are gone."""

    def __init__(self, pointer: int, cache: PinnedCache | None = None) -> None:
        self.pointer = pointer
        self.cache = cache  # the PinnedCache that has the block; None: pages of the tensor's own
        self.refusal: str | None = None  # why smaller pages than asked for were taken
        self._destroy = declare("dry_tensor_destroy", ctypes.c_void_p, result=None)
        self.info = TensorInfo(struct_size=ctypes.sizeof(TensorInfo))
        declare("dry_tensor_get_info", ctypes.c_void_p, ctypes.c_void_p, result=None)(
            pointer, ctypes.byref(self.info))

    def __del__(self) -> None:
        destroy, pointer = self.__dict__.get("_destroy"), self.__dict__.get("pointer")
        if destroy is not None and pointer:
            destroy(pointer)

    def export(self, kind: Any, form: Form, offset_bytes: int, is_copied: bool,
               device: tuple[int, int]) -> Any:
        """Return a capsule of Python's for a part of the tensor.

        kind    Legacy or Versioned
        device  (type, id) as the consumer is to see it
        """
        view = options_of(TensorView, "dry_tensor_view_init")
        managed, err = ctypes.c_void_p(), CError()
        view.is_part, view.offset_bytes, view.form = True, offset_bytes, form
        export = declare(_EXPORTS[kind], ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
                         ctypes.c_void_p)
        check(export(self.pointer, ctypes.byref(view), ctypes.byref(managed),
                     ctypes.byref(err)), err)
        address = managed.value or 0  # of a success, so that it is there
        seen = kind.from_address(address)
        seen.tensor.device.type, seen.tensor.device.id = device
        if kind is Versioned and is_copied:
            seen.flags |= COPIED
        return _capsule(address, _NAMES[kind])


def _capsule(managed: int, name: bytes) -> Any:
    """The destructor is C: a consumer that refuses a capsule drops it with its exception set."""
    destructor = declare("dry_tensor_drop_capsule", ctypes.c_void_p, result=None)
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    return make(managed, name, ctypes.cast(destructor, ctypes.c_void_p))
