# SPDX-License-Identifier: Apache-2.0
"""Statistics of the library's as a dict, by the names that its visitor gives."""
from __future__ import annotations

import ctypes

from ._call import declare

# Either struct of statistics is smaller, and only the library reads it.
_BUFFER_WORDS = 512
_VISIT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64)


def visit_stats(get: str, visit: str, pointer: ctypes.c_void_p) -> dict[str, int]:
    """Return {name: number}; `get` and `visit` are names of the library's functions."""
    buffer = (ctypes.c_uint64 * _BUFFER_WORDS)(8 * _BUFFER_WORDS)  # the first is struct_size
    found: dict[str, int] = {}
    take = _VISIT(lambda _, key, value: found.__setitem__(key.decode(), value))
    declare(get, ctypes.c_void_p, ctypes.c_void_p, result=None)(pointer, buffer)
    declare(visit, ctypes.c_void_p, _VISIT, ctypes.c_void_p, result=None)(buffer, take, None)
    return found
