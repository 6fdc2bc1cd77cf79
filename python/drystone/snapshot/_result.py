# SPDX-License-Identifier: Apache-2.0
"""A report of the command: its JSON as an object, and its text."""
from __future__ import annotations

import json
from typing import Any, Callable

from ._html import show_report
from ._record import Record, _describe


class Result(Record):
    """A report. Its attributes are the keys that the command's --json has.

    command  "top", say
    json     the JSON, as text
    text     what the command prints for people; str() is the same
    """

    def __init__(self, command: str, data: dict[str, Any], read_text: Callable[[], str]):
        super().__init__(data)
        self._command = command
        self._read_text = read_text

    @property
    def command(self) -> str:
        return self._command

    @property
    def json(self) -> str:
        return json.dumps(self._data, indent=2, ensure_ascii=False)

    @property
    def text(self) -> str:
        return self._read_text()

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        shown = {key: value for key, value in self._data.items()
                 if key not in ("schema", "file") and value is not None}
        parts = ", ".join(_describe(shown))
        return f"<drystone {self._command} {self._data.get('file')!r}: {parts}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else self.text.rstrip("\n"))

    def _repr_html_(self) -> str:
        return show_report(f"drystone {self._command}", self._data)
