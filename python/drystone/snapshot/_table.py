# SPDX-License-Identifier: Apache-2.0
"""A table of a snapshot: rows for Python, columns for NumPy, a stream for Arrow."""
from __future__ import annotations

import collections
import html
import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import _arrow
from ._column import Column, Lists
from ._trace import Trace

if TYPE_CHECKING:
    import numpy
    import pandas

_ROWS_SHOWN = 10
_CUT = 80  # characters of a cell


class Table:
    """Rows as Python's named tuples, columns as NumPy's arrays, all of it for Arrow.

        table[0].size, table[-3:], for row in table
        table.columns["size"]           a Column; numpy.asarray() of it copies nothing
        table.to_numpy()                one structured array, a copy
        table.to_pandas()               a DataFrame
        pyarrow.table(table), polars.DataFrame(table), duckdb.sql("from table")

    Columns of texts are codes in NumPy; their texts are columns[...].labels.
    """

    def __init__(self, trace: Trace, name: str):
        self.name = name
        self._trace = trace
        batch = _arrow.Batch(trace, name)
        self._count: int = batch.count
        self.columns: dict[str, Column | Lists] = batch.columns()
        make_type: Any = collections.namedtuple  # of names that only the library knows
        self.row_type = make_type(name[:-1].capitalize(), list(self.columns))

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int | slice) -> Any:
        """A row, or a list of rows of a slice."""
        cells = [column[index] for column in self.columns.values()]
        if isinstance(index, slice):
            return list(map(self.row_type._make, zip(*cells)))
        return self.row_type._make(cells)

    def __iter__(self) -> Iterator[Any]:
        return map(self.row_type._make, zip(*self.columns.values()))

    def __repr__(self) -> str:
        return f"<{self.name}: {len(self)} rows of {', '.join(self.columns)}>"

    def to_numpy(self) -> numpy.ndarray:
        """A structured array, one copy; texts are codes, and lists are left out."""
        import numpy
        parts = {name: column.to_numpy() for name, column in self.columns.items()
                 if isinstance(column, Column)}
        made = numpy.empty(len(self), [(name, part.dtype) for name, part in parts.items()])
        for name, part in parts.items():
            made[name] = part
        return made

    def to_pandas(self) -> pandas.DataFrame:
        """A DataFrame; texts are texts, and what a row does not have is missing."""
        import pandas
        return pandas.DataFrame({name: column.to_pandas()
                                 for name, column in self.columns.items()})

    def __arrow_c_schema__(self) -> Any:
        return _arrow.hand_out_schema(self._trace, self.name)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """Arrow's C stream, of one batch; another schema that is asked for is not made."""
        return _arrow.hand_out_stream(self._trace, self.name)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{name}</th>" for name in self.columns)
        rows: list[str] = [f"<tr>{head}</tr>"]
        for row in itertools.islice(self, _ROWS_SHOWN):
            cells = (html.escape(("" if cell is None else str(cell))[:_CUT]) for cell in row)
            rows.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
        return f"<table>{''.join(rows)}</table><p>{len(self)} {self.name}</p>"
