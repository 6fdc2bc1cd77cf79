# SPDX-License-Identifier: Apache-2.0
"""One run of a program with changes: what is applied, refused and offered.

Modules of changes call apply(), refuse() and offer(). A failure of one of them is never the
program's: a change that fails is refused, an observer that fails leaves a note.
"""
from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from ._calls import Calls
from ._changes import LEVERS, NAMES, load_change
from ._steps import Steps
from ._twice import Twice


class Run:
    """What the modules of changes share.

    calls   subscribers to calls of outermost modules
    steps   subscribers to whole steps, and what was counted in the last
    twice   the layers of the model, which may compute twice
    watch   watch(name, then): then() is called once a module of that name is imported
    """

    def __init__(self, changes: dict[str, Any], looks: bool, counts: bool,
                 watch: Callable[[str, Callable[[], None]], None]) -> None:
        self.changes, self.looks, self.watch = changes, looks, watch
        self.counts = counts
        self.applied: dict[str, str] = {}
        self.refused: dict[str, str] = {}
        self.notes: list[str] = []
        self.offers: dict[str, dict[str, Any]] = {}
        self.calls, self.steps, self.twice = Calls(self), Steps(self), Twice(self)

    def begin(self) -> None:
        self.guard(self.steps.begin)()
        for name in self.changes:
            if name not in NAMES:
                self.refuse(name, f"there is no such change; there are {', '.join(NAMES)}")
        for name in NAMES:
            value = self.changes.get(name)
            if value is None and not self.looks:
                continue
            try:
                load_change(name).begin(self, value)
            except Exception as error:
                self.fail(name, error)

    def apply(self, name: str, value: Any, text: str | None = None) -> None:
        """Note that a change was made; text, if it is another than its TEXT."""
        self.applied[name] = text or load_change(name).TEXT.format(value)

    def refuse(self, name: str, why: str) -> None:
        """Note why a change is not made or no longer offered, and tell who asked for it."""
        self.offers.pop(name, None)
        if name in self.refused:
            return
        self.refused[name] = why
        if name in self.changes:
            self.applied.pop(name, None)
            warnings.warn(f"drystone fit: {name}: {why}", stacklevel=2)

    def fail(self, name: str, error: Exception) -> None:
        """Refuse a change that failed, or note that nobody knows whether it could be made."""
        why = f"it failed here: {type(error).__name__}: {error}"
        if name in self.changes:
            self.refuse(name, why)
        else:
            self.note(f"{name}: {why}")

    def offer(self, name: str, values: Sequence[Any], text: str | None = None) -> None:
        """Say that a change could help, with any of these values. A later call counts."""
        if name in self.changes or name in self.refused:
            return
        change = load_change(name)
        self.offers[name] = {
            "name": name, "values": list(values), "text": text or change.TEXT,
            "numbers": change.NUMBERS, "helps": change.HELPS,
            "patch": change.PATCH}

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def guard(self, function: Callable[..., Any], name: str | None = None) -> Callable[..., Any]:
        """Keep failures of a function of ours from the program. It returns None then."""
        @functools.wraps(function)
        def guarded(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except Exception as error:
                if name:
                    self.fail(name, error)
                else:
                    self.note(f"{type(error).__name__}: {error}")
                return None
        return guarded

    def tell(self) -> dict[str, Any]:
        missed = [*self.changes, *(LEVERS if self.looks else ())]
        unseen = {name: load_change(name).UNSEEN for name in missed
                  if name not in self.applied and name not in self.refused
                  and name not in self.offers}
        refused = {name: why for name, why in {**self.refused, **unseen}.items()
                   if name in self.changes or self.looks}
        return {"flops": self.steps.flops, "link_bytes": self.steps.link_bytes,
                "offers": [self.offers[name] for name in NAMES if name in self.offers],
                "applied": self.applied, "refused": refused, "notes": self.notes}
