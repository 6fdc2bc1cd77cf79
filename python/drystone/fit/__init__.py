# SPDX-License-Identifier: Apache-2.0
"""Changes that make a program need less memory, made without touching the program.

    found = drystone.fit(step, card="rtx4090-24")    # search changes for a function
    drystone.fit.apply(found.to_dict()["fits_with"][0]["changes"])  # in a new kernel

search() says more; the module itself may be called in its place.

The hook of `drystone.torch` calls this in a program that runs with DRYSTONE_FIT, a JSON object:

    changes   {"NAME": VALUE, ...}: what to change, by the names of _changes.py
    looks     true: see which changes could help this program, and alter nothing for them
    counts    true: count the work of steps, which costs some microseconds a call of a module

Each change is a module of this package, whose docstring says what it does and what it costs.
tell() returns what was seen and done. PyTorch is not imported by this.
"""
from __future__ import annotations

import importlib.util
import json
import os
import pathlib
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ._settings import join_settings

if TYPE_CHECKING:
    from ..snapshot._result import Result
    from ._run import Run

_ALLOCATOR = "allocator"  # the one change that comes before PyTorch

_found: dict[str, Any] = {}
_running: list[Run] = []


def search(step: Callable[[], Any], *, card: str = "h100-80", memory: int | str | None = None,
           gpus: int = 1, runs: int = 15) -> Result:
    """Search changes with which a function fits a card, by dry runs in other processes.

    step    makes a model on "cuda" and trains it for some steps; called without arguments. Package
            cloudpickle copies it, and what it refers to, to those processes.
    card    a name of `drystone estimate --list`, or a JSON file
    memory  bytes, or a text like "11.5GiB": what the card's driver reports
    gpus    how many cards there are
    runs    the most dry runs, seconds to a minute each

    Returns the result, see drystone-fit(1): the changes of its first answer, fits_with[0].changes,
    are what drystone.fit.apply() takes in a new kernel, as to_dict() has them. Raises Error if the
    function failed for another reason than memory, ArgumentError if it cannot be copied.
    """
    from . import _search  # loads what programs with changes do not need
    return _search.search(step, card, memory, gpus, runs)


class _Module(types.ModuleType):
    def __call__(self, step: Callable[[], Any], **options: Any) -> Result:
        return search(step, **options)


sys.modules[__name__].__class__ = _Module


def tell() -> dict[str, Any]:
    """Return what the run saw and did, for JSON. Empty: it has no DRYSTONE_FIT.

    flops, link_bytes   of the last whole step; None if they are not known, or not counted
    offers              changes that could help, in the order of their worth
    applied, refused    by name: what was done, or why it was not
    notes               what an observer could not see
    """
    return _running[0].tell() if _running else {}


def apply(changes: dict[str, Any]) -> None:
    """Make changes in this program, by their names, as `drystone fit --patch` writes them.

    Call it before the program imports PyTorch; RuntimeError otherwise. Changes of DRYSTONE_FIT come
    on top. A change that cannot be made is told by a warning, and in tell().
    """
    if "torch" in sys.modules:
        raise RuntimeError("drystone.fit.apply() comes before PyTorch is imported")
    asked = json.loads(os.environ.get("DRYSTONE_FIT") or "{}")
    asked["changes"] = {**changes, **asked.get("changes", {})}
    os.environ["DRYSTONE_FIT"] = json.dumps(asked)
    if not any(getattr(finder, "name", None) == "torch" for finder in sys.meta_path):
        hook = pathlib.Path(__file__).parents[1] / "torch/hook/sitecustomize.py"
        spec = importlib.util.spec_from_file_location("_drystone_hook", hook)
        assert spec and spec.loader
        spec.loader.exec_module(importlib.util.module_from_spec(spec))


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
    run = Run(_found["changes"], bool(_found.get("looks")), bool(_found.get("counts")), watch)
    _running.append(run)
    run.begin()
