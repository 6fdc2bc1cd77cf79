# SPDX-License-Identifier: Apache-2.0
"""A column: numbers that the library wrote, what absence looks like, and texts of codes."""
from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    import numpy

NONE = 0xFFFFFFFF  # DRY_NONE: the row has nothing here


class Column:
    """One column of a table; the memory it shows stays as long as somebody looks at it.

    name         as in the table
    values       a read-only memoryview, without a copy: numbers, or codes where there are labels
    labels       None, or texts: code i stands for labels[i]
    is_nullable  a row may have nothing here: its value is 2 ** 32 - 1

    Indexing and iteration give Python's values: numbers, texts, None.
    """

    def __init__(self, name: str, values: memoryview,
                 read_labels: Callable[[], list[str]] | None = None, is_nullable: bool = False):
        self.name = name
        self.values = values
        self.is_nullable = is_nullable
        self._read_labels = read_labels

    @functools.cached_property
    def labels(self) -> list[str] | None:
        return self._read_labels() if self._read_labels else None

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return list(map(self._value, self.values[index]))
        return self._value(self.values[index])

    def __iter__(self) -> Iterator[Any]:
        if self._read_labels is None and not self.is_nullable:
            return iter(self.values)
        return map(self._value, self.values)

    def __repr__(self) -> str:
        return f"<column {self.name!r}: {len(self)} of {self.values.format!r}>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> numpy.ndarray:
        made = self.to_numpy()
        if dtype is not None and made.dtype != dtype:
            return made.astype(dtype)
        return made.copy() if copy else made

    def to_numpy(self) -> numpy.ndarray:
        """The numbers, or the codes of a column with labels, read-only and without a copy."""
        import numpy
        return numpy.asarray(self.values)

    def to_pandas(self) -> Any:
        """A pandas array: of texts where there are labels, nullable where a row has nothing."""
        import numpy
        import pandas
        values = numpy.array(self.values)
        if self.labels is None and self.is_nullable:
            return pandas.arrays.IntegerArray(values, values == NONE)
        if self.labels is None:
            return values
        if not self.is_nullable:
            return pandas.Categorical.from_codes(values, self.labels)
        texts = numpy.array([*self.labels, None], dtype=object)
        return texts[numpy.minimum(values, len(self.labels))]

    def _value(self, number: Any) -> Any:
        if self.is_nullable and number == NONE:
            return None
        return number if self.labels is None else self.labels[number]


class Lists:
    """A column of lists of numbers: those of row i are items[offsets[i]:offsets[i + 1]]."""

    def __init__(self, name: str, offsets: memoryview, items: memoryview):
        self.name = name
        self.offsets = offsets
        self.items = items

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        at = range(len(self))[index]
        return tuple(self.items[self.offsets[at]:self.offsets[at + 1]])

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"<column {self.name!r}: {len(self)} lists of {self.items.format!r}>"

    def to_numpy(self) -> numpy.ndarray:
        """An array of arrays, which show the same memory."""
        import numpy
        made, items = numpy.empty(len(self), dtype=object), numpy.asarray(self.items)
        for i in range(len(self)):
            made[i] = items[self.offsets[i]:self.offsets[i + 1]]
        return made

    def to_pandas(self) -> numpy.ndarray:
        return self.to_numpy()
