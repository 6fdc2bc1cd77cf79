# SPDX-License-Identifier: Apache-2.0
"""Drystone in Python: `drystone.plan` measures a model, has it planned, and runs the plan.

`find_command()` and `find_library()` say where the command and the C library are, each the
one of the wheel if it came with one.
"""
import importlib

# What is imported when it is asked for, and where it is.
_LAZY = {"Error": "_errors", "find_command": "_command", "find_library": "_library"}

__all__ = sorted(_LAZY)


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(importlib.import_module("." + _LAZY[name], __package__), name)
    globals()[name] = found
    return found


def __dir__():
    return sorted({*globals(), *__all__})
