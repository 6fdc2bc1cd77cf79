# SPDX-License-Identifier: Apache-2.0
"""The blocks of PyTorch's snapshot as details of a page.

The sums are those of <drystone/live.h>: a free run gives back the whole pages in it, or its segment
if that is all free. The rest is stranded, as all free memory of a private pool is.
"""
from __future__ import annotations

import inspect
import os
import sysconfig
from collections.abc import Iterable
from typing import Any

from .._live import LANES_MAX, LINES_MAX, Detail, Lane, Line, cut
from ._inductor import without_import

LARGE_PAGE, SMALL_PAGE = 20 << 20, 2 << 20  # of PyTorch's expandable segments; CUDA's own
NO_STACK = "(no Python stack)"  # as `drystone top` has it

Frame = tuple[str, int, str]


class Sums:
    """A segment's, a lane's or a device's."""

    __slots__ = ("reserved", "allocated", "pending", "releasable", "stranded", "largest_hole")

    def __init__(self) -> None:
        self.reserved = self.allocated = self.pending = 0
        self.releasable = self.stranded = self.largest_hole = 0

    def add(self, more: Sums) -> None:
        self.reserved += more.reserved
        self.allocated += more.allocated
        self.pending += more.pending
        self.releasable += more.releasable
        self.stranded += more.stranded
        self.largest_hole = max(self.largest_hole, more.largest_hole)


def segments(torch: Any) -> list[dict[str, Any]]:
    """Return PyTorch's segments with their blocks, without the history where that can be had."""
    snapshot = torch.cuda.memory_snapshot
    with without_import(torch):
        if "include_traces" in inspect.signature(snapshot).parameters:
            found: list[dict[str, Any]] = snapshot(include_traces=False)
        else:
            found = snapshot()
        return found


def details(torch: Any, found: Iterable[dict[str, Any]], placement: str | None,
            reserved: dict[int, int]) -> dict[int, Detail]:
    """Return a detail for each device.

    found      segments()
    placement  of our allocator in PyTorch; None: PyTorch's own
    reserved   bytes by device, which count what paged has under no address
    """
    lines = _Lines(torch)
    by_device: dict[int, dict[tuple[int, int, int], Sums]] = {device: {} for device in reserved}
    for segment in found:
        lanes = by_device.setdefault(segment["device"], {})
        lane = (segment.get("stream", 0), *segment.get("segment_pool_id", (0, 0)))
        lanes.setdefault(lane, Sums()).add(_sum_segment(segment, placement))
        lines.take(segment)
    stock = reserved if placement == "paged" else {}
    return {device: _detail(lanes, lines.of(device), stock.get(device, 0))
            for device, lanes in by_device.items()}


# --- sums ---------------------------------------------------------------------------------------

def _sum_segment(segment: dict[str, Any], placement: str | None) -> Sums:
    sums = Sums()
    sums.reserved = segment["total_size"]
    at = hole = 0  # `hole` bytes before `at` are free
    for block in segment["blocks"]:
        size, state = block["size"], block["state"]
        if state == "inactive":
            hole += size
        else:
            if hole:
                _take_free(sums, segment, placement, at - hole, at)
                hole = 0
            if state == "active_allocated":
                sums.allocated += size
            else:
                sums.pending += size
        at += size
    if hole:
        _take_free(sums, segment, placement, at - hole, at)
    return sums


def _take_free(sums: Sums, segment: dict[str, Any], placement: str | None, begin: int,
               end: int) -> None:
    whole = _whole(segment, placement, begin, end)
    sums.releasable += whole
    sums.stranded += end - begin - whole
    sums.largest_hole = max(sums.largest_hole, end - begin)


def _whole(segment: dict[str, Any], placement: str | None, begin: int, end: int) -> int:
    """Return the bytes of a free run that can go back to the driver alone."""
    if any(segment.get("segment_pool_id", ())):
        return 0
    if not segment.get("is_expandable"):
        return end - begin if end - begin == segment["total_size"] else 0
    is_large = segment.get("segment_type") == "large" and placement != "paged"
    page = LARGE_PAGE if is_large else SMALL_PAGE
    return max(0, end // page * page - -(-begin // page) * page)


def _detail(lanes: dict[tuple[int, int, int], Sums], lines: list[tuple[str, int, int]],
            reserved: int) -> Detail:
    every = Sums()
    for sums in lanes.values():
        every.add(sums)
    stock = max(0, reserved - every.reserved)
    detail = Detail(
        reserved=every.reserved + stock, pending=every.pending,
        releasable=every.releasable + stock, stranded=every.stranded,
        largest_hole=every.largest_hole, stock=stock, more_lanes=len(lanes) > LANES_MAX)
    shown = sorted(lanes.items(), key=lambda item: -item[1].reserved)[:LANES_MAX]
    detail.lane_count = len(shown)
    for at, ((stream, a, b), sums) in enumerate(shown):
        detail.lanes[at] = Lane(stream, a, b, sums.reserved, sums.allocated, sums.pending,
                                sums.releasable, sums.stranded, sums.largest_hole)
    detail.line_count = len(lines)
    for at, (text, held, count) in enumerate(lines):
        detail.lines[at] = Line(cut(text), held, count)
    return detail


# --- lines --------------------------------------------------------------------------------------

class _Lines:
    """Bytes and blocks by the line that owns them, of blocks whose stack PyTorch kept."""

    def __init__(self, torch: Any) -> None:
        self._torch_folder = os.path.dirname(torch.__file__) + os.sep
        self._library = sysconfig.get_paths()["stdlib"] + os.sep
        self._held: dict[int, dict[Frame | None, list[int]]] = {}
        self._owners: dict[int, Frame | None] = {}  # by a stack that PyTorch shares among blocks
        self._codes: dict[str, int] = {}

    def take(self, segment: dict[str, Any]) -> None:
        held = self._held.setdefault(segment["device"], {})
        for block in segment["blocks"]:
            if block["state"] != "active_allocated":
                continue
            frames = block.get("frames")
            owner = self._owner(frames) if frames else None
            sums = held.setdefault(owner, [0, 0])
            sums[0] += block["size"]
            sums[1] += 1

    def of(self, device: int) -> list[tuple[str, int, int]]:
        """Return text, bytes and blocks of those that hold most; nothing without any stack."""
        held = self._held.get(device, {})
        if not any(held):
            return []
        most = sorted(held.items(), key=lambda item: -item[1][0])[:LINES_MAX]
        return [(_text(owner), size, count) for owner, (size, count) in most]

    def _owner(self, frames: list[dict[str, Any]]) -> Frame | None:
        """Return the innermost frame of the best code there is: the user's, a package's..."""
        known = self._owners.get(id(frames))
        if known is None:
            best = max(frames, key=lambda frame: self._code(frame["filename"]))
            known = best["filename"], best["line"], best["name"]
            self._owners[id(frames)] = known
        return known

    def _code(self, file: str) -> int:
        code = self._codes.get(file)
        if code is None:
            code = self._codes[file] = self._read(file)
        return code

    def _read(self, file: str) -> int:
        """Return 5 for the user's code, less for what is a worse owner, 0 for C++."""
        if not (file.endswith(".py") or file.startswith("<") or "ipykernel_" in file):
            return 0
        if file.startswith("<") or os.path.basename(file).startswith("_drystone_"):
            return 1  # a dry run's hook makes the call in place of the program
        if file.startswith(self._torch_folder):
            return 2
        if "torchinductor_" in file:
            return 3
        if "site-packages" in file or "dist-packages" in file:
            return 4
        return 1 if file.startswith(self._library) else 5


def _text(owner: Frame | None) -> str:
    if owner is None:
        return NO_STACK
    return f"{os.path.basename(owner[0])}:{owner[1]} {owner[2]}"
