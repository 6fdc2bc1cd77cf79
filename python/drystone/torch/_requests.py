# SPDX-License-Identifier: Apache-2.0
"""Snapshots that a reader of this process's page requests."""
from __future__ import annotations

import errno
import os
import pickle
from typing import Any

from .._errors import first_line
from ._inductor import without_import


class Requests:
    """Writes at most so many snapshots in the life of a process."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._count = 0

    def serve(self, torch: Any, path: str) -> tuple[int, str]:
        """Write a snapshot to `path`; return 0, errno or -1, and a text for people."""
        if not os.path.isabs(path):
            return errno.EINVAL, "the path is not absolute"
        if os.path.lexists(path):
            return errno.EEXIST, "the file is there already"
        if not os.path.isdir(os.path.dirname(path)):
            return errno.ENOENT, "there is no such folder"
        if self._count >= self._most:
            return -1, f"{self._most} snapshots were written, the most that are allowed"
        if not torch.cuda.is_initialized():
            return -1, "the program has not used CUDA yet"
        self._count += 1
        try:
            with without_import(torch):
                snapshot = torch.cuda.memory._snapshot()
            has_history = _write(snapshot, path)
        except OSError as why:
            return why.errno or -1, why.strerror or "the file cannot be written"
        except Exception as why:  # an allocator without snapshots says so
            return -1, first_line(why)
        left = f"{self._most - self._count} of {self._most} left"
        if has_history:
            return 0, f"with history; {left}"
        return 0, f"segments alone, for history is not on; {left}"


class _Whole:
    """A file for pickle, which takes it for granted that all of a part is written.

    There is no buffer, so a fork in between leaves the child nothing to write a second time.
    """

    def __init__(self, file: int) -> None:
        self._file = file

    def write(self, part: Any) -> int:
        view = memoryview(part).cast("B")
        while view:
            view = view[os.write(self._file, view):]
        return len(part)


def _write(snapshot: dict[str, Any], path: str) -> bool:
    """Write all of it under another name, and name it `path` then; return whether it has events."""
    temporary = f"{path}.{os.getpid()}.part"
    file = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        try:
            pickle.dump(snapshot, _Whole(file))
        finally:
            os.close(file)
        _name(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    return any(snapshot.get("device_traces", ()))


def _name(temporary: str, path: str) -> None:
    """Rename without replacing; a file system without links has a moment for another to come."""
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(path):
            raise FileExistsError(errno.EEXIST, "the file is there already") from None
        os.rename(temporary, path)
        return
    os.unlink(temporary)
