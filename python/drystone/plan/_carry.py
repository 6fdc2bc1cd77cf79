# SPDX-License-Identifier: Apache-2.0
"""How items run: ranges become nested calls of torch.utils.checkpoint, non-reentrant.

Whatever the plan, gradients are those of the stages as they are, bit for bit: a second run
starts with the same inputs and, unless preserve_rng_state is False, the same random numbers.
Running statistics of batch norms count a batch once.

A stage kept by an option is a checkpoint of its own, with a policy. Within a range it runs three
times. PyTorch wants the same checkpoints in both runs of the range, and runs again the one that
it met in the first. But what a policy keeps in the first run of the range would be held until
the backward comes, so there it keeps nothing, as nothing else of the range is kept. In the
range's second run it keeps, and Run hands that to the checkpoint of the first.

What is nested deeper needs no more than that. A range in a range is called several times, but of
these calls one is run again: that of the first forward, in which all ranges around it run for
the first time. Hence an option keeps when the range right around it is being run again, and all
those further out have then been run again, or are being.

An option that offloads sends a part of what it keeps to the host (_offload.py), in the run in
which it keeps. One without a policy keeps what autograd saves, which hooks see, and does not run
again: within a range, where a checkpoint of its own has to be met, the second run of that saves
once more what the hooks saw.
"""
from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from torch.utils.checkpoint import checkpoint

from ._items import Item, Option, Range, Save, offloading
from ._live import tensors_of
from ._offload import Away, Link, Traffic, save_again
from ._policy import Cached, kept_values
from ._stage import call, frozen_statistics, weights_of
from ._types import Context, Contexts, Stage, Tree

if TYPE_CHECKING:
    from ._offload import _Handle
    from ._verify import Watcher


class Silent:
    """Nobody watches; verify has one who does."""

    def forward(self, stage: int) -> Context:
        return contextlib.nullcontext()

    def output(self, stage: int, y: Tree) -> None:
        pass

    def again(self, phase: str) -> Context:
        return contextlib.nullcontext()


class Step:
    """One call of the module: what is on the host, and how it gets there."""

    def __init__(self) -> None:
        self.link = Link()
        self.traffic = Traffic()
        self.away: dict[int, Away] = {}  # by stage, of the run that kept it last

    def expect(self, stage: int, y: Tree) -> None:
        """The stage before comes back when the backward of this one begins."""
        for tensor in tensors_of(y):
            if tensor.requires_grad:
                tensor.register_hook(lambda _: self._begin_to_return(stage - 1))

    def _begin_to_return(self, stage: int) -> None:
        if stage in self.away:
            self.away[stage].begin_to_return()


class Run:
    """One call of a range or an option, or of all: what its two runs tell those within."""

    def __init__(self, step: Step, traffic: Traffic, is_root: bool = False) -> None:
        self.step = step
        self.traffic = traffic
        self.is_keeping = is_root  # of ranges: only when they run again
        # By stage: the context in which its kept tensors are used, or handles.
        self.kept: dict[int, Any] = {}
        # What the second run saves, in place of the stage.
        self.handles: list[_Handle] | None = None

    @property
    def is_first(self) -> bool:
        """Do these outputs belong to the graph that is gone through?"""
        return self.traffic is self.step.traffic

    def begin_again(self) -> None:
        self.is_keeping = True
        self.traffic = Traffic()


# --- what is kept by an option ---------------------------------------------------------


class _Using:
    """Around the last run of an option: what it kept and sent away is back."""

    def __init__(self, using: Context) -> None:
        self.using = using
        self.sent: list[tuple[Cached, _Handle]] = []  # where PyTorch looks for it

    def send(self, keeping: Context, away: Away) -> None:
        self.sent = [(value, away.pack(value.val)) for value in kept_values(keeping)]
        for value, _ in self.sent:
            value.val = None

    def __enter__(self) -> None:
        sent, self.sent = self.sent, []
        for value, handle in sent:
            value.val = handle.get()
            value.version = value.val._version
        self.using.__enter__()

    def __exit__(self, *why: Any) -> bool | None:
        return self.using.__exit__(*why)


class _Keeping:
    """Around an option in the second run of a range: hands over what it keeps.

    Not before the option runs, for a second run may end between the two.
    """

    def __init__(self, around: Run, stage: int, keeping: Context,
                 kept: Any) -> None:
        self.around, self.stage = around, stage
        self.keeping, self.kept = keeping, kept

    def __enter__(self) -> None:
        self.around.kept[self.stage] = self.kept
        self.keeping.__enter__()

    def __exit__(self, *why: Any) -> bool | None:
        return self.keeping.__exit__(*why)


class _Kept:
    """Around the last run of an option in a range: uses what is kept, and holds it no longer.

    Nothing is, if the range's second run ended before the option, which it does where nothing
    that follows was wanted any more: then the option runs for the second time, and in full.
    """

    def __init__(self, around: Run, stage: int) -> None:
        self.around, self.stage = around, stage

    def __enter__(self) -> None:
        self.using: Context = self.around.kept.pop(self.stage, contextlib.nullcontext())
        self.using.__enter__()

    def __exit__(self, *why: Any) -> bool | None:
        using = self.using
        del self.using
        return using.__exit__(*why)


class _KeptHandles:
    """The same of an option without a policy: what is kept is all that the stage saves."""

    def __init__(self, around: Run, stage: int, run: Run) -> None:
        self.around, self.stage, self.run = around, stage, run

    def __enter__(self) -> None:
        self.run.handles = self.around.kept.pop(self.stage, None)

    def __exit__(self, *_: object) -> None:
        self.run.handles = None


class _SecondRun:
    """Around each second run, of which there is one for each backward."""

    def __init__(self, carrier: Carrier, item: Option | Range, run: Run,
                 context: Context) -> None:
        self.carrier, self.item, self.run, self.context = carrier, item, run, context

    def __enter__(self) -> None:
        stages = self.carrier.stages[self.item.first:self.item.last + 1]
        self.run.begin_again()
        self.stack = contextlib.ExitStack()
        self.stack.enter_context(self.carrier.watcher.again(self.item.phase))
        self.stack.enter_context(frozen_statistics(stages))
        self.stack.enter_context(self.context)

    def __exit__(self, *why: Any) -> bool | None:
        return self.stack.__exit__(*why)


# --- the carrier -----------------------------------------------------------------------


class Carrier:
    """Runs items of a plan over stages, some of them now and others later in the same step."""

    def __init__(self, stages: Sequence[Any], items: Sequence[Item],
                 preserve_rng_state: bool = True) -> None:
        self.stages: list[Stage] = list(stages)
        self.offloading = offloading(items)
        self.preserve_rng_state = preserve_rng_state
        self.watcher: Silent | Watcher = Silent()

    def run(self, items: Sequence[Item], x: Tree, around: Run) -> Tree:
        for item in items:
            if isinstance(item, Save):
                x = self._run_stages(item, x, around)
            elif isinstance(item, Option):
                x = self._run_option(item, x, around)
            else:
                x = self._checkpoint(item, x, around)
        return x

    def _run_stages(self, item: Save, x: Tree, run: Run) -> Tree:
        for index in range(item.first, item.last + 1):
            with run.traffic.during_stage(), self.watcher.forward(index):
                x = call(self.stages[index], x)
            self.watcher.output(index, x)
            if index - 1 in self.offloading and run.is_first:
                run.step.expect(index, x)
        return x

    def _run_option(self, item: Option, x: Tree, around: Run) -> Tree:
        if not around.is_keeping:
            return self._checkpoint(item, x, around, lambda run: (
                contextlib.nullcontext(), _Kept(around, item.first) if item.policy is not None
                else _KeptHandles(around, item.first, run)))
        away = Away(item.offload, around.step.link) if item.offload else None
        keep = self._keep_all if item.policy is None else self._keep_selected
        y = keep(item, x, around, away)
        if away:
            away.close([x, y, weights_of(self.stages[item.first])])
            around.traffic.leaving = around.step.away[item.first] = away
        return y

    def _keep_all(self, item: Option, x: Tree, around: Run, away: Away | None) -> Tree:
        assert away is not None  # without a policy, an option offloads
        if around.is_first:
            with away.watching():
                return self._run_stages(Save(item.first, item.last), x, around)
        handles: list[_Handle] = []
        keeping = _Keeping(around, item.first, away.watching(handles), handles)
        return self._checkpoint(item, x, around, lambda run: (keeping,
                                                              contextlib.nullcontext()))

    def _keep_selected(self, item: Option, x: Tree, around: Run, away: Away | None) -> Tree:
        assert item.make_contexts is not None
        keeping, used = item.make_contexts()
        using = _Using(used)
        if around.is_first:
            pair: Contexts = keeping, using
        else:
            pair = _Keeping(around, item.first, keeping, using), contextlib.nullcontext()
        y = self._checkpoint(item, x, around, lambda run: pair)
        if away:
            using.send(keeping, away)
        return y

    def _checkpoint(self, item: Option | Range, x: Tree, around: Run,
                    contexts: Callable[[Run], Contexts] | None = None) -> Tree:
        """The first run goes by the inner items too: both must save the same, in autograd's
        eyes. It holds none of it."""
        run = Run(around.step, around.traffic)

        def make_contexts() -> Contexts:
            first, second = contexts(run) if contexts else (contextlib.nullcontext(),) * 2
            return first, _SecondRun(self, item, run, second)

        def run_inner(*args: Any) -> Tree:
            if run.handles is not None:
                return save_again(run.handles)
            return self.run(item.inner, args if len(args) > 1 else args[0], run)

        return checkpoint(run_inner, *(x if isinstance(x, tuple) else (x,)),
                          use_reentrant=False, context_fn=make_contexts,
                          preserve_rng_state=self.preserve_rng_state)
