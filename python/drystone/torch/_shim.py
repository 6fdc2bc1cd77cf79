# SPDX-License-Identifier: Apache-2.0
"""The shim: C++ of ours between PyTorch and libdrystone, one library a release of PyTorch.

A wheel of Drystone has shims for the releases it knows. For another release, or from a checkout,
one is built at first use and kept in the cache folder; this takes half a minute once.
"""
from __future__ import annotations

import ctypes
import os
import pathlib
import re
from types import ModuleType
from typing import Any

from .. import _library
from .._errors import Error
from . import _build

OLDEST = (2, 8)
_HERE = pathlib.Path(__file__).resolve().parent
_loaded: ctypes.CDLL | None = None


class ShimError(Error):
    """There is no shim for this PyTorch, or it refuses; the text says why."""


def check_same(noun: str, chosen: dict[str, Any], asked: dict[str, Any]) -> None:
    """ShimError where other arguments are asked for than were chosen: it names these."""
    others = [f"{name} is {chosen[name]!r}, and {value!r} is asked for"
              for name, value in asked.items() if value != chosen[name]]
    if others:
        raise ShimError(f"{noun} is enabled already: " + "; ".join(others))


def release_of(torch: ModuleType) -> tuple[int, int]:
    """(2, 15) of "2.15.0+cu132"."""
    found = re.match(r"(\d+)\.(\d+)", torch.__version__)
    if not found:
        raise ShimError(f"PyTorch calls itself {torch.__version__!r}: no release to go by")
    return int(found[1]), int(found[2])


def check(torch: ModuleType) -> tuple[int, int]:
    """ShimError where PyTorch can have no allocator of ours, with the reason."""
    if torch.version.cuda is None:
        raise ShimError(f"PyTorch {torch.__version__} is built without CUDA: there is no device "
                        "memory to allocate")
    release = release_of(torch)
    if release < OLDEST:
        raise ShimError(f"PyTorch {torch.__version__} has another interface: 2.8 is the oldest "
                        "release with a shim")
    return release


def find(torch: ModuleType) -> pathlib.Path:
    """The path of the shim for this PyTorch; it is built if there is none."""
    return _find_packaged(torch) or _build.cached(torch, check(torch), ShimError)


def is_there(torch: ModuleType) -> bool:
    """Tell whether find() has nothing to build."""
    try:
        path = _find_packaged(torch) or _build.place(torch, check(torch), ShimError)
    except ShimError:
        return False
    return path.is_file()


def _find_packaged(torch: ModuleType) -> pathlib.Path | None:
    """The shim that a variable names, or that the package brought; None: there is none."""
    given = os.environ.get("DRYSTONE_SHIM")
    if given:
        return pathlib.Path(given)
    major, minor = check(torch)
    path = _HERE / "shims" / f"libdrystone_torch_{major}_{minor}.so"
    return path if path.is_file() else None


def load() -> ctypes.CDLL:
    """The shim of the imported PyTorch, by ctypes, ready to be called."""
    global _loaded
    if _loaded is None:
        import torch
        release = check(torch)
        path = find(torch)
        _library.require()
        try:
            shim = ctypes.CDLL(str(path))
        except OSError as why:
            raise ShimError(f"{path} does not go with PyTorch {torch.__version__}: {why}") from None
        try:
            _declare(shim)
        except AttributeError as why:
            raise ShimError(f"{path} is of another version of Drystone: {why}") from None
        if shim.dry_shim_release() != release[0] * 100 + release[1]:
            raise ShimError(f"{path} was built for another release of PyTorch")
        _loaded = shim
    return _loaded


def _declare(shim: ctypes.CDLL) -> None:
    shim.dry_shim_release.restype = ctypes.c_int
    shim.dry_shim_enable.restype = ctypes.c_char_p
    shim.dry_shim_enable.argtypes = [ctypes.c_char_p] * 3
    shim.dry_shim_set_conf.restype = ctypes.c_char_p
    shim.dry_shim_set_conf.argtypes = [ctypes.c_char_p]
    shim.dry_shim_placement.restype = ctypes.c_char_p
    shim.dry_shim_counters.restype = None
    shim.dry_shim_counters.argtypes = [ctypes.c_int, ctypes.POINTER(ctypes.c_uint64)]
