# SPDX-License-Identifier: Apache-2.0
"""A plan as a module: ranges become nested calls of torch.utils.checkpoint, non-reentrant.

Whatever the plan, gradients are those of the stages as they are, bit for bit: a second run
starts with the same inputs and, unless preserve_rng_state is False, the same random numbers.
Running statistics of batch norms count a batch once.

A stage kept by an option is a checkpoint of its own, with a policy. Within a range it runs three
times. PyTorch wants the same checkpoints in both runs of the range, and runs again the one that
it met in the first. But what a policy keeps in the first run of the range would be held until
the backward comes, so there it keeps nothing, as nothing else of the range is kept. In the
range's second run it keeps, and _Run hands that to the checkpoint of the first.

What is nested deeper needs no more than that. A range in a range is called several times, but of
these calls one is run again: that of the first forward, in which all ranges around it run for
the first time. Hence an option keeps when the range right around it is being run again, and all
those further out have then been run again, or are being.
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

    phase = "backward"  # as the judge has it: the second run is part of the stage's backward

    def __init__(self, stage, policy):
        self.first = self.last = stage
        self.inner = [_Save(stage, stage)]
        self.make_contexts = policy_contexts(policy)

    def contexts(self, around):
        """For its two runs, when it is met in this run of the range around it."""
        if not around:
            return self.make_contexts()
        if not around.is_again:
            return contextlib.nullcontext(), _Kept(around, self.first)
        keeping, using = self.make_contexts()
        return _Keeping(around, self.first, keeping, using), contextlib.nullcontext()


class _Range:
    phase = "recompute"

    def __init__(self, first, last, inner):
        self.first, self.last = first, last
        self.inner = inner

    def contexts(self, _around):
        return contextlib.nullcontext(), contextlib.nullcontext()


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


def _find_policy(chain, stage, item):
    """The chain's option has it, or else the item: of options made of a stage's operations."""
    name, own = item.get("id"), item.get("policy")
    if chain is None and own is None:
        raise PlanError(f"stage {stage} is kept by option {name!r}: give the chain too")
    stages = [each for each in chain["stages"] for _ in range(each.get("repeat", 1))] \
        if chain else []
    for option in stages[stage].get("options", ()) if stage < len(stages) else ():
        if option["id"] == name and option.get("policy"):
            return option["policy"]
    if own is not None:
        return own
    raise PlanError(f"stage {stage} has no option {name!r} with a policy")


def _parse_range(item, begin, end, chain):
    if not item.get("inner"):
        return _Range(begin, end, [_Save(begin, end)])
    inner, after = _parse(item["inner"], begin, chain)
    if after != end + 1:
        raise PlanError(f"the inner items of ckpt {item['ckpt']} end before stage {after}")
    return _Range(begin, end, inner)


def _parse(items, after, chain):
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
        else:
            made += [_Option(stage, _find_policy(chain, stage, item))
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

    def again(self, phase):
        return contextlib.nullcontext()


class _Run:
    """One call of a range or an option: what its two runs tell those within."""

    def __init__(self):
        self.is_again = False
        self.kept = {}  # stage: the context in which its kept tensors are used


class _Keeping:
    """Around an option in the second run of a range: hands over what it keeps.

    Not before the option runs, for a second run may end between the two.
    """

    def __init__(self, around, stage, keeping, using):
        self.around, self.stage = around, stage
        self.keeping, self.using = keeping, using

    def __enter__(self):
        self.around.kept[self.stage] = self.using
        self.keeping.__enter__()

    def __exit__(self, *why):
        return self.keeping.__exit__(*why)


class _Kept:
    """Around the last run of an option in a range: uses what is kept, and holds it no longer.

    Nothing is, if the range's second run ended before the option, which it does where nothing
    that follows was wanted any more: then the option runs for the second time, and in full.
    """

    def __init__(self, around, stage):
        self.around, self.stage = around, stage

    def __enter__(self):
        self.using = self.around.kept.pop(self.stage, contextlib.nullcontext())
        self.using.__enter__()

    def __exit__(self, *why):
        using, self.using = self.using, None
        return using.__exit__(*why)


class _SecondRun:
    """Around each second run, of which there is one for each backward."""

    def __init__(self, planned, item, run, context):
        self.planned, self.item, self.run, self.context = planned, item, run, context

    def __enter__(self):
        stages = self.planned.stages[self.item.first:self.item.last + 1]
        self.run.is_again = True
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(self.planned.watcher.again(self.item.phase))
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

    def _run(self, items, x, around=None):
        for item in items:
            if isinstance(item, _Save):
                x = self._run_stages(item, x)
            else:
                x = self._checkpoint(item, x, around)
        return x

    def _run_stages(self, item, x):
        for index in range(item.first, item.last + 1):
            with self.watcher.forward(index):
                x = call(self.stages[index], x)
            self.watcher.output(index, x)
        return x

    def _checkpoint(self, item, x, around):
        """The first run goes by the inner items too: both must save the same, in autograd's
        eyes. It holds none of it."""
        run = _Run()

        def contexts():
            first, second = item.contexts(around)
            return first, _SecondRun(self, item, run, second)

        def run_inner(*args):
            return self._run(item.inner, args if len(args) > 1 else args[0], run)

        return checkpoint(run_inner, *(x if isinstance(x, tuple) else (x,)),
                          use_reentrant=False, context_fn=contexts,
                          preserve_rng_state=self.preserve_rng_state)


def apply(stages, plan, *, chain=None, loss=None, preserve_rng_state=True, early_stop=True):
    """A module that runs the stages by the plan.

    plan        of plan(), or a plan file that was read as JSON
    chain       of which it was made; needed if stages are kept by options whose policies the plan has not
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
