# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the package."""
from __future__ import annotations



class Error(RuntimeError):
    """What is wrong, in one line; of the command, with its exit status in `status`."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class ArgumentError(Error, ValueError):
    """An argument cannot be; the text has the value and what is expected."""


class SpaceError(Error, MemoryError):
    """The memory asked for is not to be had."""
