# SPDX-License-Identifier: Apache-2.0
"""The seam in C: PyTorch's CUDAPluggableAllocator over libdrystone_plug.

The functions are in C, so one library serves every release and no compiler is needed. PyTorch's
class has no statistics, no snapshots and no pools of the program's: it is used where there is no
shim, and for the segments of a torch.cuda.MemPool.
"""
import ctypes
import os
import pathlib
from typing import Any, Optional, Union

from .. import _library
from ._nccl import use_legacy_groups
from ._record import ENTRIES, Writer
from ._shim import ShimError, release_of

OLDEST = (2, 2)  # the first whose allocator is told of the private pools of graphs
NEWEST = (2, 15)  # the newest whose rules placement torch knows; later ones get these
LACKS = ("memory_stats and what is built on it, snapshots, history, MemPool, CUDA IPC, "
         "cudnn.benchmark, torch.compile(mode=\"reduce-overhead\") and process groups \"nccl2\"")
_SETTERS = {
    "set_reset_fn": "drystone_plug_reset",
    "set_memory_fraction_fn": "drystone_plug_set_fraction",
    "set_base_alloc_fn": "drystone_plug_get_base",
    "set_record_stream_fn": "drystone_plug_record_stream",
    "set_begin_allocate_to_pool": "drystone_plug_begin_pool",
    "set_end_allocate_to_pool_fn": "drystone_plug_end_pool",
    "set_release_pool": "drystone_plug_release_pool",
}
_placement: Optional[str] = None
_kept: list[Any] = []  # what C calls, until the exit


def placement() -> Optional[str]:
    """The placement that PyTorch's allocator has through this seam; None: it is another one."""
    if _placement is None:
        return None
    import torch
    return _placement if torch.cuda.get_allocator_backend() == "pluggable" else None


def find_plug() -> str:
    """The path of libdrystone_plug: beside libdrystone, or in the build that made both."""
    library = _library.find_library()
    if library and "/" in library:
        folder = pathlib.Path(library).resolve().parent
        for path in (folder, folder.parent / "shim"):
            if (path / "libdrystone_plug.so").is_file():
                return str(path / "libdrystone_plug.so")
    elif library:
        return "libdrystone_plug.so"
    raise ShimError(f"there is no libdrystone_plug beside {library or 'libdrystone'}: set "
                    "DRYSTONE_LIBRARY to the path of libdrystone.so")


def configured(torch: Any, wanted: str, conf: str) -> str:
    """The path of the library, loaded, after its pools were told what they are."""
    _library.require(ShimError)
    path = find_plug()
    try:
        plug = ctypes.CDLL(path)
    except OSError as why:
        raise ShimError(f"{path} cannot be loaded: {why}") from None
    plug.drystone_plug_configure.restype = ctypes.c_char_p
    compat = ""  # has a meaning for PyTorch's decisions alone
    if wanted == "torch":
        compat = ".".join(str(part) for part in min(release_of(torch), NEWEST))
    refused = plug.drystone_plug_configure(str(wanted).encode(), conf.encode(), compat.encode())
    if refused:
        raise ShimError(refused.decode())
    return path


def enable(torch: Any, wanted: str, conf: str,
           on_oom: Union[str, os.PathLike[str], None]) -> None:
    """Make the pools PyTorch's allocator, for all GPUs of this process.

    on_oom  the name of a snapshot when memory runs out, which has no stacks; None: no snapshot
    """
    global _placement
    if release_of(torch) < OLDEST:
        raise ShimError(f"PyTorch {torch.__version__} does not tell an allocator of graphs: 2.2 is "
                        "the oldest release for ours")
    path = configured(torch, wanted, conf)
    plug = ctypes.CDLL(path)
    made = torch.cuda.memory.CUDAPluggableAllocator(path, "drystone_plug_alloc",
                                                    "drystone_plug_free")
    for setter, name in _SETTERS.items():
        address = ctypes.cast(getattr(plug, name), ctypes.c_void_p).value
        getattr(made.allocator(), setter)(address)
    try:
        torch.cuda.memory.change_current_allocator(made)
    except RuntimeError:
        raise ShimError("CUDA's memory was used already: enable the allocator before the first "
                        "tensor on a GPU and before torch.cuda.init()") from None
    _placement = str(wanted)
    use_legacy_groups(torch)
    if on_oom is not None:
        _watch(plug, on_oom)


def _watch(plug: Any, name: Union[str, os.PathLike[str]]) -> None:
    """Have a snapshot written and explained when memory runs out."""
    def write(path: str, device: int) -> None:
        why = ctypes.create_string_buffer(400)
        if not plug.drystone_plug_write(device, os.fsencode(path), why, len(why)):
            raise ShimError(why.value.decode(errors="replace"))

    plug.drystone_plug_write.restype = ctypes.c_bool
    plug.drystone_plug_write.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p,
                                         ctypes.c_size_t]
    told = ctypes.CFUNCTYPE(None, ctypes.c_int)(Writer(name, write))
    _kept.append(told)
    plug.drystone_plug_watch(ctypes.c_size_t(ENTRIES), told)
