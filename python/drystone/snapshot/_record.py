# SPDX-License-Identifier: Apache-2.0
"""An object of JSON whose keys are attributes."""
from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

_SHOWN = 6  # keys of a repr


class Record:
    """What stands between two braces of JSON: record.bytes, record["bytes"], dict(record).

    Objects inside are Records, lists are lists. The keys are those of the command's manual
    page, under JSON.
    """

    def __init__(self, data: dict[str, Any]):
        self._data = data
        self._made: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # also before __init__, when a copy is made
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"no key {name!r}, expected one of "
                                 f"{', '.join(self._data)}") from None

    def __getitem__(self, key: str) -> Any:
        if key not in self._made:
            self._made[key] = _wrap(self._data[key])
        return self._made[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __contains__(self, key: object) -> bool:
        return key in self._data

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Record) and self._data == other._data

    __hash__ = None  # type: ignore[assignment]

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self._data})

    def keys(self) -> Any:
        return self._data.keys()

    def to_dict(self) -> dict[str, Any]:
        """A dict of its own, with dicts and lists inside."""
        return copy.deepcopy(self._data)

    def __repr__(self) -> str:
        return f"<{', '.join(_describe(self._data))}>"


def _describe(data: dict[str, Any]) -> list[str]:
    parts = [f"{key}={_brief(value)}" for key, value in list(data.items())[:_SHOWN]]
    return [*parts, "..."] if len(data) > _SHOWN else parts


def _brief(value: Any) -> str:
    if isinstance(value, list):
        return f"[{len(value)}]"
    if isinstance(value, dict):
        return "{...}"
    text = repr(value)
    return text if len(text) <= 60 else text[:40] + "..." + text[-17:]


def _wrap(value: Any) -> Any:
    if isinstance(value, dict):
        return Record(value)
    if isinstance(value, list):
        return [_wrap(item) for item in value]
    return value
