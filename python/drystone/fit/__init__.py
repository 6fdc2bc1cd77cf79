# SPDX-License-Identifier: Apache-2.0
"""Changes that make a program need less memory, made without touching the program.

The hook of `drystone.torch` calls this in a program that runs with DRYSTONE_FIT, a JSON object:

    changes   {"NAME": VALUE, ...}: what to change, by the names of _changes.py
    looks     true: see which changes could help this program, and alter nothing for them

Each change is a module of this package, whose docstring says what it does and what it costs.
tell() returns what was seen and done. PyTorch is not imported by this.
"""
from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ._settings import join_settings

if TYPE_CHECKING:
    from ._run import Run

_ALLOCATOR = "allocator"  # the one change that comes before PyTorch

_found: dict[str, Any] = {}
_running: list[Run] = []


def tell() -> dict[str, Any]:
    """Return what the run saw and did, for JSON. Empty: it has no DRYSTONE_FIT.

    flops, link_bytes   of the last whole step; None if they are not known
    offers              changes that could help, in the order of their worth
    applied, refused    by name: what was done, or why it was not
    notes               what an observer could not see
    """
    return _running[0].tell() if _running else {}


def _before(text: str) -> None:
    """Take the settings of DRYSTONE_FIT, and make those changes that PyTorch reads as it loads."""
    _found.update(json.loads(text))
    conf = _found.setdefault("changes", {}).get(_ALLOCATOR)
    if conf:
        join_settings(conf)


def _begin(watch: Any) -> None:
    """Make all other changes, and begin to look. PyTorch was just imported.

    watch(name, then) has then() called once a module of that name is imported.
    """
    from ._run import Run
    run = Run(_found["changes"], bool(_found.get("looks")), watch)
    _running.append(run)
    run.begin()
