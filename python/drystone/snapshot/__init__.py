# SPDX-License-Identifier: Apache-2.0
"""Memory snapshots for Python: tables, and the command's reports as objects.

    import drystone

    s = drystone.open("snapshot.pickle")
    print(s.explain())                    # the verdict
    s.top(at="peak").owners[0].bytes      # keys of --json are attributes
    s.events.columns["size"].to_numpy()   # a column, without a copy
    pyarrow.table(s.events)               # Arrow, Polars, DuckDB, pandas

The file is read by the library. It is never unpickled, so nothing in it can run.
"""
from typing import Any

from ._record import Record
from ._result import Result
from ._show import Page, show
from ._snapshot import Snapshot
from ._table import Table

__all__ = ["Page", "Record", "Result", "Snapshot", "Table", "open", "show"]


def open(given: Any) -> Snapshot:
    """Open a snapshot, or another file that drystone-trace(5) describes.

    given  a path; bytes; a file opened for bytes; or the dict or list that
           torch.cuda.memory._snapshot() or memory_snapshot() returned

    What is no path is written to a temporary file, which goes with the snapshot: bytes as
    they are, a dict as a pickle. Error, with the file and the byte, says what was found
    and what was expected; there is no snapshot then.
    """
    return Snapshot(given)
