# SPDX-License-Identifier: Apache-2.0
"""Drystone's allocators inside PyTorch.

    import drystone.torch as dt

    dt.enable()                        # device memory: before CUDA is used
    dt.enable(placement="torch")       # PyTorch's decisions, at our cost
    with dt.pool(): ...                # a part of a program
    dt.record("oom-{rank}.pickle")     # PyTorch's own allocator: snapshot and verdict on OOM
    dt.enable_pinned()                 # pinned memory, at any time
    dt.publish()                       # figures for `drystone live`, with any allocator

or, without a line in the program, `python -m drystone.torch train.py` and
`drystone run --allocator paged -- python train.py`.

Importing this imports PyTorch, and changes nothing.
"""
from ._enable import enable, enabled, enabled_seam
from ._pinned import enable_pinned, pinned_clear, pinned_stats
from ._pool import pool
from ._publish import publish
from ._record import record
from ._shim import ShimError

__all__ = ["ShimError", "enable", "enable_pinned", "enabled", "enabled_seam", "pinned_clear",
           "pinned_stats", "pool", "publish", "record"]
