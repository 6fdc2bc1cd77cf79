# SPDX-License-Identifier: Apache-2.0
"""The process's place in a job of several."""
from __future__ import annotations

import os
import sys


def rank_of() -> tuple[int, int]:
    """Return the rank and the number of ranks, -1 where nobody says."""
    try:
        return int(os.environ["RANK"]), int(os.environ.get("WORLD_SIZE", "-1"))
    except (KeyError, ValueError):
        pass
    distributed = sys.modules.get("torch.distributed")
    if distributed and distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return -1, -1
