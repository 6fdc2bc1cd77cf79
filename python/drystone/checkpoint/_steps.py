# SPDX-License-Identifier: Apache-2.0
"""A model's layers, run by a plan, while the model's own forward stays.

What stands before each layer runs it at once; or, in a range that runs again as one, when the
last layer of the range is called. Until then the model has a Later in place of a tensor. The
recording has shown that the model hands it on and does not look at it; if it does now, it is
told so.
"""
from __future__ import annotations

import copy
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._pytree import tree_leaves

from ..plan._carry import Carrier, Run, Step
from ..plan._errors import PlanError
from ..plan._items import Item, Save
from ..plan._types import Tree
from ._call import Bound, Slot, call_layer, one_or_all, stand_before, step_aside, value_at

if TYPE_CHECKING:
    from ._chain import Layout
    from ._record import Call, Shape
    from ._watch import _Labels

_PLAN_AGAIN = "plan with the example and the settings that the model is run with"


class Later:
    """Stands for what a layer returns that has not run yet. Only the next layer takes it."""

    def __init__(self, name: str) -> None:
        self.__dict__["name"] = name

    def __getattr__(self, attribute: str) -> Any:
        raise PlanError(f"the model looks at what {self.name} returns ({attribute}), and did not "
                        f"when it was planned: {_PLAN_AGAIN}")

    __setattr__ = __getitem__ = __add__ = __radd__ = __mul__ = lambda self, *_: \
        self.__getattr__("an operation")


class _Step:
    """One forward: stages of its own, and the range that waits for its last layer."""

    def __init__(self, carrier: Carrier) -> None:
        self.carrier = copy.copy(carrier)
        self.carrier.stages = list(carrier.stages)
        step = Step()
        self.root = Run(step, step.traffic, is_root=True)
        self.next = 0        # the call that has to come
        self.waiting: list[Any] | None = None  # what the range takes
        self.later: tuple[Later, ...] = ()  # what the model has of it

    def put_off(self, name: str, shape: Shape, x: list[Any]) -> Tree:
        """Return what stands for the output of a layer of this name."""
        kind, places = shape
        self.waiting = x
        self.later = tuple(Later(name) for is_tensor in places if is_tensor)
        if kind is torch.Tensor:
            return self.later[0]
        later = iter(self.later)
        return kind(next(later) if is_tensor else None for is_tensor in places)


def _by_stage(items: Sequence[Item]) -> dict[int, Item]:
    """Stage: the item that runs it. What is saved runs a stage at a time."""
    return {stage: Save(stage, stage) if isinstance(item, Save) else item
            for item in items for stage in range(item.first, item.last + 1)}


class Steps:
    """Stands before a model and its layers.

    model   calls of it begin and end a step
    calls   of the recording, in order
    layout  which stages of the plan they are
    items   of the plan
    """

    def __init__(self, model: torch.nn.Module, calls: Sequence[Call], layout: Layout,
                 items: Sequence[Item]) -> None:
        self.model, self.layout = model, layout
        self.layers = [call.layer for call in calls]
        self.shapes = [(call.slots, call.output_shape) for call in calls]
        self.sections = set(layout.section_at.values())
        self.items = _by_stage(items)
        self.carrier = Carrier([None] * len(layout.names), items)
        self.labels: _Labels | None = None  # of somebody who watches
        self.step: _Step | None = None
        self.is_placed = False

    def place(self) -> None:
        placed = []
        try:
            for index, layer in enumerate(self.layers):
                stand_before(layer, functools.partial(self._take, index))
                placed.append(layer)
            if self.model not in placed:
                stand_before(self.model, self._take_model)
        except PlanError:
            for layer in placed:
                step_aside(layer)
            raise
        self.is_placed = True

    def remove(self) -> None:
        if self.is_placed:
            for layer in [self.model, *self.layers]:
                step_aside(layer)
        self.is_placed, self.step = False, None

    # --- a step ----------------------------------------------------------------------------

    def _take_model(self, *args: Any, **kwargs: Any) -> Tree:
        self.step = None
        output = call_layer(self.model, args, kwargs)
        step, self.step = self.step, None
        if step and (step.waiting is not None or
                     any(isinstance(leaf, Later) for leaf in tree_leaves(output))):
            raise PlanError("the model returns what layers in a range return, and did not when it "
                            f"was planned: {_PLAN_AGAIN}")
        return output

    def _take(self, index: int, *args: Any, **kwargs: Any) -> Tree:
        """Run layer `index`, or put it off to the end of its range."""
        if not torch.is_grad_enabled():
            return call_layer(self.layers[index], args, kwargs)
        if index == 0:
            self.step = _Step(self.carrier)
        step, stage = self.step, self.layout.stage_of[index]
        if step is None or step.next != index:
            raise PlanError(f"{self.layout.names[stage]} is called out of turn: the plan is for a "
                            "step that calls each layer once, in the same order")
        step.next += 1
        slots, shape = self.shapes[index]
        item = self.items[stage]
        x = self._x(step, slots, args, kwargs, stage)
        bound = step.carrier.stages[stage] = Bound(self.layers[index], slots, args, kwargs,
                                                   stage == item.last)
        if stage < item.last:
            assert shape is not None  # else something would stand between the two
            return step.put_off(self.layout.names[stage], shape, x)
        self._run(step, item, x)
        return bound.take_output()

    def _run(self, step: _Step, item: Item, x: list[Any]) -> None:
        if self.labels and item.first - 1 in self.sections:
            self.labels.output(item.first - 1, x)
        step.carrier.run([item], one_or_all(x), step.root)
        if self.labels and item.last + 1 in self.sections:
            self.labels.enter(item.last + 1)

    def _x(self, step: _Step, slots: Sequence[Slot], args: Sequence[Any], kwargs: dict[str, Any],
           stage: int) -> list[Any]:
        """What the layer takes, or what the range took that it is in."""
        name = self.layout.names[stage]
        try:
            values = [value_at(slot, args, kwargs) for slot in slots]
        except (IndexError, KeyError):
            raise PlanError(f"{name} is called with other arguments than when it was planned: "
                            f"{_PLAN_AGAIN}") from None
        if stage == self.items[stage].first:
            return values
        x = step.waiting
        if (x is None or len(values) != len(step.later) or
                any(a is not b for a, b in zip(values, step.later))):
            raise PlanError(f"{name} is not given what the layer before it returned: "
                            f"{_PLAN_AGAIN}")
        step.waiting = None
        return x
