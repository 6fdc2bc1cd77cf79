# SPDX-License-Identifier: Apache-2.0
"""Shapes: what a program says, and the library's form of them."""
from __future__ import annotations

import ctypes
import operator
from typing import Any

from .._call import CError, check, declare
from .._errors import ArgumentError
from ._dtype import ElementType
from ._layout import Form

_LENGTH_MAX = 2 ** 63 - 1


def whole_numbers(value: Any) -> tuple[int, ...] | None:
    """Return a tuple of the number or the numbers that `value` is; None: it is neither."""
    try:
        return (operator.index(value),)
    except TypeError:
        pass
    try:
        return tuple(operator.index(number) for number in value)
    except TypeError:
        return None


def shape_of(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple of whole numbers; one number is a shape of one dimension."""
    numbers = whole_numbers(shape)
    if numbers is None:
        raise ArgumentError(f"shape {shape!r}: whole numbers are expected")
    for number in numbers:
        if not 0 <= number <= _LENGTH_MAX:
            raise ArgumentError(f"shape {numbers}: {number} is not from 0 to {_LENGTH_MAX}")
    return numbers


def form_of(element_type: ElementType, shape: tuple[int, ...]) -> Form:
    """Return struct dry_tensor_form; the form keeps the numbers of its shape alive."""
    numbers = (ctypes.c_int64 * max(1, len(shape)))(*shape)
    return Form(element_type.c, len(shape), numbers, False)


def bytes_of(form: Form) -> int:
    """Return the bytes of a form; ArgumentError: there are too many dimensions or bytes."""
    count, err = ctypes.c_uint64(), CError()
    measure = declare("dry_tensor_measure", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
    check(measure(ctypes.byref(form), ctypes.byref(count), ctypes.byref(err)), err)
    return count.value


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the strides in elements, row by row."""
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= max(length, 1)
    return tuple(reversed(strides))
