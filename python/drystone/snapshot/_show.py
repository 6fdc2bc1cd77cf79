# SPDX-License-Identifier: Apache-2.0
"""The page of `drystone view -o`, in a notebook or in a file."""
from __future__ import annotations

import html
import os
from typing import Any

from .._command import read_command, with_unit
from .._errors import Error
from ._snapshot import Snapshot
from ._source import find_source


class Page:
    """One page with verdict, timeline, map and owners; a notebook shows it.

    html    the whole page, which fetches nothing
    height  pixels that it takes in a notebook
    """

    def __init__(self, text: str, name: str, height: int):
        self.html = text
        self.height = height
        self._name = name

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, to open in a browser or to send."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html)

    def __repr__(self) -> str:
        return (f"<drystone page of {self._name!r}, {len(self.html):,} bytes: a notebook shows it, "
                "save(path) writes it>")

    def _repr_html_(self) -> str:
        # A frame of its own: nothing of the page touches the notebook, nor the other way round.
        return (f'<iframe sandbox="allow-scripts" srcdoc="{html.escape(self.html)}" '
                f'style="width:100%;height:{self.height}px;border:0"></iframe>')


def show(given: Any, *others: Any, max_bytes: int = 4 << 20, what_if: bool = True,
         height: int = 760) -> Page:
    """Show a snapshot, or several to compare, as `drystone view -o` does.

    given, others  snapshots, or what drystone.open() takes
    max_bytes      of the page, at most; the page says what was left out
    what_if        with what other settings would do, which takes replays
    height         pixels in a notebook

    Error says which file is refused, and why.
    """
    sources = [each._check()._source if isinstance(each, Snapshot) else find_source(each)
               for each in (given, *others)]
    for source in sources:
        source.check()
    words = ["view", "--output=-", f"--max-size={with_unit(max_bytes)}",
             *([] if what_if else ["--quick"]), "--", *(source.path for source in sources)]
    try:
        text = read_command(words)
    except Error as why:
        raise Error(str(why), why.status, file=sources[0].name) from None
    return Page(text, ", ".join(source.name for source in sources), height)
