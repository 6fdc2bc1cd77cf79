# SPDX-License-Identifier: Apache-2.0
"""Calls of libdrystone: the library, its errors as exceptions, options that fit it."""
from __future__ import annotations

import ctypes
import functools
from typing import Any, TypeVar

from ._errors import ArgumentError, Error, SpaceError
from ._library import find_library, load_library

OK, ARGUMENT, MEMORY, NO_SPACE, UNSUPPORTED = 0, -1, -2, -5, -7

_KINDS = {ARGUMENT: ArgumentError, MEMORY: SpaceError, NO_SPACE: SpaceError}


class CError(ctypes.Structure):
    """struct dry_error"""

    _fields_ = [("status", ctypes.c_int), ("os_errno", ctypes.c_int),
                ("offset", ctypes.c_uint64), ("text", ctypes.c_char * 232)]


_Options = TypeVar("_Options", bound=ctypes.Structure)

_loaded: ctypes.CDLL | None = None


def library() -> ctypes.CDLL:
    """Return the library, loaded once; Error if there is none."""
    global _loaded
    if _loaded is None:
        found = load_library()
        if found is None:
            path = find_library()
            what = f"{path} cannot be loaded" if path else "there is no libdrystone"
            raise Error(f"{what}: set DRYSTONE_LIBRARY to its path")
        _loaded = found
    return _loaded


@functools.cache
def declare(function: str, *types: Any, result: Any = ctypes.c_int) -> Any:
    """Return the library's function of this name with its types set; Error: there is none."""
    try:
        found = getattr(library(), function)
    except AttributeError:
        raise Error(f"libdrystone has no {function}: it is older than this package") from None
    found.argtypes = types
    found.restype = result
    return found


def error_of(status: int, text: str, hint: str = "") -> Error:
    """Return the exception for a status and the library's text."""
    kind = _KINDS.get(status, Error)
    return kind(text + (f"; {hint}" if hint else ""), status)


def check(status: int, err: CError, hint: str = "") -> None:
    """Raise what `err` says unless the status is OK; `hint` is what mends it."""
    if status != OK:
        text = err.text.decode("utf-8", "replace") or f"status {status}"
        raise error_of(status, text, hint)


def options_of(kind: type[_Options], init: str) -> _Options:
    """Return an options struct with the library's defaults, whatever its release."""
    options = kind()
    declare(init + "_sized", ctypes.c_void_p, ctypes.c_size_t, result=None)(
        ctypes.byref(options), ctypes.sizeof(kind))
    return options
