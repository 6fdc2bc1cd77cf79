# SPDX-License-Identifier: Apache-2.0
"""New tensors: empty(), zeros() and from_file()."""
from __future__ import annotations

import ctypes
import functools
import os
from typing import Any

from .._call import ARGUMENT, CError, check, declare, options_of
from .._errors import ArgumentError, Error, SpaceError
from ._dtype import ElementType, parse
from ._file import read_into, size_of
from ._form import bytes_of, form_of, shape_of
from ._handle import Handle
from ._layout import TensorOptions
from ._pages import POOL, REMEDY, kind_of, options_for
from ._pinned import create_pinned
from ._tensor import Tensor


def _options(element_type: ElementType, shape: tuple[int, ...]) -> TensorOptions:
    options = options_of(TensorOptions, "dry_tensor_options_init")
    options.form = form_of(element_type, shape)
    return options


def _create_pages(options: TensorOptions, pages: str | None, node: Any, fork: str | None,
                  fallback: bool | str | None) -> int:
    of_pages = options_for(pages, node, fork, fallback)
    options.pages = ctypes.addressof(of_pages)
    pointer, err = ctypes.c_void_p(), CError()
    create = declare("dry_tensor_create", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p,
                     ctypes.c_void_p)
    status = create(ctypes.byref(options), ctypes.byref(pointer), None, ctypes.byref(err))
    check(status, err, "" if status == ARGUMENT else REMEDY)
    return pointer.value or 0


def _new_handle(options: TensorOptions, pages: str | None, node: Any, pinned: bool | str,
                fork: str | None, fallback: bool | str | None) -> Handle:
    if not pinned:
        return Handle(_create_pages(options, pages, node, fork, fallback))
    if fork not in (None, "none"):
        raise ArgumentError(f"fork {fork!r}: a child never has pinned memory, 'none' alone")
    try:
        return Handle(*create_pinned(options, pages, node, pinned, fallback))
    except SpaceError as why:
        if pages is not None:
            # The refusal of plain pages says more; if there is none, they go back at once.
            Handle(_create_pages(options, pages, node, "none", fallback))
        raise why


def _handle_or_smaller(options: TensorOptions, pages: str | None, node: Any,
                       pinned: bool | str, fork: str | None,
                       fallback: bool | str | None) -> Handle:
    """Make a Handle, and with fallback=True take other pages for a pool's.

    A child shares pages of a pool and has copies of others, if `fork` is None. One call of the
    library's for both would end at base pages, because shared memory is rarely huge.
    """
    is_pool = kind_of(pages)[0] == POOL
    if pinned or not is_pool or fork is not None or fallback is not True:
        return _new_handle(options, pages, node, pinned, fork, fallback)
    try:
        return _new_handle(options, pages, node, pinned, fork, False)
    except ArgumentError:
        raise
    except Error as why:
        handle = _new_handle(options, None, node, pinned, "copy", True)
        handle.refusal = str(why)
        return handle


def _make(shape: tuple[int, ...], element_type: ElementType, **words: Any) -> Tensor:
    options = _options(element_type, shape)
    bytes_of(options.form)  # so that a form that cannot be is refused before all else
    again = functools.partial(_make, **words)
    return Tensor(_handle_or_smaller(options, **words), element_type, shape, again=again)


def empty(shape: Any, dtype: Any = "float32", *, pages: str | None = None, node: Any = None,
          pinned: bool | str = False, fork: str | None = None,
          fallback: bool | str | None = None) -> Tensor:
    """Return a new tensor, whose memory may hold anything.

    shape     a number or several
    dtype     a name such as "float32", "bfloat16", "float8_e4m3fn", or a dtype of NumPy's,
              PyTorch's, JAX's or ml_dtypes'
    pages     "2M", "1G", ...: huge pages of the pool of this size. "pool": of the kernel's
              default size. "thp": transparent huge pages. "normal": base pages. None: transparent
              ones, or base pages where those are off
    node      the NUMA node; several: page by page over them; "interleave", "weighted": over all;
              None: where the kernel puts the memory
    pinned    True: page-locked for CUDA's devices, so that copies run beside other work.
              "lock": locked by mlock(), where there is no CUDA
    fork      what a child after fork() has: "copy" (a copy, made at the first write), "share"
              (the same memory), "zero" (zeroes) or "none" (a touch ends the child). None: "share"
              for pages of a pool, "none" for pinned memory, else "copy"
    fallback  True: smaller pages if these are not to be had; "anywhere": first those of other
              nodes. False: an Error then. None: True if `pages` is None, else False

    ArgumentError (a ValueError): an argument cannot be. SpaceError (a MemoryError): the memory
    is not to be had; the text has the reason and the command that mends it. Error: this machine
    has nothing of the kind.
    """
    return _make(shape_of(shape), parse(dtype), pages=pages, node=node, pinned=pinned, fork=fork,
                 fallback=fallback)


def zeros(shape: Any, dtype: Any = "float32", **options: Any) -> Tensor:
    """Return a new tensor of zeroes; arguments and errors are those of empty()."""
    made = empty(shape, dtype, **options)
    if made.is_pinned and made.nbytes:  # new pages are zeroes, a block of a cache is not
        ctypes.memset(made.data_ptr, 0, made.nbytes)
    return made


def from_file(path: str | os.PathLike[str], dtype: Any = "uint8", shape: Any = None, *,
              offset: int = 0, **options: Any) -> Tensor:
    """Return a new tensor with the bytes of a file.

    path     of a regular file, which is read once
    shape    None: one dimension, up to the end of the file
    offset   in bytes: where the file's part begins
    options  those of empty()

    ArgumentError: the file's part is no whole number of elements, or too short. OSError: the
    file cannot be read.
    """
    element_type = parse(dtype)
    left = size_of(path, offset)
    if shape is None:
        if left * 8 % element_type.bits:
            raise ArgumentError(f"{path}: {left} bytes from byte {offset} on are no whole number "
                                f"of {element_type.name} ({element_type.bits} bits each)")
        shape = left * 8 // element_type.bits
    shape = shape_of(shape)
    wanted = bytes_of(form_of(element_type, shape))
    if wanted > left:
        raise ArgumentError(f"{path}: {wanted} bytes are wanted from byte {offset} on, and the "
                            f"file has {left}")
    made = empty(shape, dtype, **options)
    read_into(path, offset, made.data_ptr, made.nbytes)
    return made
