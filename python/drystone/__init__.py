# SPDX-License-Identifier: Apache-2.0
"""Drystone in Python: the memory of deep-learning programs, made to fit.

`drystone.plan` measures a model, has it planned, and runs the plan; `auto_checkpoint` does that
in one call, and `compile_budget` chooses one of torch.compile's memory budgets.
"""
import importlib

# A name, and the module of this package that has it.
_LAZY = {"auto_checkpoint": "checkpoint", "checkpoint": "checkpoint",
         "compile_budget": "checkpoint", "plan": "plan"}

__all__ = sorted(_LAZY)


def __getattr__(name):
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module("." + _LAZY[name], __package__)
    found = module if name == _LAZY[name] else getattr(module, name)
    globals()[name] = found
    return found


def __dir__():
    return sorted({*globals(), *__all__})
