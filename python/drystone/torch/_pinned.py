# SPDX-License-Identifier: Apache-2.0
"""Drystone's cache of pinned memory as PyTorch's own: pin_memory(), DataLoader, copies."""
import ctypes
import os
import pathlib
import re
from typing import Any, Optional, Union

from .._errors import Error
from . import _shim
from ._after import after

MIB = 2 ** 20
AHEAD_MAX, AHEAD_PART = 1024 * MIB, 16  # pinned ahead unasked: this part of what is free at most
BLOCK_SIZE_MB = 1024
BLOCK_COUNT = 8
THRESHOLD_MB = 4
MODES = ("fit", "buddy")
NODE_OF_GPU, NODE_OF_KERNEL = -1, -2  # DRY_PINNED_ANY_NODE, DRY_PINNED_NO_NODE
NODES = 1024
BUDDY_SIZES = tuple(2 ** power for power in range(1, 14))
COUNTS, SIZES, THRESHOLDS = range(4097), range(1, 2 ** 20 + 1), range(1025)

_chosen: dict[str, Any] = {}  # the arguments of enable_pinned(), once it has succeeded
_ahead = 0
_VISIT = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int64)


def enable_pinned(block_size_mb: Optional[int] = None, block_count: Optional[int] = None,
                  threshold_mb: Optional[int] = None, mode: str = "fit",
                  node: Union[str, int, None] = "gpu", device: Optional[int] = None) -> int:
    """Have PyTorch's pinned memory from Drystone's cache, from now on; return the bytes
    pinned ahead.

    block_size_mb, block_count  so many blocks are pinned ahead, in the background, or as much as
                                the machine has room for, with a warning; a count of 0 pins only
                                what is asked for. $BUDDY_BLOCK_SIZE_MB and $BUDDY_BLOCK_COUNT; if
                                only one is given, 1024 and 8. If none is, a 16th of what is free on
                                the host is pinned ahead, 1 GiB at most. With "buddy" memory is
                                pinned in blocks of just this size, a power of two of 2 to 8192
    threshold_mb                requests up to here live apart, so that they keep no large range;
                                0: none do. $BUDDY_THRESHOLD_MB, else 4
    mode                        "fit": sizes are rounded by a 32nd at most; "buddy": powers of two
    node                        "gpu": the node of memory beside the GPU; a number: this one; None:
                                the kernel chooses
    device                      the GPU that registers memory and whose node is meant; None: the
                                current one if CUDA is initialized, else the one that is current
                                when pinned memory is first asked for, and pinning ahead begins then

    Memory that was pinned before stays as it is, and can be used and freed. From now on
    torch.cuda.empty_cache() gives idle pinned memory back, too. A second call with the same
    arguments does nothing. Errors: Error.
    """
    import torch
    global _ahead
    asked = {"block_size_mb": block_size_mb, "block_count": block_count,
             "threshold_mb": threshold_mb, "mode": mode, "node": node, "device": device}
    if _chosen:
        _shim.check_same("drystone's pinned memory", _chosen, asked)
        return _ahead
    options, ahead = _read_options(mode, block_size_mb, block_count, threshold_mb)
    place = _read_node(node)
    shim = _loaded()
    if device is None and torch.cuda.is_initialized():
        device = torch.cuda.current_device()
    if device is not None:
        device = _read_number("device", device, range(torch.cuda.device_count()))
    _check(shim.dry_shim_enable_pinned(options.encode(), ahead, -1 if device is None else device,
                                       place, None))
    for name in ("_cuda_emptyCache", "_accelerator_emptyCache"):
        after(torch._C, name, pinned_clear)
    _chosen.update(asked)
    _ahead = ahead
    return ahead


def pinned_clear() -> None:
    """Give idle pinned memory back to the system, as torch.cuda.empty_cache() does, too."""
    _check(_loaded().dry_shim_pinned_clear())


def pinned_stats() -> dict[str, int]:
    """The figures of torch.cuda.host_memory_stats() for our memory alone, and those it lacks.

    requested_bytes.*  of active_bytes, as the program asked
    pending_bytes      freed, while streams or graphs may still use them; held_bytes: for graphs
    idle_bytes         in ranges without a block in use: pinned_clear() gives them back
    """
    stats: dict[str, int] = {}

    def visit(_: Any, key: bytes, value: int) -> None:
        stats[key.decode()] = value

    _check(_loaded().dry_shim_pinned_stats(_VISIT(visit), None))
    return stats


# --- what is given ------------------------------------------------------------------------------

def _read_number(name: str, value: Any, allowed: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value not in allowed:
        told = f"{allowed[0]} to {allowed[-1]}" if len(allowed) else "no number, for there are none"
        if allowed is BUDDY_SIZES:
            told = "a power of two of " + told
        raise Error(f"{name}: {told} is expected, not {value!r}")
    return int(value)


def _read_default(name: str, value: Optional[int], variable: str, default: int,
                  allowed: Any) -> int:
    """The number that was given, else the environment's, else the default."""
    if value is not None:
        return _read_number(name, value, allowed)
    text = os.environ.get(variable, "").strip()
    if text and not (text.isascii() and text.isdigit()):
        raise Error(f"${variable}: a whole number is expected, not {text!r}")
    return _read_number(f"${variable}" if text else name, int(text) if text else default, allowed)


def _read_options(mode: str, size: Optional[int], count: Optional[int],
                  threshold: Optional[int]) -> tuple[str, int]:
    """The options of the cache as text, and the bytes to be pinned ahead."""
    is_asked = size is not None or count is not None or any(
        os.environ.get(f"BUDDY_BLOCK_{name}", "").strip() for name in ("SIZE_MB", "COUNT"))
    if mode not in MODES:
        raise Error(f"mode: 'fit' or 'buddy' is expected, not {mode!r}")
    size = _read_default("block_size_mb", size, "BUDDY_BLOCK_SIZE_MB", BLOCK_SIZE_MB,
                         BUDDY_SIZES if mode == "buddy" else SIZES)
    count = _read_default("block_count", count, "BUDDY_BLOCK_COUNT", BLOCK_COUNT, COUNTS)
    threshold = _read_default("threshold_mb", threshold, "BUDDY_THRESHOLD_MB", THRESHOLD_MB,
                              THRESHOLDS)
    options = f"mode:{mode},in_background:True,threshold_kb:{threshold * 1024},block_count:0"
    if mode == "buddy":
        options += f",block_mb:{size}"
    if is_asked:
        return options, min(size * count, 2 ** 26) * MIB
    unit = size * MIB if mode == "buddy" else 2 * MIB
    return options, _read_share() // unit * unit


def _read_share() -> int:
    """A part of what the machine has free, or of the container's limit, if that is less."""
    free = [AHEAD_MAX * AHEAD_PART]
    for path, pattern, unit in (("/proc/meminfo", r"MemAvailable: *(\d+) kB", 1024),
                                ("/sys/fs/cgroup/memory.max", r"(\d+)", 1)):
        try:
            found = re.search(pattern, pathlib.Path(path).read_text(encoding="ascii"))
        except OSError:
            continue
        if found:
            free.append(int(found[1]) * unit)
    return min(free) // AHEAD_PART


def _read_node(node: Union[str, int, None]) -> int:
    if node is None:
        return NODE_OF_KERNEL
    if node == "gpu":
        return NODE_OF_GPU
    if isinstance(node, str):
        raise Error(f"node: 'gpu', a number or None is expected, not {node!r}")
    return _read_number("node", node, range(NODES))


# --- the shim -----------------------------------------------------------------------------------

def _declare(shim: ctypes.CDLL) -> ctypes.CDLL:
    text = ctypes.c_char_p
    shim.dry_shim_enable_pinned.argtypes = [text, ctypes.c_uint64, ctypes.c_int, ctypes.c_int, text]
    shim.dry_shim_pinned_clear.argtypes = []
    shim.dry_shim_pinned_stats.argtypes = [_VISIT, ctypes.c_void_p]
    for function in (shim.dry_shim_enable_pinned, shim.dry_shim_pinned_clear,
                     shim.dry_shim_pinned_stats):
        function.restype = text
    return shim


def _loaded() -> ctypes.CDLL:
    return _declare(_shim.load())


def _check(said: Optional[bytes]) -> None:
    if said is not None:
        raise _shim.ShimError(said.decode(errors="replace"))
