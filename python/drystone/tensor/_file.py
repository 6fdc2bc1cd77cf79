# SPDX-License-Identifier: Apache-2.0
"""Reads a part of a file into memory, by several threads if it is large."""
from __future__ import annotations

import concurrent.futures
import ctypes
import operator
import os
import stat

from .._errors import ArgumentError

_PIECE_BYTES = 64 << 20
_THREADS_MAX = 4


def size_of(path: str | os.PathLike[str], offset: int) -> int:
    """Return the bytes of a regular file from `offset` on."""
    about = os.stat(path)
    if not stat.S_ISREG(about.st_mode):
        raise ArgumentError(f"{path}: a regular file is expected")
    if not 0 <= operator.index(offset) <= about.st_size:
        raise ArgumentError(f"{path}: offset {offset} is not within its {about.st_size} bytes")
    return about.st_size - offset


def _read_piece(file: int, path: str | os.PathLike[str], at: int, address: int,
                count: int) -> None:
    done = 0
    while done < count:
        rest = (ctypes.c_char * (count - done)).from_address(address + done)
        got = os.preadv(file, [memoryview(rest).cast("B")], at + done)
        if got == 0:
            raise ArgumentError(f"{path}: the file ends at byte {at + done}: it was cut short "
                                "while it was read")
        done += got


def read_into(path: str | os.PathLike[str], offset: int, address: int, count: int) -> None:
    """Fill `count` bytes at `address` from the file's byte `offset` on."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces = [(offset + at, address + at, min(_PIECE_BYTES, count - at))
                  for at in range(0, count, _PIECE_BYTES)]
        if len(pieces) < 2:
            for piece in pieces:
                _read_piece(file, path, *piece)
            return
        workers = min(_THREADS_MAX, len(os.sched_getaffinity(0)), len(pieces))
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            list(pool.map(lambda piece: _read_piece(file, path, *piece), pieces))
    finally:
        os.close(file)
