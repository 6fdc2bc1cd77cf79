# SPDX-License-Identifier: Apache-2.0
"""Drystone's pools as PyTorch's allocator of device memory."""
from __future__ import annotations

import ctypes
import functools
import os
import sys
import warnings
from types import ModuleType
from typing import Any

from .._errors import first_line
from . import _plug, _shim
from ._after import after
from ._conf import conf_of_torch, warn_of_ignored
from ._record import check_name, on_out_of_memory

_chosen: dict[str, Any] = {}  # the arguments of enable(), and the seam that it took


def enable(placement: str = "paged", *, conf: str | None = None,
           on_oom: str | os.PathLike[str] | None = None, seam: str = "auto") -> None:
    """Make Drystone's allocator PyTorch's, for all GPUs of this process.

    placement  "paged": ours; free memory anywhere serves a request everywhere.
               "torch": PyTorch's decisions, byte for byte, at our cost.
    conf       options as text: with "torch" those of PYTORCH_ALLOC_CONF, by default its value; with
               "paged" those of drystone-pool(5). A setting of PyTorch's that has no effect with
               "paged", here or in that variable, is warned of, each in a line.
    on_oom     a file for a snapshot when memory runs out, see record(); history is switched on.
    seam       "native": PyTorch's own interface of allocators. Statistics, snapshots, history,
               MemPool, CUDA graphs and torch.compile work as before. It wants a shim; a release of
               PyTorch that the installed wheel does not know needs a C++ compiler once.
               "pluggable": CUDAPluggableAllocator, for which nothing is compiled, and which lacks
               much of this. "auto": native, or else pluggable, and standard error says why.

    Call this before CUDA is used. A second call with the same arguments does nothing. ShimError: a
    call that comes too late, that has other arguments than the first, or an option that is none.
    """
    import torch
    if seam not in ("auto", "native", "pluggable"):
        raise _shim.ShimError(f'seam is "auto", "native" or "pluggable", not {seam!r}')
    if placement not in ("paged", "torch"):
        raise _shim.ShimError(f'placement is "paged" or "torch", not "{placement}"')
    if conf is None:
        conf = conf_of_torch()[1] if placement == "torch" else ""
    asked = {"placement": placement, "conf": conf, "seam": seam,
             "on_oom": None if on_oom is None else os.fspath(on_oom)}
    if enabled():
        if seam == "auto":
            asked["seam"] = _chosen["seam"]
        _shim.check_same("drystone's allocator", _chosen, asked)
        return
    _check_time(torch)
    if on_oom is not None:
        check_name(on_oom)
    shim = None if seam == "pluggable" else _load(torch, seam)
    if shim is None:
        _plug.enable(torch, placement, conf, on_oom)
    else:
        compat = ".".join(str(part) for part in _shim.release_of(torch))
        refused = shim.dry_shim_enable(placement.encode(), conf.encode(), compat.encode())
        if refused:
            raise _shim.ShimError(refused.decode())
        if on_oom is not None:
            on_out_of_memory(on_oom)
        _add_counters(torch, shim)
    _chosen.update(asked, seam="native" if shim else "pluggable")
    _follow_settings(torch, shim if placement == "torch" else None)
    if placement == "paged":
        warn_of_ignored(conf, replaces_torch=True)


def enabled() -> str | None:
    """The placement that is enabled, "paged" or "torch"; None: PyTorch's allocator is not ours."""
    if _shim._loaded is not None:
        placement: bytes | None = _shim._loaded.dry_shim_placement()
        if placement:
            return placement.decode()
    return _plug.placement()


def enabled_seam() -> str | None:
    """The seam that is in use, "native" or "pluggable"; None: PyTorch's allocator is not ours."""
    return "pluggable" if _plug.placement() else "native" if enabled() else None


def _check_time(torch: ModuleType) -> None:
    """ShimError where it is too late, said before anything is built."""
    backend = torch.cuda.get_allocator_backend()
    if backend != "native":
        raise _shim.ShimError(f"PyTorch runs with the allocator \"{backend}\": only its native one "
                              "can be replaced")
    if torch.cuda.is_initialized():
        raise _shim.ShimError("CUDA's memory was used already: enable the allocator before the "
                              "first tensor on a GPU and before torch.cuda.init()")


def _load(torch: ModuleType, wanted: str) -> ctypes.CDLL | None:
    """The shim; None where the other seam shall be used, after it was said why."""
    try:
        return _shim.load()
    except _shim.ShimError as why:
        # A shim that was asked for by name, and a PyTorch without CUDA, are errors.
        if wanted == "native" or os.environ.get("DRYSTONE_SHIM") or torch.version.cuda is None:
            raise
        reason = first_line(why).rstrip(":")
        print(f"drystone: {reason}; CUDAPluggableAllocator serves, which lacks {_plug.LACKS}",
              file=sys.stderr)
        return None


def _add_counters(torch: ModuleType, shim: ctypes.CDLL) -> None:
    """Have torch.cuda.memory_stats() tell figures of the pool that PyTorch has no name for."""
    former = torch._C._cuda_memoryStats

    @functools.wraps(former)
    def with_counters(device: int) -> dict[str, Any]:
        stats: dict[str, Any] = former(device)
        if enabled_seam() == "native":
            figures = (ctypes.c_uint64 * 3)()
            shim.dry_shim_counters(device, figures)
            calls, moved, time_ns = figures
            stats["drystone"] = {"driver_calls": calls, "pages_moved": moved,
                                 "driver_time_us": time_ns // 1000}
        return stats

    torch._C._cuda_memoryStats = with_counters


def _follow_settings(torch: ModuleType, shim: ctypes.CDLL | None) -> None:
    """Have what the program sets while it runs count for the shim's pools; None: it cannot."""
    def follow(conf: str) -> None:
        if enabled() is None:  # PyTorch has another allocator by now
            return
        if shim is None:
            warnings.warn(f"drystone: {conf!r} changes nothing: placement paged and the seam "
                          "\"pluggable\" keep the options given to enable()", stacklevel=4)
            return
        refused = shim.dry_shim_set_conf(conf.encode())
        if refused:
            raise _shim.ShimError(refused.decode())

    for name in ("_accelerator_setAllocatorSettings",
                 "_cuda_cudaCachingAllocator_set_allocator_settings"):
        after(torch._C, name, follow)
