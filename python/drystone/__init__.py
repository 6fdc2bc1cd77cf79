# SPDX-License-Identifier: Apache-2.0
"""Drystone in Python: make the memory of deep-learning programs fit.

    drystone.open(path)   a memory snapshot: tables, verdicts, replays
    drystone.plan         measures a model, has it planned, and runs the plan
"""
import importlib

from ._errors import Error

# What is imported when it is asked for, and where it is.
_LAZY = {"open": "snapshot", "Snapshot": "snapshot"}

__all__ = sorted(["Error", *_LAZY])


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module("." + _LAZY[name], __package__), name)
    globals()[name] = found
    return found


def __dir__():
    return sorted({*globals(), *__all__})
