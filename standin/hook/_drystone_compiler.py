# SPDX-License-Identifier: Apache-2.0
"""Runs inside a dry-run program: it loads PyTorch's compiler only if it compiles.

Methods of optimizers and modes of dispatch are kept from the compiler, and steps break its graphs.
The first call of one loads it: two seconds. Here they are called directly until somebody else
has loaded it.
"""
import functools
import sys


def put_off(torch):
    keep = getattr(torch, "_disable_dynamo", None)
    if keep is None:
        return  # a release that loads it at once

    def keep_lazily(function=None, recursive=True):
        kept = keep(function, recursive)
        if function is not None:
            call_directly(function, kept)
        return kept

    code = keep(lambda: None).__code__
    for each in vars(torch.optim.Optimizer).values():
        if getattr(each, "__code__", None) is code:
            call_directly(each.__wrapped__, each)
    torch._disable_dynamo = keep_lazily
    for kind in vars(torch.optim).values():
        step = getattr(kind, "step", None)
        if getattr(getattr(step, "__code__", None), "co_name", None) == "_use_grad":
            kind.step = break_nothing(step, torch.set_grad_enabled)


def call_directly(function, kept):
    """Have `kept`, PyTorch's wrapper, find what it made of `function` at an earlier call."""
    def direct(*given, **named):
        if "torch._dynamo" not in sys.modules:
            return function(*given, **named)
        del function.__dynamo_disable
        return kept(*given, **named)

    function.__dynamo_disable = direct


def break_nothing(step, set_grad_enabled):
    """Return an optimizer's step that breaks no graph as long as there is none."""
    @functools.wraps(step)
    def direct(optimizer, *given, **named):
        if "torch._dynamo" in sys.modules:
            return step(optimizer, *given, **named)
        with set_grad_enabled(optimizer.defaults["differentiable"]):
            return step.__wrapped__(optimizer, *given, **named)

    return direct
