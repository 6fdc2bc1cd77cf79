# SPDX-License-Identifier: Apache-2.0
"""The file behind a snapshot: one that was named, or a temporary one for what was given."""
from __future__ import annotations

import os
import pickle
import shutil
import stat
import tempfile
import weakref
from typing import Any

from .._errors import Error


class Source:
    """A regular file that stays as it is while somebody asks about it.

    path  absolute, for the library and the command
    name  as it was given, or "<dict>", "<bytes>", ...: for people
    """

    def __init__(self, path: str, name: str, is_temporary: bool):
        self.path = path
        self.name = name
        self._folder = None if is_temporary else _current_folder()
        self._identity = self._identify()
        self._end = weakref.finalize(self, _remove, path) if is_temporary else None

    @property
    def word(self) -> str:
        """The name for a command that is run now, if that leads there, else the path.

        Reports break their first line by the length of the name.
        """
        if self._folder is not None and self._folder == _current_folder() and self.name != "-":
            return self.name
        return self.path

    def check(self) -> None:
        """Refuse a file that is another one than it was when it was opened."""
        if self._identify() != self._identity:
            raise Error(f"{self.name}: the file has changed since it was opened: open it again",
                        file=self.name)

    def close(self) -> None:
        """Remove a temporary file; it is removed with the object, too."""
        if self._end is not None:
            self._end()

    def _identify(self) -> tuple[int, ...]:
        try:
            now = os.stat(self.path)
        except OSError as why:
            raise Error(f"{self.name}: cannot open: {why.strerror}", file=self.name) from None
        return (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns)


def find_source(given: Any) -> Source:
    """The source of what drystone.open() takes."""
    if isinstance(given, (str, os.PathLike)):
        return _find_path(os.fspath(given))
    if isinstance(given, (bytes, bytearray, memoryview)):
        return _keep(lambda file: file.write(given), "<bytes>")
    if isinstance(given, (dict, list)):
        return _keep(lambda file: pickle.dump(given, file, protocol=4), f"<{type(given).__name__}>")
    if hasattr(given, "read"):
        name = getattr(given, "name", None)
        return _keep(lambda file: _copy(given, file),
                     name if isinstance(name, str) else "<file>")
    raise TypeError(f"drystone.open() takes a path, bytes, a file or what "
                    f"torch.cuda.memory._snapshot() returns, not {type(given).__name__}")


def _current_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""


def _find_path(path: Any) -> Source:
    name = os.fsdecode(path)
    try:
        mode = os.stat(name).st_mode
    except (OSError, ValueError) as why:  # ValueError: a zero byte in the name
        text = getattr(why, "strerror", None) or str(why)
        raise Error(f"{name}: cannot open: {text}", file=name) from None
    if stat.S_ISDIR(mode):
        raise Error(f"{name}: a directory, expected a file", file=name)
    if stat.S_ISFIFO(mode):  # it can be read once, and there is more than one reader
        with open(name, "rb") as pipe:
            return _keep(lambda file: shutil.copyfileobj(pipe, file), name)
    if not stat.S_ISREG(mode):
        raise Error(f"{name}: neither a file nor a pipe", file=name)
    return Source(os.path.join(_current_folder(), name), name, False)


def _copy(given: Any, file: Any) -> None:
    try:
        shutil.copyfileobj(given, file)
    except TypeError:
        raise TypeError("drystone.open() takes a file opened for bytes, mode \"rb\"") from None


def _keep(write: Any, name: str) -> Source:
    handle, path = tempfile.mkstemp(prefix="drystone-", suffix=".trace")
    try:
        with os.fdopen(handle, "wb") as file:
            write(file)
        return Source(path, name, True)
    except BaseException:
        _remove(path)
        raise


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
