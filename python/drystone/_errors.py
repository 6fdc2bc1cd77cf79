# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the package."""
from __future__ import annotations



class Error(RuntimeError):
    """A call failed: one line of text; `status` is the command's exit status or the library's."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class ArgumentError(Error, ValueError):
    """An argument cannot be; the text has the value and what is expected."""


class SpaceError(Error, MemoryError):
    """The memory asked for is not to be had."""
