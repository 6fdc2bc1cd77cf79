# SPDX-License-Identifier: Apache-2.0
"""Sizes as people write them, and as people read them."""
from __future__ import annotations

import re

from ..plan._errors import PlanError

_UNITS = {"": 1, "B": 1,
          "KB": 10 ** 3, "MB": 10 ** 6, "GB": 10 ** 9, "TB": 10 ** 12,
          "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}


def read_size(value: object) -> int:
    """Return the bytes of a whole number, or of a text such as "8GB", "7.5 GiB", "512MiB".

    GB is 10^9 and GiB is 2^30. PlanError for anything else.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if isinstance(value, str):
        found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*", value)
        unit = _UNITS.get(found[2].upper()) if found else None
        size = int(float(found[1]) * unit) if found and unit else 0
        if size > 0:
            return size
    raise PlanError(f"{value!r} is not a size: write bytes, or a text such as '8GB' or '7.5GiB'")


def write_size(size: float) -> str:
    """Return the size with three figures and a unit, such as "7.45 GiB"."""
    units = ["B", "KiB", "MiB", "GiB", "TiB"]
    while abs(size) >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    unit = units[0]
    return f"{size:.0f} B" if unit == "B" else f"{size:.3g} {unit}" if abs(size) < 1000 else \
        f"{size:.0f} {unit}"
