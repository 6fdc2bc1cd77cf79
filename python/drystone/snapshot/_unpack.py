# SPDX-License-Identifier: Apache-2.0
"""A packed file, JSON or a page, as what the library reads: a pickle, or text."""
from __future__ import annotations

import contextlib
import gzip
import os
import tempfile
import zlib
from collections.abc import Iterator

from .._command import read_command
from .._errors import Error
from ._source import Source
from ._trace import Trace

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


def read_trace(source: Source) -> Trace:
    """Read the trace of a source; Error with its name and byte where there is none.

    gzip is unpacked as it is read. zstd, JSON and HTML go through the command, which writes
    the snapshot that they hold.
    """
    try:
        with open(source.path, "rb", buffering=0) as file:
            begin = file.read(64)
            file.seek(0)
            size = os.fstat(file.fileno()).st_size
            if begin.startswith(_GZIP):
                with gzip.open(file, "rb") as unpacked:
                    return Trace(unpacked, size, source.name, True)
            if not begin.startswith(_ZSTD) and begin.lstrip()[:1] not in (b"{", b"[", b"<"):
                return Trace(file, size, source.name)
        with _export(source) as path, open(path, "rb", buffering=0) as file:
            return Trace(file, os.path.getsize(path), source.name, True)
    except (EOFError, zlib.error, gzip.BadGzipFile) as why:
        raise Error(f"{source.name}: gzip stream broken: {why}", file=source.name) from None
    except OSError as why:
        raise Error(f"{source.name}: cannot read: {why.strerror or why}",
                    file=source.name) from None


@contextlib.contextmanager
def _export(source: Source) -> Iterator[str]:
    """The path of a pickle that is there until the end of the `with`."""
    with tempfile.TemporaryDirectory(prefix="drystone-") as folder:
        path = os.path.join(folder, "snapshot.pickle")
        try:
            read_command(["export", "--format=pickle", f"--output={path}", "--", source.path])
        except Error as why:
            raise Error(str(why).replace(source.path, source.name), why.status,
                        file=source.name) from None
        yield path
