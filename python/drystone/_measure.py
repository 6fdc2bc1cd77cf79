# SPDX-License-Identifier: Apache-2.0
"""A list of modules becomes a chain: what each takes in time and leaves in memory.

Each stage runs alone, on the real output of the one before: forward, then backward with a
gradient of ones. So a model is measured that as a whole does not fit. What autograd saves is
seen by saved_tensors_hooks; what is alive beside it, by counting (LiveBytes).
"""
import contextlib
import statistics
import time

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_map_only
from torch.utils.checkpoint import checkpoint

from ._errors import PlanError
from ._live import LiveBytes, bytes_of, key_of, meter_for, tensors_of
from ._policy import policy_contexts, policy_of
from ._roofline import BYTES_PER_SECOND, FLOPS_PER_SECOND, Roofline
from ._stage import call, cut, cut_loose, run_backward, untouched

FORMAT = "ckpt-chain/1"


class _Runner:
    """A stage, and how it is run: as it is, or with its tensors replaced by fake ones."""

    def __init__(self, stage, fake=None):
        self.stage = stage
        self.is_fake = fake is not None
        self.tensors = {}
        if isinstance(stage, torch.nn.Module):
            self.tensors = {**dict(stage.named_parameters()), **dict(stage.named_buffers())}
        if self.is_fake:
            self.tensors = {name: fake.from_tensor(t) for name, t in self.tensors.items()}

    def __call__(self, *args):
        if self.is_fake and self.tensors:
            return torch.func.functional_call(self.stage, self.tensors, args)
        return self.stage(*args)

    def clear_gradients(self):
        for tensor in self.tensors.values():
            tensor.grad = None

    def gradient_bytes(self):
        return bytes_of([t.grad for t in self.tensors.values() if t.grad is not None])


# --- bytes -----------------------------------------------------------------------------


class _Seen:
    """What saved_tensors_hooks showed: bytes by storage."""

    def __init__(self):
        self.storages = {}

    def pack(self, tensor):
        self.storages[key_of(tensor)] = tensor.untyped_storage().nbytes()
        return tensor.detach()  # not itself: an output would keep its own node, for ever

    def watching(self):
        return torch.autograd.graph.saved_tensors_hooks(self.pack, lambda tensor: tensor)


def _storages(tree):
    return {key_of(t): t.untyped_storage().nbytes() for t in tensors_of(tree)}


def _saved_sizes(x, y, seen, live):
    """What the stage saves, as autograd sees it, and whether its two ends are part of that.

    Only what it made itself, and its input: weights and what else was there before are not.
    """
    inputs, outputs, saved = _storages(x), _storages(y), seen.storages
    own = sum(size for key, size in saved.items()
              if key in live.born and key not in outputs and key not in inputs)
    made = sum(size for key, size in outputs.items() if key in live.born)
    # Kept beside autograd: by a function that puts tensors into its context, or a cache.
    beside = max(0, live.live - own - made)
    has_input = bool(inputs) and all(key in saved for key in inputs)
    has_output = bool(outputs) and all(key in saved for key in outputs)
    return {
        "out": sum(outputs.values()),
        "saved": own + beside + has_input * sum(inputs.values()) +
                 has_output * sum(outputs.values()),
        "saved_has_input": has_input,
        "saved_has_output": has_output,
    }


def _run_once(runner, x, meter, run=call):
    """Forward and backward, with the meter's numbers."""
    x = cut(x)
    runner.clear_gradients()
    with meter:
        y = run(runner, x)
        held, forward_peak = meter.live, meter.peak
        meter.restart_peak()
        ends = cut_loose(y)
        del y
        run_backward(*ends)
        backward_peak = meter.peak
    gradient_in = bytes_of([t.grad for t in tensors_of(x) if t.grad is not None])
    kept = runner.gradient_bytes()
    return {
        "held": held,
        "fwd_tmp": max(0, forward_peak - held),
        "bwd_tmp": max(0, backward_peak - held - bytes_of(ends[1]) - gradient_in - kept),
        "grad_out": bytes_of(ends[1]),
        "grads": kept,
    }


def _look(runner, x):
    """What autograd saves."""
    x = cut(x)
    seen, live = _Seen(), LiveBytes()
    with live:
        with seen.watching():
            y = call(runner, x)
        return _saved_sizes(x, y, seen, live)


def _checkpointed(runner, x, **words):
    return checkpoint(call, runner, x, use_reentrant=False,
                      preserve_rng_state=not runner.is_fake, **words)


def _selected(policy):
    def run(runner, x):
        return _checkpointed(runner, x, context_fn=policy_contexts(policy))
    return run


# --- times -----------------------------------------------------------------------------


class _Clock:
    """Of what runs: the median of so many, after one that is not counted."""

    def __init__(self, repeats):
        self.repeats = repeats

    def _now(self, x):
        if any(t.is_cuda for t in tensors_of(x)):
            torch.cuda.synchronize()
        return time.perf_counter()

    def _once(self, runner, x, run):
        x = cut(x)
        runner.clear_gradients()
        begin = self._now(x)
        y = run(runner, x)
        middle = self._now(x)
        run_backward(*cut_loose(y))
        return middle - begin, self._now(x) - middle

    def times(self, runner, x, run=call):
        self._once(runner, x, run)
        taken = [self._once(runner, x, run) for _ in range(self.repeats)]
        return tuple(statistics.median(column) for column in zip(*taken))


class _Estimate:
    """Of what does not run."""

    def __init__(self, flops_per_second, bytes_per_second):
        self.rates = (flops_per_second, bytes_per_second)

    def times(self, runner, x, run=call):
        x = cut(x)
        runner.clear_gradients()
        with Roofline(*self.rates) as forward:
            y = run(runner, x)
        with Roofline(*self.rates) as backward:
            run_backward(*cut_loose(y))
        return forward.seconds, backward.seconds


def _microseconds(seconds):
    return round(max(seconds, 0) * 1e6, 3)


# --- can it run twice? -----------------------------------------------------------------


def _changes_input(runner, x):
    with torch.no_grad():
        x = tree_map_only(torch.Tensor, torch.clone, x)
        before = [t._version for t in tensors_of(x)]
        call(runner, x)
        return before != [t._version for t in tensors_of(x)]


def _random_states(x):
    states = [torch.get_rng_state()]
    if any(t.is_cuda for t in tensors_of(x)):
        states.append(torch.cuda.get_rng_state())
    return states


def _draws(runner, x):
    """Does it take random numbers? Of what does not run nobody knows."""
    if runner.is_fake:
        return False
    before = _random_states(x)
    with torch.no_grad():
        call(runner, tree_map_only(torch.Tensor, torch.clone, x))
    return not all(map(torch.equal, before, _random_states(x)))


# --- the chain -------------------------------------------------------------------------


def _measure_option(runner, x, clock, stage, option_id, policy):
    counted = _run_once(runner, x, meter_for(x), _selected(policy))
    forward, backward = clock.times(runner, x, _selected(policy))
    # In the stage's own convention, of which the reader makes what is held.
    saved = (counted["held"] + stage["saved_has_input"] * bytes_of(x) -
             (not stage["saved_has_output"]) * stage["out"])
    more = _microseconds(forward + backward) - stage["fwd"] - stage["bwd"]
    return {"id": option_id, "saved": saved, "recompute": round(max(0.0, more), 3),
            "bwd_tmp": counted["bwd_tmp"], "policy": policy}


def _measure_options(runner, x, clock, stage, selective):
    options = []
    for option_id, operations in selective.items():
        policy = policy_of(lambda: call(runner, cut(x)), operations)
        if policy:
            options.append(_measure_option(runner, x, clock, stage, option_id, policy))
    return options


def _warm_up(runner, x):
    """What a stage makes once and keeps, a table of angles for instance, is no activation."""
    if not runner.is_fake:
        with torch.no_grad():
            call(runner, tree_map_only(torch.Tensor, torch.clone, x))


def _measure_stage(name, runner, x, clock, selective):
    if _changes_input(runner, x):
        raise PlanError(f"{name} changes its input in place: join it with the stage before")
    _warm_up(runner, x)
    counted = _run_once(runner, x, meter_for(x))
    forward, backward = clock.times(runner, x)
    stage = {"name": name, "fwd": _microseconds(forward), "bwd": _microseconds(backward),
             **_look(runner, x), "grad_out": counted["grad_out"], "fwd_tmp": counted["fwd_tmp"],
             "bwd_tmp": counted["bwd_tmp"], "grads": counted["grads"],
             "rng": _draws(runner, x)}
    if selective:
        stage["options"] = _measure_options(runner, x, clock, stage, selective)
    return stage


def _measure_all(runners, x, names, has_loss, selective, clock):
    stages = []
    for index, (runner, name) in enumerate(zip(runners, names)):
        is_loss = has_loss and index == len(runners) - 1
        stages.append(_measure_stage(name, runner, x, clock, None if is_loss else selective))
        x = cut(call(runner, cut(x)))
    if has_loss:  # a number: nobody holds it, and its gradient is 1
        stages[-1].update(out=0, grad_out=0, saved_has_output=False)
    return stages


def _persistent(stages, grads, optimizer, step_bytes):
    modules = [stage for stage in stages if isinstance(stage, torch.nn.Module)]
    parameters = [p for m in modules for p in m.parameters()]
    states = bytes_of(list(optimizer.state.values())) if optimizer else 0
    if optimizer and not states and any(g.get("momentum", 1) for g in optimizer.param_groups):
        raise PlanError("the optimizer has no states yet: measure after its first step")
    return {"params": bytes_of(parameters),
            "grads": {"bytes": bytes_of([p for p in parameters if p.requires_grad]),
                      "alloc": grads},
            "optimizer": states, "step_transient": step_bytes,
            "buffers": bytes_of([b for m in modules for b in m.buffers()])}


def _names(stages, names, loss):
    if names is None:
        names = [f"{index}.{getattr(stage, '__name__', type(stage).__name__)}"
                 for index, stage in enumerate(stages[:len(stages) - bool(loss)])]
    names = list(names) + ["loss"] * bool(loss)
    if len(names) != len(stages):
        raise PlanError(f"{len(names)} names for {len(stages)} stages")
    return names


def measure(stages, example, *, loss=None, names=None, fake=False, repeats=3,
            flops_per_second=FLOPS_PER_SECOND, bytes_per_second=BYTES_PER_SECOND,
            grads="lazy", optimizer=None, step_bytes=0, selective=None):
    """The chain of `stages`, called one after the other on `example`: a dict, ckpt-chain/1.

    stages     modules or functions; a tuple is handed on as several arguments
    loss       a function of the last output, the last stage of the chain
    fake       nothing runs: sizes by FakeTensorMode, times by a roofline of the two rates.
               Stages that are functions are run as they are, on fake tensors
    repeats    of the timing; the median counts
    grads      "lazy": gradients of weights come to be in the backward (set_to_none);
               "static": they are there from step to step
    optimizer  its states are counted; step_bytes is what its step takes beyond them
    selective  {"sac:matmul": ["aten.mm.default", ...]}: ways to keep less of a stage, each
               measured

    Parameters, buffers, gradients and the state of the random numbers are left as they were.
    """
    stages = list(stages) + ([loss] if loss else [])
    if not stages:
        raise PlanError("there is no stage to measure")
    if grads not in ("lazy", "static"):
        raise PlanError(f"grads is {grads!r}: it is 'lazy' or 'static'")
    names = _names(stages, names, loss)
    persistent = _persistent(stages, grads, optimizer, step_bytes)
    if fake:
        with FakeTensorMode(allow_non_fake_inputs=True) as mode:
            example = tree_map_only(torch.Tensor, mode.from_tensor, example)
            runners = [_Runner(stage, mode) for stage in stages]
            measured = _measure_all(runners, example, names, bool(loss), selective,
                                    _Estimate(flops_per_second, bytes_per_second))
    else:
        with untouched(stages):
            measured = _measure_all([_Runner(stage) for stage in stages], example, names,
                                    bool(loss), selective, _Clock(repeats))
    if grads == "static":
        for stage in measured:
            del stage["grads"]
    wanted = [t for t in tensors_of(example) if t.requires_grad]
    return {"format": FORMAT, "convention": "autograd", "persistent": persistent,
            "input": {"bytes": bytes_of(example), "grad": bytes_of(wanted)},
            "stages": measured}
