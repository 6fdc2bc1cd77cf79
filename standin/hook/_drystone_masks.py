# SPDX-License-Identifier: Apache-2.0
"""Runs inside a dry-run program: gives masks, counts and indices their real values.

No kernel runs, so all results of kernels read as zeros: a mask selects nothing, and memory that
depends on the selection is missed. So operations that make masks and counts are repeated
on the host, in the device's memory, which is host memory. PyTorch's own
function runs first, so its allocations are unchanged.

This covers whole numbers up to WHOLE_MAX elements, or UNKNOWN_MAX if they are made of unknown
ones, booleans, and comparisons of other numbers that came from the host. Other numbers that are
all zeros count as unknown, and their comparison stays false. A count that is divided, rounded or added up in a float stays known. Unknown numbers
are finite: a comparison with infinity or with themselves is that of a zero, and known, so that no
flag of overflow is set. The stand-in keeps which bytes are known (M4): a result is known if all
its inputs are. Where unknown ones decide a size or a branch, Guesses notes the line.

Operations are intercepted at BackendSelect, the last dispatch key before the device's. Each
intercepted operation costs 8 us more.
"""
import ctypes
import math
import operator
import threading

from _drystone_guesses import Guesses
from _drystone_memory import (BOOL_MAX, COPY_MAX, UNKNOWN_MAX, VALUES_MAX, WHOLE, WHOLE_MAX,
                              forget, get_bytes, has_room, is_known, lie_over, note_written, write)
from _drystone_numbers import is_unknown, watch

COMPARED = [f"{name}.{kind}" for name in ("eq", "ne", "lt", "le", "gt", "ge")
            for kind in ("Scalar", "Tensor")]
MADE = ["bitwise_and.Tensor", "bitwise_or.Tensor", "bitwise_xor.Tensor", "bitwise_not",
        "logical_and", "logical_or", "logical_xor", "logical_not", "all", "all.dim", "any",
        "any.dim", "sum", "sum.dim_IntList", "max", "min", "cumsum", "gather",
        "masked_fill.Scalar", "where.self", "index.Tensor", "cat", "stack", "flip", "roll",
        "add.Tensor", "sub.Tensor", "mul.Tensor", "div.Tensor_mode", "floor_divide",
        "remainder.Scalar", "remainder.Tensor", "neg", "abs", "clamp", "minimum", "maximum",
        "max.dim", "min.dim", "amax", "amin", "argmax", "argmin", "aminmax", "prod",
        "count_nonzero.dim_IntList", "sort.stable", "index_select", "isin.Tensor_Tensor",
        "searchsorted.Tensor", "bucketize.Tensor", "bincount", "repeat_interleave.Tensor", "tril",
        "triu", "repeat", "scatter.src", "scatter.value", "scatter_add", "index_add",
        "bitwise_left_shift.Tensor", "bitwise_right_shift.Tensor", "topk"]
CHANGED = ["fill_.Scalar", "fill_.Tensor", "masked_fill_.Scalar", "masked_fill_.Tensor",
           "_index_put_impl_", "scatter_.src", "scatter_.value", "scatter_add_",
           "scatter_reduce_.two", "index_fill_.int_Scalar", "index_add_", "index_copy_",
           "add_.Tensor", "sub_.Tensor", "mul_.Tensor", "div_.Tensor_mode", "floor_divide_.Tensor",
           "remainder_.Tensor", "remainder_.Scalar", "clamp_", "bitwise_and_.Tensor",
           "bitwise_or_.Tensor", "bitwise_xor_.Tensor", "bitwise_not_", "logical_and_",
           "logical_or_", "logical_xor_", "logical_not_"]
DRAWN = ["random_", "random_.from", "random_.to", "bernoulli_.float"]
COUNTED = ["div.Tensor", "ceil", "floor", "round", "trunc"]
FINITE = ["isnan", "isinf", "isposinf", "isneginf"]
DISTINCT = ["_unique2", "unique_consecutive", "unique_dim"]


def is_of_host(value):
    """Tell whether an operation's first argument, and so all, are on the host."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return not isinstance(value, (list, tuple)) and not value.is_cuda and value.dim() > 0


def is_unmade(value):
    """Tell whether an operation's first argument is of numbers that are not made here."""
    while isinstance(value, (list, tuple)) and value:
        value = value[0]
    return not isinstance(value, (list, tuple)) and (
        value.is_floating_point() or not value.is_cuda and value.dim() > 0)


def has_many(value):
    return value.numel() > 1


NUMBERS_MAX = 1000  # of which a tensor is kept


class Masks:
    def __init__(self, torch, standin, has_values):
        """Intercept operations; with --values only those that ask for a number."""
        self.torch, self.answer = torch, standin.drystone_standin_answer
        self.answer.argtypes, self.answer.restype = [ctypes.c_int64], None
        self.guesses, self.local = Guesses(torch), threading.local()
        watch(torch, self.guesses)
        self.library = torch.library.Library("aten", "IMPL")
        self.copy, self.numbers = torch.ops.aten.copy_.default, {}
        self.below = torch._C._dispatch_keyset_full_after(torch._C.DispatchKey.BackendSelect)
        self.host = torch._C.DispatchKeySet(torch._C.DispatchKey.CPU)
        none = [(["nonzero"], self.nonzero, None), (DISTINCT, self.distinct, None),
                (["_local_scalar_dense"], self.item, None)]
        ways = [(COMPARED, self.compare, is_of_host), (MADE, self.make, is_unmade),
                (["copy_"], self.change, None), (CHANGED, self.change, is_of_host),
                (COUNTED, self.count, has_many), (DRAWN, self.draw, is_unmade),
                (["arange.start_out"], self.range, None),
                (["randperm.generator_out"], self.permute, None), (FINITE, self.trust, None)]
        for names, way, is_nothing in none + ways * (not has_values):
            for name in names:
                self.watch(name, way, is_nothing)

    def watch(self, name, way, is_nothing):
        """Have an operation go another way, unless is_nothing(its first argument)."""
        packet, _, overload = name.partition(".")
        operation = getattr(getattr(self.torch.ops.aten, packet, None), overload or "default", None)
        if operation is None:
            return  # a release without it
        places = [i for i, one in enumerate(operation._schema.arguments)
                  if str(one.type) == "Tensor"]
        below, redispatch, tensor = self.below, operation.redispatch, self.torch.Tensor

        def run(keyset, *args, **named):
            for i in places:
                if i < len(args) and not isinstance(args[i], tensor):
                    args = self.wrap(args, places)
                    break
            if is_nothing and is_nothing(args[0]):
                return redispatch(keyset & below, *args, **named)
            return way(operation, keyset & below, args, named)

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
                wrapped[i] = self.make_number(args[i], None if is_wider else kind)
        return wrapped

    def make_number(self, value, kind):
        """Make a tensor of a number, which nobody changes: one serves all."""
        key = repr(value), kind
        made = self.numbers.get(key)
        if made is None:
            made = self.torch.tensor(value, dtype=kind, device="cpu")
            if type(made) is self.torch.Tensor and len(self.numbers) < NUMBERS_MAX:
                self.numbers[key] = made
        return made

    def on_host(self, value, any_kind=False):
        """Return a CPU tensor over the same memory; LookupError: not small, or unknown."""
        torch = self.torch
        if isinstance(value, (list, tuple)):
            return [self.on_host(one, any_kind) for one in value]
        if not isinstance(value, torch.Tensor) or not value.is_cuda:
            return value
        is_whole = value.dtype in WHOLE
        most = BOOL_MAX if value.dtype is torch.bool and not any_kind else \
            WHOLE_MAX if is_whole else VALUES_MAX
        if value.numel() > most or not (any_kind or is_whole):
            raise LookupError
        same = lie_over(value)
        is_known_count = self.is_count(value) and is_known(value)
        if value.numel() and not is_whole and not same.any() and not is_known_count:
            raise LookupError  # zeros that a kernel would have filled
        return same

    def knows(self, value):
        """Return whether all tensors in the arguments are known; those of the host are."""
        if isinstance(value, (list, tuple)):
            return all(self.knows(one) for one in value)
        return not isinstance(value, self.torch.Tensor) or not value.is_cuda or is_known(value)

    def is_small(self, value):
        most = BOOL_MAX if value.dtype is self.torch.bool else WHOLE_MAX
        return value.is_cuda and value.dtype in WHOLE and value.numel() <= most and has_room(value)

    def require_few(self, outputs, known):
        """Raise LookupError if many numbers would be made of unknown ones; flags are made."""
        is_many = any(one.numel() > UNKNOWN_MAX and one.dtype is not self.torch.bool
                      for one in outputs)
        if is_many and not known:
            raise LookupError

    def is_captured(self):
        return self.torch.cuda.is_current_stream_capturing()

    def ask(self, what, value):
        """Note that a size or a number is taken from tensors that may be unknown."""
        if not getattr(self.local, "is_answered", False) and not self.knows(value):
            self.guesses.add(what)

    # --- handlers -----------------------------------------------------------------------------

    def compare(self, operation, keys, args, named, any_kind=True):
        result = operation.redispatch(keys, *args, **named)
        outputs = result if isinstance(result, (list, tuple)) else [result]
        try:
            if all(self.is_small(one) for one in outputs) and not self.is_captured():
                known = self.knows(args)
                self.require_few(outputs, known)
                done = operation.redispatch(self.host, *self.on_host(args, any_kind), **named)
                for output, numbers in zip(outputs, done if result is not outputs[0] else [done]):
                    write(output, numbers, known)
        except (LookupError, RuntimeError):
            if any_kind:
                self.assume_finite(operation, args[0], args[1], result)
        return result

    def count(self, operation, keys, args, named):
        """Divide or round a known single number. Weights may count as known, so no more of them."""
        result = operation.redispatch(keys, *args, **named)
        if self.is_count(result) and self.knows(args) and not self.is_captured():
            try:
                write(result, operation(*self.on_host(args, any_kind=True), **named))
            except (LookupError, RuntimeError):
                pass
        return result

    @staticmethod
    def is_count(value):
        return value.is_cuda and value.numel() == 1

    def assume_finite(self, operation, numbers, other, result):
        """Compare unknown numbers with infinity, or with themselves, as finite ones."""
        if isinstance(other, self.torch.Tensor) and other.is_cuda:
            is_same = other.shape == numbers.shape and get_bytes(other) == get_bytes(numbers)
            other = 0 if is_same else None
        elif isinstance(other, (float, self.torch.Tensor)):
            other = float(other) if math.isinf(other) else None
        else:
            other = None
        if other is not None:
            answer = getattr(operator, operation._schema.name[len("aten::"):])(0, other)
            write(result, self.torch.tensor(answer, device="cpu"))

    def make(self, operation, keys, args, named):
        return self.compare(operation, keys, args, named, any_kind=False)

    def change(self, operation, keys, args, named):
        target, source = args[0], args[1] if len(args) > 1 else None
        is_copy = operation is self.copy
        if is_copy and target.is_meta:
            return operation.redispatch(keys, *args, **named)  # no numbers are taken
        if target.is_cuda and target.is_floating_point() and target.numel() > 1 and not (
                is_copy and (source.numel() == 1 or not source.is_floating_point())):
            return self.change_float(operation, keys, args, named, source if is_copy else None)
        if is_copy and not target.is_cuda and source.dtype in WHOLE:
            self.ask("copy", source)
        elif is_copy and not target.is_cuda and is_unknown(source):
            target.drystone_is_guess = True
        is_new = is_copy or operation._schema.name == "aten::fill_"
        known = target.is_cuda and self.knows(args[1:] if is_new else args)
        result = operation.redispatch(keys, *args, **named)
        if not target.is_cuda or target.numel() == 0 or self.is_captured():
            return result
        if is_copy and not source.is_cuda:
            found = target.dtype in WHOLE and get_bytes(target)
            if found and found[1] <= COPY_MAX and has_room(target):
                write(target, source)
        elif not (is_copy and self.is_plain(target, source)):
            is_whole = self.is_small(source if is_copy and target.numel() <= VALUES_MAX else target)
            is_count = known and self.is_count(source if is_copy else target)
            self.repeat(operation, args, named, is_whole or is_count, known)
        return result

    def change_float(self, operation, keys, args, named, source):
        """Change a target of unknown numbers, as most are: there is nothing to make, or to ask."""
        target = args[0]
        result = operation.redispatch(keys, *args, **named)
        is_moved = source is not None and (not source.is_cuda or self.is_plain(target, source))
        if not is_moved and not self.is_captured():
            forget(target)
        return result

    @staticmethod
    def is_plain(target, source):
        """Return whether a copy between devices moves bytes, which the stand-in does."""
        return target.dtype not in WHOLE and target.dtype == source.dtype and \
            target.is_contiguous() and source.is_contiguous()

    def repeat(self, operation, args, named, is_whole, known):
        """Change a target on the host; one that is not of whole numbers is unknown then."""
        target = args[0]
        try:
            if not is_whole:
                raise LookupError
            self.require_few([target], known)
            host = [lie_over(target), *self.on_host(args[1:], any_kind=target.numel() == 1)]
            note_written(target, known)
            operation.redispatch(self.host, *host, **named)
        except (LookupError, RuntimeError):
            forget(target)

    def draw(self, operation, keys, args, named):
        """A generator's numbers are unknown, whatever the tensor held."""
        result = operation.redispatch(keys, *args, **named)
        if args[0].is_cuda and args[0].dtype in WHOLE:
            forget(args[0])
        return result

    def trust(self, operation, keys, args, named):
        """Numbers of kernels count as finite: the answer stays false, and is known."""
        result = operation.redispatch(keys, *args, **named)
        if result.is_cuda:
            note_written(result)
        return result

    def permute(self, operation, keys, args, named):
        result = operation.redispatch(keys, *args, **named)
        if self.is_small(result) and not self.is_captured():
            own = self.torch.Generator("cpu")  # the program's draws go on as ever
            write(result, self.torch.randperm(args[0], generator=own, dtype=result.dtype,
                                              device="cpu"), known=False)
        return result

    def range(self, operation, keys, args, named):
        result = operation.redispatch(keys, *args, **named)
        if self.is_small(result) and not self.is_captured():
            write(result, self.torch.arange(*args, dtype=result.dtype, device="cpu"))
        return result

    def item(self, operation, keys, args, named):
        if args[0].is_cuda and args[0].dtype in WHOLE:
            asserted = None if self.knows(args) else self.guesses.find_asserted()
            if asserted is not None:
                return asserted
            self.ask("item", args)
        return operation.redispatch(keys, *args, **named)

    def nonzero(self, operation, keys, args, named):
        if not args[0].is_cuda or self.is_captured():
            return operation.redispatch(keys, *args, **named)
        self.ask("nonzero", args)
        try:
            found = self.torch.nonzero(self.on_host(args[0], any_kind=True))
        except LookupError:
            return operation.redispatch(keys, *args, **named)
        known = self.knows(args)
        result = self.tell(found.shape[0], operation, keys, args, named)
        write(result, found, known)
        return result

    def distinct(self, operation, keys, args, named):
        first = args[0]
        if not first.is_cuda or self.is_captured():
            return operation.redispatch(keys, *args, **named)
        self.ask("unique", args)
        try:
            found = operation(*self.on_host(args), **named)
        except LookupError:
            return operation.redispatch(keys, *args, **named)
        dim = args[1] if operation is self.torch.ops.aten.unique_dim.default else \
            named.get("dim", args[3] if len(args) > 3 else None)
        has_dim = isinstance(dim, int) and not isinstance(dim, bool)
        count = found[0].shape[dim] if has_dim else found[0].numel()
        if first.dtype is self.torch.bool and not has_dim:
            count = int(lie_over(first).sum())  # as the kernel for booleans counts
        known = self.knows(args)
        result = self.tell(count, operation, keys, args, named)
        for output, numbers in zip(result, found):
            if output is not None and output.shape == numbers.shape:
                write(output, numbers, known)
        return result

    def tell(self, count, operation, keys, args, named):
        """Run an operation that reads the size of its result from the device."""
        self.local.is_answered = True
        self.answer(count)
        try:
            return operation.redispatch(keys, *args, **named)
        finally:
            self.answer(-1)
            self.local.is_answered = False
