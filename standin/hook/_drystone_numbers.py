# SPDX-License-Identifier: Apache-2.0
"""Runs inside a dry-run program: Python's numbers that were read from unknown device memory.

item() and tolist() give a Number, which is a float in every use; what is computed from a Number is
a Number, too. Guesses hears of comparisons. Unknown numbers count as finite, so that comparing one
with infinity or with itself is no guess. A Count is the same for sums of whole numbers.

float() drops the type, so that the statement around the call is judged. What NumPy, the math
module, and the product of a float and a Count give is lost sight of. Numbers that torch takes for
itself are plain: its scales and norms.
"""
import functools
import math
import os
import sys

from _drystone_guesses import is_harmless
from _drystone_memory import VALUES_MAX, WHOLE, is_known

COMPARED = "lt", "le", "gt", "ge", "eq", "ne"
COMPUTED = "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "radd", "rsub", "rmul", \
    "rtruediv", "rfloordiv", "rmod", "rpow", "neg", "pos", "abs"
CONVERTED = "int", "trunc", "floor", "ceil", "round"
_guesses = []  # those of this process


def compare(name, kind):
    answer = getattr(kind, name)

    def compared(self, other):
        result = answer(self, other)
        is_known = self is other or (isinstance(other, float) and not math.isfinite(other))
        if result is not NotImplemented and not is_known:
            _guesses[0].compare(sys._getframe(1))
        return result
    return compared


def compute(name, kind):
    function = getattr(kind, name)

    def computed(*numbers):
        result = function(*numbers)
        return OF_KIND[type(result)](result) if type(result) in OF_KIND else result
    return computed


def convert(name, kind):
    function = getattr(kind, name)

    def converted(self, *digits):
        result = function(self, *digits)
        if not digits or digits[0] is None:
            _guesses[0].compare(sys._getframe(1), "int")
            return result
        return OF_KIND[type(result)](result)
    return converted


def make(name, kind):
    """Make a class that is a plain number when it is stored or sent."""
    def ask(self):
        _guesses[0].compare(sys._getframe(1))
        return kind.__bool__(self)

    members = {"__slots__": (), "__hash__": kind.__hash__, "__bool__": ask, "__module__": __name__,
               "__reduce_ex__": lambda self, protocol: (kind, (kind.__pos__(self),)),
               "__deepcopy__": lambda self, memo: self, "__copy__": lambda self: self}
    ways = [(compare, COMPARED), (compute, COMPUTED)]
    if kind is float:
        ways.append((convert, CONVERTED))
    for way, names in ways:
        members.update((f"__{one}__", way(f"__{one}__", kind)) for one in names)
    return type(name, (kind,), members)


Number, Count = make("Number", float), make("Count", int)
OF_KIND = {float: Number, int: Count}


def is_unknown(tensor):
    """Return whether a tensor of floats has numbers that no kernel computed.

    Memory that was set once is known; kernels that change it later are not noticed.
    """
    if not tensor.is_floating_point():
        return False
    if not tensor.is_cuda:
        return getattr(tensor, "drystone_is_guess", False)
    try:
        return tensor._version > 0 or not is_known(tensor)
    except RuntimeError:  # inference mode counts no versions, a subclass has no memory
        return True


def replace(value):
    if isinstance(value, list):
        return [replace(one) for one in value]
    return OF_KIND[float](value) if type(value) is float else value


def watch(torch, guesses):
    """Have a tensor's numbers remember that they are unknown."""
    _guesses[:] = [guesses]
    own = os.path.join(os.path.dirname(torch.__file__), "")
    wide = getattr(torch, "uint64", None)

    def read(function, tensor, more):
        """Ask a tensor; a kernel in Python, as masks have, cannot return 64 bits without a sign."""
        if tensor.dtype is not wide or function.__name__ == "tolist":
            return function(tensor, *more)
        value = function(tensor.view(torch.int64), *more)
        return value if isinstance(value, bool) else value % (1 << 64)

    def wrap(name, then):
        function = getattr(torch.Tensor, name)

        @functools.wraps(function)
        def wrapped(self, *more):
            value, frame = read(function, self, more), sys._getframe(1)
            if frame.f_code.co_filename.startswith(own) or isinstance(value, torch.SymFloat):
                return value
            return then(self, value, frame)
        setattr(torch.Tensor, name, wrapped)

    def item(tensor, value, frame):
        if type(value) is int and tensor.is_cuda and tensor.dtype in WHOLE:
            is_summed = is_harmless(frame.f_code, frame.f_lasti) and not is_known(tensor)
            return Count(value) if is_summed else value
        return replace(value) if is_unknown(tensor) else value

    def tolist(tensor, value, frame):
        is_guess = tensor.numel() <= VALUES_MAX and is_unknown(tensor)
        return replace(value) if is_guess else value

    def tell(what):
        def told(tensor, value, frame):
            if is_unknown(tensor):
                guesses.compare(frame, what)
            return value
        return told

    for name, then in (("item", item), ("tolist", tolist), ("__float__", tell("float")),
                       ("__int__", tell("int")), ("__bool__", tell("compare"))):
        wrap(name, then)
    allow = getattr(torch.serialization, "add_safe_globals", None)
    if allow:
        allow([float, int])  # as which the numbers of a checkpoint are stored
