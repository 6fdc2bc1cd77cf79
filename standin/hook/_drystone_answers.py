# SPDX-License-Identifier: Apache-2.0
"""Answers to what a program asks of the device and only kernels would know.

    splits          how many ranks a part of a communicator has
    objects         the sizes of objects that ranks exchange
    generation      whether a text is at its end
    distributions   whether parameters are in their range

Nothing of a program's memory changes by them, but for what depends on the answer.
"""
import ctypes
import functools
import sys
import threading


def answer(is_alone):
    """A rank alone exchanges no objects: _drystone_lone_rank.py has replaced that."""
    tell_splits()
    if not is_alone:
        count_objects()


def trust_distributions():
    """They compare their parameters on the device, where no kernel says that they fit."""
    distributions = sys.modules.get("torch.distributions")
    if distributions:
        distributions.Distribution.set_default_validate_args(False)


def tell_splits():
    """NCCL splits a communicator by what all processes say; only the program knows how."""
    try:
        from torch.distributed import ProcessGroup
        split, tell = ProcessGroup.split_group, ctypes.CDLL(None).drystone_standin_split
    except (ImportError, AttributeError):
        return  # built without, or one that never splits

    def split_group(self, ranks, *more, **named):
        tell(len(ranks))
        return split(self, ranks, *more, **named)

    ProcessGroup.split_group = split_group


def count_objects():
    """Objects that ranks exchange have sizes, which kernels sum on a device, or compare."""
    try:
        import torch.distributed as dist
        from torch.overrides import TorchFunctionMode
        core = dist.distributed_c10d
    except (ImportError, AttributeError):
        return  # built without

    def on_host(value):
        return value.cpu() if getattr(value, "is_cuda", False) else value

    class Counting(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            name, kwargs = getattr(function, "__name__", ""), kwargs or {}
            if name == "cat":
                joined = function([on_host(t) for t in args[0]], *args[1:], **kwargs)
                return joined.to(args[0][0].device)
            if name in ("sum", "max", "add", "add_", "__iadd__", "gt", "__gt__"):
                args = [on_host(value) for value in args]
            return function(*args, **kwargs)

    def wrap(exchange):
        @functools.wraps(exchange)
        def counted(*args, **named):
            with Counting():
                return exchange(*args, **named)
        return counted

    for name in ("all_gather_object", "broadcast_object_list", "gather_object",
                 "recv_object_list", "scatter_object_list", "send_object_list"):
        for module in (dist, core):
            if hasattr(module, name):
                setattr(module, name, wrap(getattr(module, name)))


def end_generation(generation):
    """A sequence is at its end when a value says so, and no value says it: all get longest.

    The length a text may have is the host's; that it was reached comes back from the device.
    """
    try:
        mixin, criteria = generation.GenerationMixin, generation.StoppingCriteriaList
        ask, unfinished = criteria.__call__, mixin._has_unfinished_sequences
    except AttributeError:
        return  # a release that asks otherwise
    known = threading.local()

    def __call__(self, tokens, *more, **named):
        lengths = [one.max_length for one in self if getattr(one, "max_length", None)]
        known.is_done = tokens.shape[-1] >= min(lengths) if lengths and tokens.is_cuda else None
        return ask(self, tokens, *more, **named)

    def _has_unfinished_sequences(self, this_peer_finished, *more, **named):
        is_done, known.is_done = getattr(known, "is_done", None), None
        finished = this_peer_finished if is_done is None else is_done
        return unfinished(self, finished, *more, **named)

    criteria.__call__, mixin._has_unfinished_sequences = __call__, _has_unfinished_sequences
