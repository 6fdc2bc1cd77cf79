# SPDX-License-Identifier: Apache-2.0
"""Runs inside a dry-run program: gives small masks, counts and indices their real values.

No kernel runs, so all results of kernels read as zeros: a mask selects nothing, and memory that
depends on the selection is missed. So operations that make masks and counts are repeated
on the host, in the device's memory, which is host memory. PyTorch's own
function runs first, so its allocations are unchanged.

This covers integers and booleans up to VALUES_MAX elements, and comparisons of other numbers that
came from the host. Numbers that are all zeros count as unknown, and their comparison stays false.
Operations are intercepted at BackendSelect, the last dispatch key before the device's. Each
intercepted operation costs 8 us more.
"""
import ctypes

from _drystone_memory import VALUES_MAX, WHOLE, lie_over, note_written, write

COMPARED = [f"{name}.{kind}" for name in ("eq", "ne", "lt", "le", "gt", "ge")
            for kind in ("Scalar", "Tensor")]
MADE = ["bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor", "bitwise_not",
        "logical_and", "logical_or", "logical_xor", "logical_not", "all", "all.dim", "any",
        "any.dim", "sum", "sum.dim_IntList", "max", "min", "cumsum", "gather", "masked_fill.Scalar",
        "where.self", "index.Tensor"]
CHANGED = ["fill_.Scalar", "copy_", "masked_fill_.Scalar"]


class Masks:
    def __init__(self, torch, standin):
        self.torch, self.answer = torch, standin.drystone_standin_answer
        self.answer.argtypes, self.answer.restype = [ctypes.c_int64], None
        self.library = torch.library.Library("aten", "IMPL")
        self.below = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
        for names, way in ((COMPARED, self.compare), (MADE, self.make), (CHANGED, self.change),
                           (["arange.start_out"], self.range), (["nonzero"], self.nonzero)):
            for name in names:
                self.watch(name, way)

    def watch(self, name, way):
        packet, _, overload = name.partition(".")
        operation = getattr(getattr(self.torch.ops.aten, packet), overload or "default")
        places = [i for i, one in enumerate(operation._schema.arguments)
                  if str(one.type) == "Tensor"]

        def run(keyset, *args, **named):
            for i in places:
                if i < len(args) and not isinstance(args[i], self.torch.Tensor):
                    args = self.wrap(args, places)
                    break
            return way(operation, keyset & self.below, args, named)

        self.library.impl(name, run, "BackendSelect", with_keyset=True)

    def wrap(self, args, places):
        """Convert numbers in a tensor's place back to tensors, which Python has unwrapped.

        A number gets the type of the other tensor, unless that type is too narrow for it.
        """
        torch, wrapped = self.torch, list(args)
        kinds = [args[i].dtype for i in places if isinstance(args[i], torch.Tensor)]
        for i in places:
            if i < len(args) and not isinstance(args[i], torch.Tensor):
                kind = kinds[-1] if kinds else None
                is_wider = kind is not None and (
                    (isinstance(args[i], float) and not kind.is_floating_point) or
                    (kind is torch.bool and not isinstance(args[i], bool)) or
                    (isinstance(args[i], complex) and not kind.is_complex))
                wrapped[i] = torch.tensor(args[i], dtype=None if is_wider else kind)
        return wrapped

    def on_host(self, value, any_kind=False):
        """Return a CPU tensor over the same memory; LookupError: not small, or unknown."""
        torch = self.torch
        if isinstance(value, (list, tuple)):
            return [self.on_host(one, any_kind) for one in value]
        if not isinstance(value, torch.Tensor) or not value.is_cuda:
            return value
        if value.numel() > VALUES_MAX or not (any_kind or value.dtype in WHOLE):
            raise LookupError
        same = lie_over(value)
        if value.numel() and value.dtype not in WHOLE and not same.any():
            raise LookupError  # zeros that a kernel would have filled
        return same

    def is_small(self, value):
        return value.is_cuda and value.dtype in WHOLE and value.numel() <= VALUES_MAX

    def is_captured(self):
        return self.torch.cuda.is_current_stream_capturing()

    # --- handlers -----------------------------------------------------------------------------

    def compare(self, operation, keys, args, named, any_kind=True):
        result = operation.redispatch(keys, *args, **named)
        try:
            if result.is_cuda and result.dtype in WHOLE and not self.is_captured():
                write(result, operation(*self.on_host(args, any_kind), **named))
        except (LookupError, RuntimeError):
            pass
        return result

    def make(self, operation, keys, args, named):
        first = args[0]
        if not first.is_cuda or first.dtype not in WHOLE:
            return operation.redispatch(keys, *args, **named)
        return self.compare(operation, keys, args, named, any_kind=False)

    def change(self, operation, keys, args, named):
        result = operation.redispatch(keys, *args, **named)
        target = args[0]
        others_host = any(isinstance(one, self.torch.Tensor) and not one.is_cuda for one in args)
        if self.is_small(target) and not others_host and target.numel() and not self.is_captured():
            try:
                args = self.on_host(args)
                note_written(target)
                operation(*args, **named)
            except (LookupError, RuntimeError):
                pass
        return result

    def range(self, operation, keys, args, named):
        result = operation.redispatch(keys, *args, **named)
        if self.is_small(result) and not self.is_captured():
            write(result, self.torch.arange(*args, dtype=result.dtype))
        return result

    def nonzero(self, operation, keys, args, named):
        try:
            if not args[0].is_cuda or self.is_captured():
                raise LookupError
            found = self.torch.nonzero(self.on_host(args[0], any_kind=True))
        except LookupError:
            return operation.redispatch(keys, *args, **named)
        self.answer(found.shape[0])  # PyTorch reads the count from the device
        result = operation.redispatch(keys, *args, **named)
        self.answer(-1)
        write(result, found)
        return result
