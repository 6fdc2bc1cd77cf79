# SPDX-License-Identifier: Apache-2.0
"""Python imports this at its start where `drystone run` put its folder on PYTHONPATH.

Once the program has imported PyTorch, Drystone's allocator is enabled, its memory published, and
what drystone.fit is to change is changed; then nothing is left of this. A sitecustomize that is
hidden by this one is run, too. Variables:

    DRYSTONE_ALLOCATOR       "paged" or "torch"; without it PyTorch keeps its own allocator
    DRYSTONE_ALLOCATOR_CONF  options of the placement
    DRYSTONE_ON_OOM          the snapshot's name, see drystone.torch.record()
    DRYSTONE_WATCH           the memory is published, see drystone.torch.publish(), in this folder
                             if it is an absolute path
    DRYSTONE_FIT             changes that drystone.fit makes, in JSON

Without the first and the last three nothing happens.
"""
from __future__ import annotations

import _thread
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

_HERE = os.path.dirname(os.path.abspath(__file__))
_OURS = ("DRYSTONE_FIT", "DRYSTONE_ALLOCATOR", "DRYSTONE_ON_OOM", "DRYSTONE_WATCH")


class _Loader(importlib.abc.Loader):
    """A module's own loader, between the functions of a finder."""

    def __init__(self, loader: importlib.abc.Loader, finder: _Finder) -> None:
        self.loader, self.finder = loader, finder

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        if self.finder.before:
            self.finder.before()
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        module.__loader__ = self.loader
        self.loader.exec_module(module)
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
        self.finder.then()


class _Finder(importlib.abc.MetaPathFinder):
    """Has one function called before a module is loaded, and another one after that.

    A module may be found without being loaded, as transformers does with PyTorch.
    """

    def __init__(self, name: str, before: Callable[[], None] | None, then: Callable[[], None]
                 ) -> None:
        self.name, self.before, self.then = name, before, then
        self.thread: int | None = None  # that asks the other finders

    def find_spec(self, name: str, path: Sequence[str] | None,
                  target: ModuleType | None = None) -> ModuleSpec | None:
        if name != self.name or self.thread == _thread.get_ident():
            return None
        self.thread = _thread.get_ident()
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.thread = None
        if spec and spec.loader:
            spec.loader = _Loader(spec.loader, self)
        return spec


def _watch(name: str, then: Callable[[], None], before: Callable[[], None] | None = None) -> None:
    sys.meta_path.insert(0, _Finder(name, before, then))


def _prepare() -> None:
    # The package lies two folders above; an installed one is the same, or found first.
    root = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))
    if importlib.util.find_spec("drystone") is None:
        sys.path.append(root)
    if os.environ.get("DRYSTONE_FIT"):
        from drystone import fit
        fit._before(os.environ["DRYSTONE_FIT"])


def _enable() -> None:
    if os.environ.get("DRYSTONE_FIT"):
        from drystone import fit
        fit._begin(_watch)
    if any(map(os.environ.get, _OURS[1:])):
        _allocate()


def _allocate() -> None:
    from drystone import torch as dt
    from drystone._errors import Error
    placement, on_oom = os.environ.get("DRYSTONE_ALLOCATOR"), os.environ.get("DRYSTONE_ON_OOM")
    watch = os.environ.get("DRYSTONE_WATCH")
    try:
        if placement:
            dt.enable(placement, conf=os.environ.get("DRYSTONE_ALLOCATOR_CONF") or None,
                      on_oom=on_oom or None)
        elif on_oom:
            dt.record(on_oom)
    except Error as why:
        sys.exit(f"drystone: {why}")
    if watch:
        from drystone.torch._publish import publish_when_used
        publish_when_used(watch if os.path.isabs(watch) else None)


if any(map(os.environ.get, _OURS)):
    _watch("torch", _enable, _prepare)

# Behind this one alone, so that two that give way to each other end.
_places = [os.path.abspath(place or ".") for place in sys.path]
_behind = sys.path[_places.index(_HERE) + 1:] if _HERE in _places else []
_hidden = importlib.machinery.PathFinder.find_spec("sitecustomize", _behind)
if _hidden and _hidden.loader:
    _hidden.loader.exec_module(importlib.util.module_from_spec(_hidden))
