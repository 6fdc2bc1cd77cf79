# SPDX-License-Identifier: Apache-2.0
"""Pinned tensors: blocks of caches, of which there is one for each kind of memory."""
from __future__ import annotations

import ctypes
import threading
from typing import Any

from .._call import UNSUPPORTED, CError, check, declare
from .._errors import ArgumentError, Error
from .._pinned import PinnedCache
from ._form import whole_numbers
from ._layout import TensorOptions
from ._pages import REMEDY, kind_of, policy_of

_caches: dict[tuple[str, int, int, int, int], PinnedCache] = {}
_lock = threading.Lock()


def _cache_for(backend: str, pages: str | None, node: Any,
               fallback: bool | str | None) -> PinnedCache:
    kind, page_bytes = kind_of(pages)
    numbers = (-1,) if node is None else whole_numbers(node) or ()
    if len(numbers) != 1:
        raise ArgumentError(f"node {node!r}: pinned memory lies on one node, or on any")
    key = (backend, kind, page_bytes, policy_of(pages, fallback), numbers[0])
    with _lock:
        if key not in _caches:
            _caches[key] = _make_cache(*key)
        return _caches[key]


def _make_cache(backend: str, kind: int, page_bytes: int, policy: int,
                node: int) -> PinnedCache:
    try:
        return PinnedCache(backend, page_kind=kind, page_bytes=page_bytes, page_policy=policy,
                           node=node)
    except Error as why:
        if why.status != UNSUPPORTED or backend != "cuda":
            raise
        raise Error(f"{why}; pinned=True needs NVIDIA's driver, pinned='lock' does without",
                    why.status) from None


def create_pinned(options: TensorOptions, pages: str | None, node: Any, pinned: bool | str,
                  fallback: bool | str | None) -> tuple[int, PinnedCache]:
    """Return the library's tensor in a block of the cache for such memory, and the cache."""
    if pinned not in (True, "cuda", "lock"):
        raise ArgumentError(f"pinned {pinned!r}: False, True or 'lock' is expected")
    cache = _cache_for("lock" if pinned == "lock" else "cuda", pages, node, fallback)
    pointer, err = ctypes.c_void_p(), CError()
    create = declare("dry_pinned_create_tensor", ctypes.c_void_p, ctypes.c_void_p,
                     ctypes.c_void_p, ctypes.c_void_p)
    check(create(cache.pointer, ctypes.byref(options), ctypes.byref(pointer), ctypes.byref(err)),
          err, REMEDY)
    return pointer.value or 0, cache


def clear_pinned() -> None:
    """Give back the pinned memory that no tensor has."""
    with _lock:
        caches = list(_caches.values())
    for cache in caches:
        cache.clear()
