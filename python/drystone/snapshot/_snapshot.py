# SPDX-License-Identifier: Apache-2.0
"""A snapshot: tables by the library, reports by the command."""
from __future__ import annotations

import html
import threading
from collections.abc import Iterable
from typing import Any, Union

from .._command import with_unit
from .._errors import Error
from . import _result
from ._commands import Commands, option
from ._source import find_source
from ._table import Table
from ._unpack import read_trace

Size = Union[int, str]  # bytes, or "40GiB"
Words = Union[str, Iterable[str]]


class Snapshot:
    """A file of drystone-trace(5), opened by drystone.open().

    Tables come from the library. They stay when the snapshot is gone. Reports are those of
    the command of the same name, whose manual page says what their attributes mean; each is
    made once. Any number of threads may use a snapshot.
    """

    def __init__(self, given: Any):
        self._source = find_source(given)
        self._trace: Any = read_trace(self._source)
        self._commands = Commands(self._source)
        self._tables: dict[str, Table] = {}
        self._lock = threading.Lock()

    @property
    def name(self) -> str:
        """The file as it was given; "<dict>", "<bytes>" of what was no file."""
        return self._source.name

    # --- tables ---

    @property
    def events(self) -> Table:
        """action, device, address, size, time_us, stream, pool_a, pool_b, stack,
        user_metadata, compile_context: the row is the event's number for `at`."""
        return self._table("events")

    @property
    def segments(self) -> Table:
        """The segments at the end, by device."""
        return self._table("segments")

    @property
    def blocks(self) -> Table:
        """The blocks at the end; `segment` is a row of the segments."""
        return self._table("blocks")

    @property
    def devices(self) -> Table:
        """Each device's range of events and of segments; -1 is pinned host memory."""
        return self._table("devices")

    @property
    def annotations(self) -> Table:
        """The scopes of record_function: device, time_us, name, stage."""
        return self._table("annotations")

    @property
    def stacks(self) -> Table:
        """The stacks by number: rows of the frames, innermost first."""
        return self._table("stacks")

    @property
    def frames(self) -> Table:
        """The frames by number: name, file, line."""
        return self._table("frames")

    def stack(self, number: int | None) -> list[Any]:
        """The frames of a stack, innermost first; none for None, the stack of no event."""
        if number is None:
            return []
        return [self.frames[frame] for frame in self.stacks[number].frames]

    @property
    def settings(self) -> Any:
        """The allocator's settings as the file has them, or None."""
        return self.info().settings

    # --- reports ---

    def info(self) -> _result.Result:
        """What is in the file, and how far it can be trusted."""
        return self._report("info")

    def explain(self, at: str | int | None = None, *, device: int | None = None,
                gpu_total: Size | None = None, runs: int | None = None,
                compat: str | None = None) -> _result.Result:
        """The verdict: why it did not fit, who held it, what to change.

        at         "oom", "peak", "end" or an event's number; None: the first OOM, else the peak
        device     None: the one that ran out of memory, else the busiest
        gpu_total  how large the device is
        runs       replays under other settings at most
        compat     the release of PyTorch it ran on; None: those that reproduce the record
        """
        return self._report("explain", at=at, device=device, gpu_total=gpu_total, runs=runs,
                            compat=compat)

    def top(self, at: str | int | None = None, *, by: str | None = None,
            inverted: bool = False, stacks: bool = False, rows: int | None = None,
            device: int | None = None, free: bool = False) -> _result.Result:
        """Who holds the memory, at a moment as in explain().

        by        "line", "function", "module", "stack", "category", "size" or "step"
        inverted  by the outermost frame of the user's code
        stacks    the owners' stacks, too
        rows      so many owners; None: all
        free      instead, where free memory lies and what pins it
        """
        return self._report("top", at=at, by=by, inverted=inverted, stacks=stacks, rows=rows,
                            device=device, free=free)

    def steps(self, *, device: int | None = None,
              capacity: Size | None = None) -> _result.Result:
        """What each step needs, what grows, and when the device is full."""
        return self._report("steps", device=device, capacity=_size(capacity))

    def sweep(self, *, goal: str | None = None, capacity: Size | None = None,
              without: Words = (), min_gain: Size | None = None, runs: int | None = None,
              compat: str | None = None, device: int | None = None) -> _result.Result:
        """The settings to use, found by replays.

        goal     "fit", "peak" or "stable"
        without  what cannot be used: "expandable", "gc", "split"
        """
        return self._report("sweep", goal=goal, capacity=_size(capacity), without=_list(without),
                            min_gain=_size(min_gain), runs=runs, compat=compat, device=device)

    def replay(self, conf: Words = (), place: Words = (), *, capacity: Size | None = None,
               find_capacity: bool = False, compat: str | None = None,
               device: int | None = None, steady_from: int | None = None,
               check_order: bool = False) -> _result.Result:
        """What happened, checked, and what other settings would have done.

        conf           settings as PYTORCH_CUDA_ALLOC_CONF has them, one or several
        place          "torch", "paged", "offline" or "PLACE:SETTINGS", one or several
        capacity       what the device has
        find_capacity  find the smallest device for each run
        """
        return self._report("replay", conf=_list(conf), place=_list(place),
                            capacity=_size(capacity), find_capacity=find_capacity, compat=compat,
                            device=device, steady_from=steady_from, check_order=check_order)

    def diff(self, *others: Any, at: str | int | None = None, by: str | None = None,
             min_bytes: Size | None = None, rows: int | None = None,
             device: int | None = None) -> _result.Result:
        """What this snapshot and others hold more of; alone, its devices are compared.

        others     snapshots, or what drystone.open() takes
        min_bytes  owners that differ by less are summed up
        """
        self._check()
        sources = [each._check()._source if isinstance(each, Snapshot) else find_source(each)
                   for each in others]
        words = [*option("at", at), *option("by", by), *option("min", _size(min_bytes)),
                 *option("rows", rows), *option("device", device)]
        return self._commands.report("diff", words, sources)

    # --- the end ---

    def close(self) -> None:
        """Give back what the snapshot holds; tables and reports that were made stay."""
        with self._lock:
            self._trace = None
            self._tables.clear()
        self._source.close()

    def __enter__(self) -> Snapshot:
        return self

    def __exit__(self, *_why: Any) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._trace is None:
            return f"<drystone snapshot {self.name!r}: closed>"
        return (f"<drystone snapshot {self.name!r}: {len(self.events)} events, "
                f"{len(self.segments)} segments, {len(self.blocks)} blocks>")

    def _repr_html_(self) -> str:
        return f"<code>{html.escape(repr(self))}</code>"

    def _check(self) -> Snapshot:
        if self._trace is None:
            raise Error(f"{self.name}: the snapshot is closed", file=self.name)
        return self

    def _table(self, name: str) -> Table:
        with self._lock:
            self._check()
            if name not in self._tables:
                self._tables[name] = Table(self._trace, name)
            return self._tables[name]

    def _report(self, command: str, **options: Any) -> _result.Result:
        self._check()
        words = [word for name, value in options.items()
                 for word in option(name.replace("_", "-"), value)]
        return self._commands.report(command, words)


def _list(words: Words) -> list[str]:
    return [words] if isinstance(words, str) else list(words)


def _size(size: Size | None) -> str | None:
    return None if size is None else with_unit(size)
