# SPDX-License-Identifier: Apache-2.0
"""Process groups of NCCL beside CUDAPluggableAllocator.

Since 2.15 PyTorch's groups of NCCL ("nccl", "nccl2", "nccl-lazy") watch the segments of the
allocator. The first step is a snapshot, which CUDAPluggableAllocator refuses by an exception. A
group's destructor takes that step, too, and there the exception ends the process by SIGABRT. The
groups of earlier releases ask for nothing; PyTorch still has them, as "nccl-legacy".
"""
from typing import Any

_WATCHING = ("nccl2", "nccl-lazy")


def use_legacy_groups(torch: Any) -> None:
    """Have "nccl" mean the groups of earlier releases; those that watch are refused by name.

    Nothing happens where this release has no others.
    """
    if not torch.distributed.is_available():
        return
    from torch.distributed import distributed_c10d as c10d
    register = getattr(c10d, "_register_builtin_nccl_as_legacy", None)
    if register is None:
        return
    register()
    for name in _WATCHING:
        c10d.Backend.register_backend(name, _refuser(name), extended_api=True, devices=["cuda"])


def _refuser(name: str) -> Any:
    def refuse(*_: Any) -> None:
        raise RuntimeError(f"drystone: process groups \"{name}\" want snapshots of the allocator, "
                           "which CUDAPluggableAllocator lacks: use \"nccl\"")
    return refuse
