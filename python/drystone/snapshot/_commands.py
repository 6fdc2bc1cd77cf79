# SPDX-License-Identifier: Apache-2.0
"""Reports about a source: the command is run once for each question, and the answer kept."""
from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Any

from .._command import read_command, run_command
from .._errors import Error
from ._result import Result
from ._source import Source


def option(name: str, value: Any) -> list[str]:
    """The words of an option: none for None and False, and one for each value of a list."""
    if value is None or value is False:
        return []
    if value is True:
        return [f"--{name}"]
    if isinstance(value, (list, tuple)):
        return [word for each in value for word in option(name, each)]
    return [f"--{name}={value}"]


class Commands:
    """The reports on files; safe to ask from several threads."""

    def __init__(self, source: Source):
        self._source = source
        self._answers: dict[tuple[str, ...], Any] = {}
        self._lock = threading.Lock()

    def report(self, command: str, words: Iterable[str], others: Sequence[Source] = ()) -> Result:
        """The report of `command` on the source, and on others behind it."""
        sources = [self._source, *others]
        asked = [command, *words]
        data = self._ask((command, "--json", *asked[1:]), sources)
        return Result(command, data, lambda: self._ask(tuple(asked), sources))

    def _ask(self, asked: tuple[str, ...], sources: Sequence[Source]) -> Any:
        key = (*asked, "--", *(source.path for source in sources))
        words = [*asked, "--", *(source.word for source in sources)]
        with self._lock:
            if key in self._answers:
                return self._answers[key]
        for source in sources:
            source.check()
        try:
            answer = (_name_files(run_command(words), sources) if "--json" in asked
                      else _rename(read_command(words), sources))
        except Error as why:
            raise Error(_rename(str(why), sources), why.status, file=self._source.name) from None
        with self._lock:
            return self._answers.setdefault(key, answer)


def _rename(text: str, sources: Sequence[Source]) -> str:
    """Say the names that people gave instead of the paths that the command saw."""
    for source in sorted(sources, key=lambda source: -len(source.path)):
        text = text.replace(source.path, source.name)
    return text


def _name_files(data: Any, sources: Sequence[Source]) -> Any:
    """The same for the values of "file", of the report and of its subjects."""
    names = {source.path: source.name for source in sources}
    for part in (data, *data.get("subjects", ())):
        part["file"] = names.get(part["file"], part["file"])
    return data
