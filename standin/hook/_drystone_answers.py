# SPDX-License-Identifier: Apache-2.0
"""Answers to questions of a program that only kernels could answer.

    splits          the number of ranks of a split communicator
    objects         the sizes of objects that ranks exchange
    generation      whether a generated text is complete
    distributions   whether parameters are in their range
    norms           whether DeepSpeed's norm of the gradients is a valid one
    autotuning      which of several kernels is the fastest

A program's memory only changes where it depends on the answer.
"""
import ctypes
import functools
import math
import sys
import threading


def answer(is_alone):
    """Install the answers. For a lone rank _drystone_lone_rank.py replaces the exchanges."""
    tell_splits()
    if not is_alone:
        count_objects()


def trust_distributions():
    """Skip the check of parameters: it compares on the device, where no kernel says yes."""
    distributions = sys.modules.get("torch.distributions")
    if distributions:
        distributions.Distribution.set_default_validate_args(False)


def trust_norms(module):
    """A norm is finite and not negative, which DeepSpeed asks before each step."""
    if hasattr(module, "is_invalid_grad_norm"):
        module.is_invalid_grad_norm = lambda norm: False


def tell_splits():
    """Tell NCCL's stand-in the size of a split, which real NCCL learns from all processes."""
    try:
        from torch.distributed import ProcessGroup, distributed_c10d
        tell = ctypes.CDLL(None).drystone_standin_split
    except (ImportError, AttributeError):
        return  # built without torch.distributed

    def wrap(owner, name, at):
        split = getattr(owner, name, None)
        if split is None:
            return  # a release without it

        @functools.wraps(split)
        def told(*arguments, **named):
            tell(len(arguments[at]))
            return split(*arguments, **named)

        setattr(owner, name, told)

    wrap(ProcessGroup, "split_group", 1)
    wrap(distributed_c10d, "_process_group_color", 0)  # asked before new_group() splits
    for name in ("ProcessGroupNCCL2", "ProcessGroupNCCLLazy"):  # these split themselves
        wrap(getattr(distributed_c10d, name, None), "split", 2)


def count_objects():
    """Sum and compare the sizes of exchanged objects on the host, as kernels do not run."""
    try:
        import torch.distributed as dist
        from torch.overrides import TorchFunctionMode
        core = dist.distributed_c10d
    except (ImportError, AttributeError):
        return  # built without torch.distributed

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
    """End generation at its maximal length, which the host knows.

    Real programs read back from the device that a sequence has ended. No kernel says so here.
    """
    try:
        mixin, criteria = generation.GenerationMixin, generation.StoppingCriteriaList
        ask, unfinished = criteria.__call__, mixin._has_unfinished_sequences
    except AttributeError:
        return  # a release with other functions
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


def end_search(selection):
    """Have Inductor time one kernel for an operation, a library's own before those of Triton.

    Kernels that do nothing take equally long, and each would be compiled. The first one's timing
    asks for the memory that all of them would.
    """
    cache = getattr(selection, "AlgorithmSelectorCache", None)
    if not isinstance(vars(cache).get("benchmark_choices") if cache else None, classmethod):
        return  # a release with other functions
    benchmark = cache.benchmark_choices

    @functools.wraps(benchmark)
    def benchmark_choices(choices, *more, **named):
        times = dict.fromkeys(choices, math.inf)
        own = selection.ExternKernelCaller
        for one in sorted(choices, key=lambda one: not isinstance(one, own)):
            times.update(benchmark([one], *more, **named))
            if math.isfinite(times[one]):
                break
        return times

    cache.benchmark_choices = staticmethod(benchmark_choices)


def end_tuning(autotuner):
    """Have Triton's autotuner time one configuration that the card can run."""
    try:
        kind = autotuner.Autotuner
        bench, prune = kind._bench, kind.prune_configs
    except AttributeError:
        return  # a release with other functions

    def prune_configs(self, *args, **named):
        self.drystone_found = False
        return prune(self, *args, **named)

    def _bench(self, *args, **named):
        if getattr(self, "drystone_found", False):
            return [math.inf] * 3
        times = bench(self, *args, **named)
        self.drystone_found = math.isfinite(times[0] if isinstance(times, (list, tuple)) else times)
        return times

    kind._bench, kind.prune_configs = _bench, prune_configs


def end_descent(tuner):
    """Have Inductor keep the configuration that its coordinate descent begins with.

    It is timed once, for the memory that each timing asks for.
    """
    kind = getattr(tuner, "CoordescTuner", None)
    if not hasattr(kind, "autotune"):
        return  # a release with other functions

    def autotune(self, func, baseline_config, *timing):
        func(baseline_config)
        return baseline_config

    kind.autotune = autotune
