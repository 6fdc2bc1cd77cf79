# SPDX-License-Identifier: Apache-2.0
"""Drystone in Python: make the memory of deep-learning programs fit.

    drystone.open(path)       a memory snapshot: tables, verdicts, replays
    drystone.show(path)       the same as pictures, in a notebook
    drystone.empty            tensors on huge pages; also zeros and from_file, see drystone.tensor
    drystone.torch            our allocators inside PyTorch; a snapshot when memory runs out
    drystone.plan             measures a model, has it planned, and runs the plan
    drystone.auto_checkpoint  drystone.plan in one call; also compile_budget
    drystone.fit              changes that make a program or a function fit, see drystone-fit(1)
    drystone.cupy             CuPy's device and pinned memory by our allocators
    drystone.numba            Numba's device and pinned memory
    drystone.rmm              a resource of RMM's

`find_command()` and `find_library()` say where the command and the C library are, each the one of
the wheel if it came with one.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._errors import ArgumentError as ArgumentError, Error as Error, SpaceError as SpaceError

if TYPE_CHECKING:
    from . import checkpoint as checkpoint, fit as fit, plan as plan
    from ._command import find_command as find_command
    from ._library import find_library as find_library
    from .checkpoint import auto_checkpoint as auto_checkpoint, compile_budget as compile_budget
    from .snapshot import Snapshot as Snapshot, open as open, show as show
    from .tensor import Tensor as Tensor, empty as empty, from_file as from_file, zeros as zeros

# Names that are loaded when somebody asks for them, and their modules.
_LAZY = {"Snapshot": "snapshot", "Tensor": "tensor", "auto_checkpoint": "checkpoint",
         "checkpoint": "checkpoint", "compile_budget": "checkpoint", "empty": "tensor",
         "find_command": "_command", "find_library": "_library", "fit": "fit",
         "from_file": "tensor", "open": "snapshot", "plan": "plan", "show": "snapshot",
         "zeros": "tensor"}

__all__ = sorted(["ArgumentError", "Error", "SpaceError", *_LAZY])


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module("." + _LAZY[name], __package__)
    found = module if name == _LAZY[name] else getattr(module, name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
