# SPDX-License-Identifier: Apache-2.0
"""A training step under a budget of bytes: `auto_checkpoint`, and `compile_budget` for
torch.compile.

PyTorch is imported when a name is asked for.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._auto import AutoCheckpoint as AutoCheckpoint, auto_checkpoint as auto_checkpoint
    from ._compile import CompileBudget as CompileBudget, compile_budget as compile_budget

_NEED_TORCH = {"AutoCheckpoint": "_auto", "auto_checkpoint": "_auto",
               "CompileBudget": "_compile", "compile_budget": "_compile"}

__all__ = sorted(_NEED_TORCH)


def __getattr__(name: str) -> Any:
    if name not in _NEED_TORCH:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module("." + _NEED_TORCH[name], __package__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
