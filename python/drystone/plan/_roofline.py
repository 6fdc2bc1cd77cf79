# SPDX-License-Identifier: Apache-2.0
"""Times of operations that do not run: each takes as long as its FLOPs or its bytes want.

Which is coarse: a kernel reaches a part of what the card has, and that part differs. FLOPs
alone would be worse, they make every operation that only moves memory free.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ._live import bytes_of, key_of, tensors_of
from ._types import Tree

# Of a card: dense bfloat16 of an A100, and its memory.
FLOPS_PER_SECOND = 312e12
BYTES_PER_SECOND = 1.5e12

_EMPTY = ("empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided")


def _attention_flops(query: Sequence[int], key: Sequence[int], value: Sequence[int]) -> int:
    batch, heads, length, width = query
    return 2 * batch * heads * length * key[2] * (width + value[3])


def _flops(packet: torch._ops.OpOverloadPacket, args: Sequence[Any], kwargs: dict[str, Any],
           out: Tree) -> float:
    name = packet.__name__
    if name.startswith("_scaled_dot_product_flash_attention_for_cpu"):
        forward = "backward" not in name
        shapes = [tensor.shape for tensor in (args[:3] if forward else args[1:4])]
        return _attention_flops(*shapes) * (1 if forward else 2.5)
    from torch.utils.flop_counter import flop_registry  # late: it says so if there is no Triton
    count = flop_registry.get(packet)
    return count(*args, **kwargs, out_val=out) if count else 0


class Roofline(TorchDispatchMode):
    """`seconds` of all operations while it is entered."""

    def __init__(self, flops_per_second: float, bytes_per_second: float) -> None:
        super().__init__()
        self.rates = (flops_per_second, bytes_per_second)
        self.seconds = 0.0

    def __torch_dispatch__(self, func: torch._ops.OpOverload, types: Sequence[type],
                           args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None) -> Tree:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        self.note(func, self._seconds_of(func, args, kwargs, out))
        return out

    def note(self, func: torch._ops.OpOverload, seconds: float) -> None:
        self.seconds += seconds

    def _seconds_of(self, func: torch._ops.OpOverload, args: Sequence[Any], kwargs: dict[str, Any],
                    out: Tree) -> float:
        inputs = tensors_of((args, kwargs))
        outputs = tensors_of(out)
        older = {key_of(tensor) for tensor in inputs}
        if not isinstance(func, torch._ops.OpOverload):
            return 0.0  # operations of their own are in it
        if func.overloadpacket.__name__ in _EMPTY:
            return 0.0  # writes nothing
        is_view = outputs and all(key_of(tensor) in older for tensor in outputs)
        if is_view and not func._schema.is_mutable:
            return 0.0
        moved = bytes_of(inputs) + bytes_of([t for t in outputs if key_of(t) not in older])
        flops = _flops(func.overloadpacket, args, kwargs, out)
        return max(flops / self.rates[0], moved / self.rates[1])
