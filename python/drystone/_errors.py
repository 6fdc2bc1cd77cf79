# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the package."""
from __future__ import annotations


class Error(RuntimeError):
    """What is wrong, in one line.

    status  the exit status of the command, if one was asked
    file    the file that was refused
    offset  the byte of the file that the line speaks of
    """

    def __init__(self, text: str, status: int | None = None, *, file: str | None = None,
                 offset: int | None = None):
        super().__init__(text)
        self.status = status
        self.file = file
        self.offset = offset


class ArgumentError(Error, ValueError):
    """An argument cannot be; the text has the value and what is expected."""


class SpaceError(Error, MemoryError):
    """The memory asked for is not to be had."""


def first_line(why: BaseException) -> str:
    """Return the first line that an exception says, and its kind if it says nothing."""
    return str(why).splitlines()[0] if str(why) else type(why).__name__
