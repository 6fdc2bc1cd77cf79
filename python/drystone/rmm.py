# SPDX-License-Identifier: Apache-2.0
"""A memory resource of RMM's over Drystone's pool, for cuDF and other users of RMM.

    import rmm
    import drystone.rmm

    rmm.mr.set_current_device_resource(drystone.rmm.resource())

RMM calls back into Python for every block, which costs microseconds: well spent where memory is
short, and not in a loop of small blocks.
"""
from __future__ import annotations

from typing import Any

import rmm as _rmm
import rmm.mr

from ._pool import pool_for, pool_of

__all__ = ["pool_of", "resource"]


def _handle_of(stream: Any) -> int:
    """Return a CUstream as a number; `stream` is RMM's, or None for the default stream."""
    if stream is None:
        return 0
    return int(stream.__cuda_stream__()[1])


def resource(device: int = 0, placement: str = "paged", conf: str = "", *,
             library: str | None = None) -> Any:
    """Return an rmm.mr.CallbackMemoryResource over the process's pool of a device.

    placement, conf, library  as in drystone.cupy.enable()

    A request that fails raises MemoryError with the text that says who has the memory. RMM frees
    a block on a stream that may be another than the block's: the pool waits for both.
    """
    pool = pool_for(device, placement, conf, library)

    def allocate(size: int, stream: Any) -> int:
        return pool.alloc(size, _handle_of(stream))

    def deallocate(address: int, _: int, stream: Any) -> None:
        if address:
            pool.record_stream(address, _handle_of(stream))
            pool.free(address)

    return _rmm.mr.CallbackMemoryResource(allocate, deallocate)
