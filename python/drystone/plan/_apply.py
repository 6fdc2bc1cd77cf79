# SPDX-License-Identifier: Apache-2.0
"""A plan as a module; _carry.py says how its items run."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.utils.checkpoint import set_checkpoint_early_stop

from ._carry import Carrier, Run, Step
from ._items import Item, read_items
from ._types import Json, Loss, Stage, Tree


class Planned(torch.nn.Module):
    """Stages one after the other, by a plan: what apply() makes."""

    def __init__(self, stages: Iterable[Stage], items: Sequence[Item], preserve_rng_state: bool,
                 early_stop: bool, is_cut: bool = False) -> None:
        super().__init__()
        self.stages = list(stages)
        # Under their numbers, so that a state_dict is the same whatever the plan.
        for index, stage in enumerate(self.stages):
            if isinstance(stage, torch.nn.Module):
                self.add_module(str(index), stage)
        self.items = items
        self.is_cut = is_cut
        self.early_stop = early_stop
        self.carrier = Carrier(self.stages, items, preserve_rng_state)

    def forward(self, *args: Any) -> Tree:
        step = Step()
        with set_checkpoint_early_stop(self.early_stop):
            y = self.carrier.run(self.items, args if len(args) > 1 else args[0],
                                 Run(step, step.traffic, is_root=True))
        if self.is_cut:
            with step.traffic.during_stage():
                pass  # the loss is one more stage, of which nothing is seen here
        return y


def apply(stages: Iterable[Stage], plan: Json, *, chain: Json | None = None,
          loss: Loss | None = None, preserve_rng_state: bool = True,
          early_stop: bool = True) -> Planned:
    """A module that runs the stages by the plan.

    plan        of plan(), or a plan file that was read as JSON
    chain       of which it was made; needed if stages are kept by options whose policies the
                plan has not, or that offload
    loss        the chain's last stage; without it the caller runs the loss
    early_stop  a second run ends as soon as all is there that the backward needs

    An option that offloads moves at least so many bytes of what its stage keeps, the largest
    storages first, or all of it that can be moved. They leave while the next stage runs
    forward and come back while it runs backward: to page-locked memory, on a stream of their
    own, on a CUDA device; elsewhere by plain copies. The plan's promise knows nothing of a
    next stage that is shorter than the copies: it waits; of storages that somebody else holds,
    too: they stay; of a loss that the caller runs: what would leave and come back during it
    leaves before and comes back after.
    """
    stages = list(stages) + ([loss] if loss else [])
    items, is_cut = read_items(plan, chain, len(stages), bool(loss))
    return Planned(stages, items, preserve_rng_state, early_stop, is_cut)
