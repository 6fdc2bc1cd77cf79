# SPDX-License-Identifier: Apache-2.0
"""A plan as a module: ranges become nested calls of torch.utils.checkpoint, non-reentrant.

Whatever the plan, gradients are those of the stages as they are, bit for bit: a second run
starts with the same inputs and, unless preserve_rng_state is False, the same random numbers.
Running statistics of batch norms count a batch once.
"""
import contextlib

import torch
from torch.utils.checkpoint import checkpoint, set_checkpoint_early_stop

from ._errors import PlanError
from ._policy import policy_contexts
from ._stage import call, frozen_statistics


class _Save:
    def __init__(self, first, last):
        self.first, self.last = first, last


class _Option:
    """One stage by one of its options."""

    def __init__(self, stage, policy):
        self.first = self.last = stage
        self.policy = policy


class _Range:
    def __init__(self, first, last, inner):
        self.first, self.last = first, last
        self.inner = inner


# --- the plan --------------------------------------------------------------------------


def _items_of(plan):
    items = plan.get("items") if isinstance(plan, dict) else None
    if not isinstance(items, list) or not items:
        raise PlanError("a plan has a list of items")
    return items


def _bounds(item, name, expected):
    pair = item[name]
    if (not isinstance(pair, (list, tuple)) or len(pair) != 2 or
            not all(isinstance(number, int) for number in pair) or
            pair[0] != expected or pair[1] < pair[0]):
        raise PlanError(f"{name} {pair}: expected a range that begins with stage {expected}")
    return pair


def _find_policy(chain, stage, name):
    if chain is None:
        raise PlanError(f"stage {stage} is kept by option {name!r}: give the chain too")
    stages = [each for each in chain["stages"] for _ in range(each.get("repeat", 1))]
    for option in stages[stage].get("options", ()) if stage < len(stages) else ():
        if option["id"] == name and option.get("policy"):
            return option["policy"]
    raise PlanError(f"stage {stage} has no option {name!r} with a policy")


def _parse_range(item, begin, end, chain):
    if not item.get("inner"):
        return _Range(begin, end, [_Save(begin, end)])
    inner, after = _parse(item["inner"], begin, chain, True)
    if after != end + 1:
        raise PlanError(f"the inner items of ckpt {item['ckpt']} end before stage {after}")
    return _Range(begin, end, inner)


def _parse(items, after, chain, is_inner=False):
    """(items as objects, the stage after the last)."""
    made = []
    for item in items:
        kinds = [kind for kind in ("save", "ckpt", "opt") if kind in item]
        if len(kinds) != 1:
            raise PlanError(f"an item is one of save, ckpt and opt, not {sorted(item)}")
        begin, end = _bounds(item, kinds[0], after)
        if kinds[0] == "save":
            made.append(_Save(begin, end))
        elif kinds[0] == "ckpt":
            made.append(_parse_range(item, begin, end, chain))
        elif is_inner:  # what its first run keeps would be held all the time
            raise PlanError(f"opt {item['opt']} within a ckpt cannot be carried out")
        else:
            made += [_Option(stage, _find_policy(chain, stage, item.get("id")))
                     for stage in range(begin, end + 1)]
        after = end + 1
    return made, after


def _without_last(items):
    """The plan when the caller runs the last stage, a loss."""
    last = items[-1]
    if not isinstance(last, _Save):
        raise PlanError("the plan runs its last stage twice: it must be among the stages")
    return items[:-1] + ([_Save(last.first, last.last - 1)] if last.first < last.last else [])


# --- the module ------------------------------------------------------------------------


class _Silent:
    """Nobody watches; verify has one who does."""

    def forward(self, stage):
        return contextlib.nullcontext()

    def output(self, stage, y):
        pass

    def again(self):
        return contextlib.nullcontext()


class _SecondRun:
    """Around each second run, of which there is one for each backward."""

    def __init__(self, planned, item, context):
        self.planned, self.item, self.context = planned, item, context

    def __enter__(self):
        stages = self.planned.stages[self.item.first:self.item.last + 1]
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(self.planned.watcher.again())
        self.stack.enter_context(frozen_statistics(stages))
        self.stack.enter_context(self.context)

    def __exit__(self, *why):
        return self.stack.__exit__(*why)


class Planned(torch.nn.Module):
    """Stages one after the other, by a plan: what apply() makes."""

    def __init__(self, stages, items, preserve_rng_state, early_stop):
        super().__init__()
        self.stages = list(stages)
        # Under their numbers, so that a state_dict is the same whatever the plan.
        for index, stage in enumerate(self.stages):
            if isinstance(stage, torch.nn.Module):
                self.add_module(str(index), stage)
        self.items = items
        self.preserve_rng_state = preserve_rng_state
        self.early_stop = early_stop
        self.watcher = _Silent()

    def forward(self, *args):
        with set_checkpoint_early_stop(self.early_stop):
            return self._run(self.items, args if len(args) > 1 else args[0])

    def _run(self, items, x):
        for item in items:
            if isinstance(item, _Save):
                x = self._run_stages(item, x)
            elif isinstance(item, _Option):
                x = self._checkpoint([_Save(item.first, item.last)], item, x,
                                     policy_contexts(item.policy))
            else:
                x = self._checkpoint(item.inner, item, x, _no_contexts)
        return x

    def _run_stages(self, item, x):
        for index in range(item.first, item.last + 1):
            with self.watcher.forward(index):
                x = call(self.stages[index], x)
            self.watcher.output(index, x)
        return x

    def _checkpoint(self, inner, item, x, make_contexts):
        """The first run goes by the inner items too: both must save the same, in autograd's
        eyes. It holds none of it."""
        def run(*args):
            return self._run(inner, args if len(args) > 1 else args[0])

        def contexts():
            first, second = make_contexts()
            return first, _SecondRun(self, item, second)

        return checkpoint(run, *(x if isinstance(x, tuple) else (x,)), use_reentrant=False,
                          context_fn=contexts, preserve_rng_state=self.preserve_rng_state)


def _no_contexts():
    return contextlib.nullcontext(), contextlib.nullcontext()


def apply(stages, plan, *, chain=None, loss=None, preserve_rng_state=True, early_stop=True):
    """A module that runs the stages by the plan.

    plan        of plan(), or a plan file that was read as JSON
    chain       of which it was made; needed if stages are kept by options
    loss        the chain's last stage; without it the caller runs the loss
    early_stop  a second run ends as soon as all is there that the backward needs
    """
    stages = list(stages) + ([loss] if loss else [])
    items, count = _parse(_items_of(plan), 0, chain)
    if count == len(stages) + 1 and not loss:
        items, count = _without_last(items), count - 1
    if count != len(stages):
        raise PlanError(f"the plan has {count} stages, here are {len(stages)}")
    return Planned(stages, items, preserve_rng_state, early_stop)
