# SPDX-License-Identifier: Apache-2.0
"""A batch in pieces, along the first dimension of its tensors."""
from __future__ import annotations

from typing import Any

import torch

from ._trees import map_tree, tensors_of


def rows_of(batch: Any) -> int | None:
    """Return the rows that all tensors of a batch have; None: they have not equally many."""
    rows = {tensor.shape[0] if tensor.dim() else -1 for tensor in tensors_of(batch)}
    rows.discard(-1)
    return rows.pop() if len(rows) == 1 else None


def split(batch: Any, rows: int, count: int) -> list[tuple[Any, float]]:
    """Return pieces of nearly equal size, and each one's share of the rows."""
    count = min(count, rows)
    bounds = [(rows * i + count - 1) // count for i in range(count + 1)]

    def take(begin: int, end: int) -> Any:
        def cut(leaf: Any) -> Any:
            is_tensor = isinstance(leaf, torch.Tensor) and leaf.dim()
            return leaf[begin:end] if is_tensor else leaf

        return map_tree(batch, cut, lambda many: many[begin:end] if len(many) == rows else many)

    return [(take(begin, end), (end - begin) / rows) for begin, end in zip(bounds, bounds[1:])]
