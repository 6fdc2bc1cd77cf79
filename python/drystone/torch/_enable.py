# SPDX-License-Identifier: Apache-2.0
"""Drystone's pools as PyTorch's allocator of device memory."""
import os

from . import _shim
from ._record import on_out_of_memory


def enable(placement="paged", *, conf=None, on_oom=None):
    """Make Drystone's allocator PyTorch's, for all GPUs of this process.

    placement  "paged": ours; free memory anywhere serves a request everywhere.
               "torch": PyTorch's decisions, byte for byte, at our cost.
    conf       options as text: with "torch" those of PYTORCH_ALLOC_CONF, by default its value; with
               "paged" those of drystone-pool(5).
    on_oom     a file for a snapshot when memory runs out, see record(); history is switched on.

    Call this before CUDA is used: afterwards ShimError says so. Statistics, snapshots, history,
    MemPool, CUDA graphs and torch.compile work as before. Every later release of PyTorch than those
    that the installed wheel knows needs a C++ compiler once.
    """
    import torch
    shim = _shim.load()
    if conf is None:
        conf = _conf_of_torch() if placement == "torch" else ""
    compat = ".".join(str(part) for part in _shim.release_of(torch))
    refused = shim.dry_shim_enable(str(placement).encode(), conf.encode(), compat.encode())
    if refused:
        raise _shim.ShimError(refused.decode())
    if on_oom is not None:
        on_out_of_memory(on_oom)


def enabled():
    """The placement that is enabled, "paged" or "torch"; None: PyTorch's own allocator."""
    if _shim._loaded is None:
        return None
    placement = _shim._loaded.dry_shim_placement()
    return placement.decode() if placement else None


def _conf_of_torch():
    for name in ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"):
        if os.environ.get(name):
            return os.environ[name]
    return ""
