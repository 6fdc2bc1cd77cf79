# SPDX-License-Identifier: Apache-2.0
"""JSON of a report as small HTML: tables, nothing that runs, everything foreign escaped."""
from __future__ import annotations

import html
from typing import Any

_ROWS_SHOWN = 10
_CUT = 120  # characters of a cell
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def show_bytes(count: Any) -> str:
    """"13.21 GiB", as the command writes sizes."""
    size, unit = float(count), 0
    while abs(size) >= 1024 and unit < len(_UNITS) - 1:
        size, unit = size / 1024, unit + 1
    return f"{size:.2f} {_UNITS[unit]}" if unit else f"{count} B"


def show_report(title: str, data: dict[str, Any]) -> str:
    """The report's numbers and texts, then its lists, each as a table."""
    plain = {key: value for key, value in data.items() if _is_plain(value)}
    parts = [f"<b>{html.escape(title)}</b>", _show_pairs(plain)]
    for key, value in data.items():
        if isinstance(value, dict):
            inside = {name: each for name, each in value.items() if _is_plain(each)}
            parts.append(_caption(key) + _show_pairs(inside))
        elif isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            parts.append(_caption(f"{key} ({len(value)})") + _show_rows(value))
    return f"<div>{''.join(parts)}</div>"


def _is_plain(value: Any) -> bool:
    return not isinstance(value, (dict, list))


def _cell(key: str, value: Any) -> str:
    if value is None:
        return ""
    if key.endswith("bytes") and isinstance(value, (int, float)) and value is not True:
        return show_bytes(value)
    text = str(value)
    return html.escape(text if len(text) <= _CUT else text[:_CUT] + "...")


def _caption(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def _show_pairs(pairs: dict[str, Any]) -> str:
    rows = (f"<tr><th>{html.escape(key)}</th><td>{_cell(key, value)}</td></tr>"
            for key, value in pairs.items())
    return f"<table>{''.join(rows)}</table>"


def _show_rows(rows: list[dict[str, Any]]) -> str:
    keys = [key for key in rows[0] if all(_is_plain(row.get(key)) for row in rows)]
    lines = ["".join(f"<th>{html.escape(key)}</th>" for key in keys)]
    for row in rows[:_ROWS_SHOWN]:
        lines.append("".join(f"<td>{_cell(key, row.get(key))}</td>" for key in keys))
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>"
