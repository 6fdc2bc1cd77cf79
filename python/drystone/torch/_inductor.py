# SPDX-License-Identifier: Apache-2.0
"""PyTorch's snapshots from a thread of ours, without an import in that thread.

For stacks PyTorch looks at torch._inductor.codecache, and the first look at torch._inductor imports
it. In a thread of ours that import may meet one of the program's, which then fails: each sees half
of the other's modules. Meanwhile a stand-in has no codecache for this thread, as a program that has
compiled nothing has none; any other thread gets the real module from the stand-in.
"""
from __future__ import annotations

import contextlib
import importlib
import threading
import types
from collections.abc import Iterator
from typing import Any

_NAME = "_inductor"


class _StandIn(types.ModuleType):
    def __init__(self) -> None:
        super().__init__("torch." + _NAME)
        self.__dict__["_of_thread"] = threading.get_ident()

    def __getattr__(self, name: str) -> Any:
        if threading.get_ident() == self._of_thread:
            raise AttributeError(name)
        return getattr(importlib.import_module("torch." + _NAME), name)


@contextlib.contextmanager
def without_import(torch: Any) -> Iterator[None]:
    """Have this thread's snapshots import nothing; Python replaces the stand-in after an import."""
    names = vars(torch)
    stand_in = _StandIn()
    if names.setdefault(_NAME, stand_in) is not stand_in:
        yield
        return
    try:
        yield
    finally:
        if names.get(_NAME) is stand_in:
            del names[_NAME]
