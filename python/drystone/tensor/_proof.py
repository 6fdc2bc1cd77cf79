# SPDX-License-Identifier: Apache-2.0
"""The pages of a tensor: as they were had, and as the kernel tells them now."""
from __future__ import annotations

import ctypes
from typing import NamedTuple

from .._call import UNSUPPORTED, CError, check, declare, error_of
from ._layout import PagesInfo, Proof as _Proof


class Attempt(NamedTuple):
    """One try to have the memory: "pool", 2097152, False, "no-pool" ..."""

    kind: str
    page_bytes: int
    is_granted: bool
    reason: str
    node_reason: str


class Proof(NamedTuple):
    """The places of the memory now, in bytes. None: the kernel does not tell."""

    bytes: int
    populated_bytes: int
    huge_bytes: int | None
    nodes: dict[int, int] | None
    elsewhere_bytes: int


def _text(function: str, number: int) -> str:
    found = declare(function, ctypes.c_int, result=ctypes.c_char_p)(number)
    return found.decode() if found else str(number)


class Pages:
    """The pages of a tensor as they were had; all sizes are in bytes."""

    def __init__(self, pointer: int) -> None:
        info = PagesInfo(struct_size=ctypes.sizeof(PagesInfo))
        declare("dry_pages_get_info", ctypes.c_void_p, ctypes.c_void_p, result=None)(
            pointer, ctypes.byref(info))
        self.kind = _text("dry_pages_kind_name", info.kind)
        self.page_bytes = info.page_bytes
        self.bytes = info.bytes
        self.huge_bytes = info.huge_bytes
        self.elsewhere_bytes = info.elsewhere_bytes
        self.populate_seconds = info.populate_ns / 1e9
        self.attempts = [
            Attempt(_text("dry_pages_kind_name", a.kind), a.page_bytes, a.is_granted,
                    _text("dry_pages_reason_name", a.reason),
                    _text("dry_pages_reason_name", a.node_reason))
            for a in info.report.attempts[:info.report.count]]

    def __repr__(self) -> str:
        return (f"pages={self.kind} of {self.page_bytes >> 10} KiB, "
                f"{self.huge_bytes >> 20} of {self.bytes >> 20} MiB huge")


def prove(pointer: int | None) -> Proof:
    """Return the Proof for the library's pages; `pointer` None: Error."""
    if not pointer:
        raise error_of(UNSUPPORTED, "pinned memory, or no elements: no pages of its own")
    proof, err = _Proof(struct_size=ctypes.sizeof(_Proof)), CError()
    ask = declare("dry_pages_prove", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    check(ask(pointer, ctypes.byref(proof), ctypes.byref(err)), err)
    nodes = {share.node: share.bytes for share in proof.shares[:proof.share_count]}
    return Proof(proof.bytes, proof.populated_bytes,
                 proof.huge_bytes if proof.knows_huge else None,
                 nodes if proof.knows_nodes else None, proof.elsewhere_bytes)
