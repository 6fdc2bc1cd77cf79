# SPDX-License-Identifier: Apache-2.0
"""The types of elements: the library's table of names, and what NumPy calls them."""
from __future__ import annotations

import ctypes
from typing import Any

from .._call import CError, check, declare
from .._errors import ArgumentError
from ._layout import Dtype

# NumPy's letter for DLPack's code, and the bits that NumPy itself has of it.
_NUMPY = {0: ("i", (8, 16, 32, 64)), 1: ("u", (8, 16, 32, 64)), 2: ("f", (16, 32, 64)),
          5: ("c", (64, 128)), 6: ("b", (8,))}


class ElementType:
    """A type: `name` is PyTorch's, `bits` are of all lanes, `typestr` is NumPy's or None."""

    __slots__ = ("c", "name", "bits", "typestr")

    def __init__(self, c: Dtype, name: str) -> None:
        self.c = c
        self.name = name
        self.bits = c.bits * c.lanes
        letter, widths = _NUMPY.get(c.code, ("", ()))
        has = c.lanes == 1 and c.bits in widths
        order = "|" if c.bits == 8 else "<"
        self.typestr = f"{order}{letter}{c.bits // 8}" if has else None

    def numpy(self) -> Any:
        """Return NumPy's dtype, of the package ml_dtypes where NumPy has none itself."""
        import numpy
        if self.typestr:
            return numpy.dtype(self.typestr)
        try:
            import ml_dtypes
        except ImportError:
            raise ArgumentError(f"NumPy has no {self.name}: install ml_dtypes, or use "
                                "torch.from_dlpack()") from None
        found = getattr(ml_dtypes, self.name, None)
        if found is None or self.bits % 8 or numpy.dtype(found).itemsize * 8 != self.bits:
            raise ArgumentError(f"neither NumPy nor ml_dtypes has {self.name} as it lies here")
        return numpy.dtype(found)


def name_of(dtype: Any) -> str:
    """Return the name of a dtype that is given as text, or as NumPy, PyTorch or JAX have it."""
    if isinstance(dtype, str):
        return dtype
    if isinstance(dtype, type):  # numpy.float32, ml_dtypes.bfloat16, bool
        return dtype.__name__
    name = getattr(dtype, "name", None)
    return name if isinstance(name, str) else str(dtype)  # "torch.float32"


def parse(dtype: Any) -> ElementType:
    """Return the ElementType of `dtype`; ArgumentError: there is no such type."""
    c, err = Dtype(), CError()
    name = name_of(dtype)
    of_library = declare("dry_dtype_parse", ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)
    check(of_library(name.encode("utf-8", "replace"), ctypes.byref(c), ctypes.byref(err)), err)
    known = declare("dry_dtype_name", Dtype, result=ctypes.c_char_p)(c)
    return ElementType(c, known.decode() if known else name)
