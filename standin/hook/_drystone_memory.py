# SPDX-License-Identifier: Apache-2.0
"""CPU tensors over device memory, which is memory of this process."""
import ctypes

import torch

VALUES_MAX = 65536  # maximal elements of a tensor that gets real values
WHOLE_MAX = 1 << 24  # the same, of whole numbers and booleans without --values
UNKNOWN_MAX = 1 << 20  # the same, of whole numbers made of unknown ones, as of packed weights
BOOL_MAX = 1 << 28  # the same, of booleans: flags of each number of a model
COPY_MAX = 1 << 30  # maximal bytes of a copy of whole numbers that is kept
KEPT_MAX = 4 << 30  # maximal bytes that all devices keep; larger tensors are zeros then
WHOLE = frozenset((torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
                   *(getattr(torch, name) for name in ("uint16", "uint32", "uint64")
                     if hasattr(torch, name))))


def declare(name, result, *arguments):
    function = getattr(ctypes.CDLL(None), name)
    function.argtypes, function.restype = arguments, result
    return function


_wrote = declare("drystone_standin_wrote", None, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int)
_forget = declare("drystone_standin_forget", None, ctypes.c_uint64, ctypes.c_uint64)
_knows = declare("drystone_standin_knows", ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64)
_count_kept = declare("drystone_standin_dirty_bytes", ctypes.c_uint64)


def get_span(tensor):
    """Return the bytes from the first element to the end of the last."""
    if tensor.is_contiguous():
        return tensor.numel() * tensor.element_size()
    reach = sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride()))
    return (reach + 1) * tensor.element_size()


def has_room(tensor):
    """Return whether the host can take the numbers of one more tensor."""
    return tensor.numel() <= VALUES_MAX or get_span(tensor) + _count_kept() <= KEPT_MAX


def lie_over(tensor):
    """Return a CPU tensor over the memory of a device tensor."""
    if tensor.numel() == 0:
        return torch.empty(tensor.shape, dtype=tensor.dtype, device="cpu")
    raw = (ctypes.c_char * get_span(tensor)).from_address(tensor.data_ptr())
    flat = torch.frombuffer(raw, dtype=torch.uint8)
    return torch.empty(0, dtype=tensor.dtype, device="cpu").set_(
        flat.untyped_storage(), 0, tensor.shape, tensor.stride())


def get_bytes(tensor):
    """Return address and size of a tensor's memory; None: it has none of its own (sparse)."""
    try:
        return (tensor.data_ptr(), get_span(tensor)) if tensor.numel() else None
    except RuntimeError:
        return None


def is_known(tensor):
    """Return whether a device tensor has the numbers that a real device would have."""
    found = get_bytes(tensor)
    return not found or bool(_knows(*found))


def note_written(tensor, known=True):
    """Report a write: the stand-in only zeroes memory that it knows to be written.

    Gaps between the rows of a view count as written, too.
    """
    found = get_bytes(tensor)
    if found:
        _wrote(*found, known)


def forget(tensor):
    """Report that a kernel would have written numbers that nobody knows."""
    found = get_bytes(tensor)
    if found:
        _forget(*found)


def write(tensor, numbers, known=True):
    note_written(tensor, known)
    if tensor.shape == numbers.shape and tensor.dtype == numbers.dtype and \
            tensor.is_contiguous() and numbers.is_contiguous():
        ctypes.memmove(tensor.data_ptr(), numbers.data_ptr(), get_span(tensor))
    else:
        lie_over(tensor).copy_(numbers)
