# SPDX-License-Identifier: Apache-2.0
"""Words for pages: what a program says, the library's options, and what a refusal says."""
from __future__ import annotations

import re
from typing import Any

from .._call import options_of
from .._errors import ArgumentError
from ._form import whole_numbers
from ._layout import NODES_MAX, PagesOptions

# Every refusal of memory ends with this. The library itself names the command for a pool.
REMEDY = "'drystone pages' lists what there is and tells what is wrong"

BASE, TRANSPARENT, POOL = 0, 1, 2
_KINDS = {None: TRANSPARENT, "normal": BASE, "thp": TRANSPARENT, "pool": POOL}
_UNITS = {"K": 10, "M": 20, "G": 30}
_ANYWHERE, _ON_NODE, _INTERLEAVED, _WEIGHTED = 0, 1, 2, 3
_PREFER, _STRICT, _ANY = 0, 1, 2
_FORKS = {"none": 0, "copy": 1, "zero": 2, "share": 3}
_FALLBACKS = {False: _STRICT, True: _PREFER, "anywhere": _ANY}


def kind_of(pages: str | None) -> tuple[int, int]:
    """Return (kind, bytes of a page, 0 if not said) for a word such as "thp", "2M" or "1G"."""
    if pages is None or pages in ("normal", "thp", "pool"):
        return _KINDS[pages], 0
    found = re.fullmatch(r"([1-9][0-9]{0,5})([KMG])(i?B)?", str(pages))
    if not found:
        raise ArgumentError(f"pages {pages!r}: None, 'normal', 'thp', 'pool' or a size such as "
                            "'2M' or '1G' is expected")
    return POOL, int(found[1]) << _UNITS[found[2]]


def _take_node(options: PagesOptions, node: Any) -> None:
    if node is None:
        return
    if node in ("interleave", "weighted"):
        options.where = _INTERLEAVED if node == "interleave" else _WEIGHTED
        return
    numbers = whole_numbers(node)
    if not numbers or any(not 0 <= number < NODES_MAX for number in numbers):
        raise ArgumentError(f"node {node!r}: None, a number from 0 to {NODES_MAX - 1}, several "
                            "of them, 'interleave' or 'weighted' is expected")
    options.where = _ON_NODE if len(numbers) == 1 else _INTERLEAVED
    options.node = numbers[0] if len(numbers) == 1 else 0
    for number in numbers if len(numbers) > 1 else ():
        options.nodes[number // 64] |= 1 << number % 64


def policy_of(pages: str | None, fallback: bool | str | None) -> int:
    """Return the library's policy: nothing but what was asked for, unless `fallback` says so."""
    if fallback is None:
        fallback = pages is None
    if fallback not in _FALLBACKS:
        raise ArgumentError(f"fallback {fallback!r}: False, True or 'anywhere' is expected")
    return _FALLBACKS[fallback]


def options_for(pages: str | None, node: Any, fork: str | None,
                fallback: bool | str | None) -> PagesOptions:
    """Return struct dry_pages_options for the words of drystone.empty()."""
    options = options_of(PagesOptions, "dry_pages_options_init")
    options.kind, options.page_bytes = kind_of(pages)
    options.policy = policy_of(pages, fallback)
    _take_node(options, node)
    if fork is None:
        fork = "share" if options.kind == POOL else "copy"
    if fork not in _FORKS:
        raise ArgumentError(f"fork {fork!r}: None, 'copy', 'share', 'zero' or 'none' is expected")
    if options.kind == POOL and fork in ("copy", "zero"):
        raise ArgumentError(f"fork {fork!r}: pages of a pool can be 'share' or 'none' alone, for "
                            "a write to a copy kills the process when the pool is empty")
    options.fork = _FORKS[fork]
    return options
