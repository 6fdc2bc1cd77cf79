# SPDX-License-Identifier: Apache-2.0
"""A tensor in memory of chosen pages, for NumPy, PyTorch, JAX and CuPy without a copy."""
from __future__ import annotations

import ctypes
import math
from typing import Any, Callable

from .._errors import ArgumentError
from ._dtype import ElementType, parse
from ._form import bytes_of, form_of, shape_of, strides_of
from ._handle import Handle
from ._layout import CPU, CUDA_HOST, Legacy, Versioned
from ._proof import Pages, Proof, prove

_ALIGNMENT = 256


class Tensor:
    """Memory and its form. The memory goes back with the last view of it, in any library.

    A view is what another library made of the tensor, what view() returns, or the tensor
    itself. The thread in which the last view ends gives the memory back.
    """

    def __init__(self, handle: Handle, element_type: ElementType, shape: tuple[int, ...],
                 offset: int = 0, *, again: Callable[..., Tensor]) -> None:
        self._handle = handle
        self._type = element_type
        self._form = form_of(element_type, shape)
        self._again = again  # makes an empty tensor of the same kind, for copies
        self._offset = offset
        self.shape = shape
        self.nbytes = bytes_of(self._form)

    @property
    def dtype(self) -> str:
        """The name of the type of the elements, as PyTorch has it: "float32"."""
        return self._type.name

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    @property
    def strides(self) -> tuple[int, ...]:
        """The strides in elements, row by row."""
        return strides_of(self.shape)

    @property
    def data_ptr(self) -> int:
        """The address of the first element; 0 if there are no elements."""
        return (self._handle.info.address or 0) + self._offset if self.nbytes else 0

    @property
    def is_pinned(self) -> bool:
        """True if the memory is page-locked."""
        return self._handle.cache is not None

    @property
    def pages(self) -> Pages | None:
        """The pages as they were had; None: the memory is pinned, or there are no elements."""
        return Pages(self._handle.info.pages) if self._handle.info.pages else None

    @property
    def refusal(self) -> str | None:
        """The reason why others were taken for a pool's pages; None: they were not."""
        return self._handle.refusal

    def proof(self) -> Proof:
        """Ask the kernel where every page is now, and which are huge; see Proof.

        Error if the memory is pinned or in the child of a fork. Cost: some 100 ns a page.
        """
        return prove(self._handle.info.pages)

    def record_stream(self, stream: int) -> None:
        """Note that `stream`, a CUstream as a number, uses the memory; pinned memory alone.

        The memory is used again only when the work is over that the stream was given before the
        last view went. PyTorch, CuPy and Numba do not tell us of copies that they begin.
        """
        cache = self._handle.cache
        if cache is None:
            raise ArgumentError("the memory is not pinned: copies from it end before they return")
        if self._handle.info.address:
            cache.record_stream(self._handle.info.address, int(stream))

    def view(self, shape: Any, dtype: Any = None, offset: int = 0) -> Tensor:
        """Return a tensor that shows a part of this one's memory.

        shape   of the part
        dtype   of the part; None: as here
        offset  in bytes from the first element here, a multiple of 256
        """
        element_type = self._type if dtype is None else parse(dtype)
        part = Tensor(self._handle, element_type, shape_of(shape), self._offset + offset,
                      again=self._again)
        if offset < 0 or offset % _ALIGNMENT or offset + part.nbytes > self.nbytes:
            raise ArgumentError(f"bytes {offset} to {offset + part.nbytes} of {self.nbytes}: a "
                                f"part begins at a multiple of {_ALIGNMENT} and ends within")
        return part

    def copy(self) -> Tensor:
        """Return a copy in new memory of the same kind."""
        made = self._again(self.shape, self._type)
        if self.nbytes:
            ctypes.memmove(made.data_ptr, self.data_ptr, self.nbytes)
        return made

    # --- other libraries -----------------------------------------------------------------------

    def numpy(self) -> Any:
        """Return a NumPy array over the same memory."""
        import numpy
        dtype = self._type.numpy()
        if self._type.typestr:
            return numpy.asarray(self)
        flat = numpy.asarray(self.view(self.nbytes, "uint8"))
        return flat.view(dtype).reshape(self.shape)

    def torch(self) -> Any:
        """Return a PyTorch tensor over the same memory."""
        import torch
        return torch.from_dlpack(self)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        """NumPy's protocol. The array keeps this object, and the object the memory."""
        if not self._type.typestr:
            raise AttributeError(f"NumPy itself has no {self.dtype}")
        # NumPy before 2.0 takes an address of 0 for none, also where there are no elements.
        address = self.data_ptr or ctypes.addressof(self._form)
        return {"version": 3, "shape": self.shape, "typestr": self._type.typestr,
                "data": (address, False), "strides": None}

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(f"{self.dtype} becomes {dtype} by a copy alone")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, *, stream: Any = None, max_version: tuple[int, int] | None = None,
                   dl_device: tuple[int, int] | None = None, copy: bool | None = None) -> Any:
        """Return a capsule, as the array API has it. BufferError: it cannot be so.

        stream       None: nothing of the host waits for a stream
        max_version  (1, 0) and later: a capsule that says its version; else the older form
        dl_device    (1, 0), or (3, 0) for page-locked memory that is to be named so
        copy         True: of a copy of the memory
        """
        if stream is not None:
            raise BufferError(f"stream {stream!r}: memory of the host belongs to no stream")
        device = (CPU, 0) if dl_device is None else (int(dl_device[0]), int(dl_device[1]))
        if device != (CPU, 0) and not (device == (CUDA_HOST, 0) and self.is_pinned):
            raise BufferError(f"device {device}: this memory is on device (1, 0), the host"
                              + (", and (3, 0)" if self.is_pinned else ""))
        source = self.copy() if copy else self
        kind = Versioned if max_version is not None and max_version[0] >= 1 else Legacy
        try:
            return source._handle.export(kind, source._form, source._offset, bool(copy), device)
        except ArgumentError as why:
            raise BufferError(str(why)) from None

    def __dlpack_device__(self) -> tuple[int, int]:
        """Return (1, 0), the host. PyTorch finds by itself that memory is page-locked."""
        return (CPU, 0)

    def __reduce__(self) -> Any:
        raise TypeError("a tensor of pages is not pickled: pickle tensor.numpy(), which is a copy, "
                        "or let a child have the memory by fork()")

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        return self.copy()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a tensor without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        where = "pinned" if self.is_pinned else str(self.pages or "no memory")
        return f"drystone.Tensor(shape={self.shape}, dtype={self.dtype}, {where})"

