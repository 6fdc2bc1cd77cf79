# SPDX-License-Identifier: Apache-2.0
"""What a plan promised against what was alive when it ran, a stage a line."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TypedDict

from ._apply import Planned
from ._errors import PlanError
from ._live import Meter, meter_for, tensors_of
from ._stage import cut_loose, run_backward, untouched
from ._types import Json, Tree

PHASES = ("forward", "recompute", "backward")

Row = tuple[str, int, int, int]


class Watched(TypedDict):
    peak: int
    held: int
    stages: dict[tuple[str, int], int]


class Watcher:
    """Tells a meter which stage runs, and in which phase."""

    def __init__(self, meter: Meter) -> None:
        self.meter = meter
        self.phase = "forward"

    @contextlib.contextmanager
    def forward(self, stage: int) -> Iterator[None]:
        self.meter.set_label((self.phase, stage))
        yield
        self.meter.set_label(None)

    def output(self, stage: int, y: Tree) -> None:
        """When the output's gradient is there, the stage's backward begins."""
        if self.phase != "forward":
            return  # these tensors only give what they saved
        for tensor in tensors_of(y):
            if tensor.requires_grad:
                tensor.register_hook(
                    lambda _, stage=stage: self.meter.set_label(("backward", stage)))

    @contextlib.contextmanager
    def again(self, phase: str) -> Iterator[None]:
        label_before, phase_before = self.meter.label, self.phase
        self.phase = phase
        try:
            yield
        finally:
            self.phase = phase_before
            self.meter.set_label(label_before)


def watch(planned: Planned, example: Tree) -> Watched:
    """One step of what apply() made: the bytes that were alive beyond weights and input.

    {"peak": bytes, "held": between forward and backward, "stages": {(phase, stage): bytes}}.
    The backward begins with gradients of ones. On a GPU they are the allocator's bytes,
    elsewhere those of all tensors that operations returned.
    """
    if not isinstance(planned, Planned):
        raise PlanError("watch() takes what apply() made")
    meter = meter_for(example)
    inputs = example if isinstance(example, tuple) else (example,)
    carrier = planned.carrier
    silent, carrier.watcher = carrier.watcher, Watcher(meter)
    try:
        with untouched(planned.stages):
            planned(*inputs)  # what is made once and kept is no part of a step
        with untouched(planned.stages, tensors_of(example)), meter:
            y = planned(*inputs)
            held = meter.live
            ends = cut_loose(y)
            del y
            run_backward(*ends)
            meter.set_label(None)
            return {"peak": meter.peak, "held": held, "stages": dict(meter.peaks)}
    finally:
        carrier.watcher = silent


def frame_bytes(chain: Json) -> int:
    """What is there whatever the plan: weights, states, buffers, gradients that stay, input."""
    persistent = chain.get("persistent", {})
    gradients = persistent.get("grads", {"bytes": 0})
    kept: int = gradients["bytes"]
    if gradients.get("alloc", "lazy") == "lazy":
        kept -= sum(stage.get("grads", 0) * stage.get("repeat", 1)
                    for stage in chain["stages"])
    always: int = (sum(persistent.get(key, 0) for key in ("params", "optimizer", "buffers")) +
                   chain.get("input", {"bytes": 0})["bytes"])
    return always + kept


class Verdict:
    """Rows of (phase, stage, predicted bytes, measured bytes), and the two peaks.

    Without what is there whatever the plan. str() is a table. In it "passes" stands where a
    stage runs forward and keeps nothing: what it makes on the way is not predicted, for it is
    no more than what the stage keeps when it runs again, which is.
    """

    def __init__(self, names: list[str], rows: list[Row], passing: set[tuple[str, int]],
                 predicted_peak: int, measured_peak: int) -> None:
        self.names = names
        self.rows = rows
        self.passing = passing
        self.predicted_peak, self.measured_peak = predicted_peak, measured_peak

    @property
    def error(self) -> float:
        """Of the peak: 0.02 is a prediction 2 % too high."""
        return self.predicted_peak / self.measured_peak - 1 if self.measured_peak else 0.0

    def __str__(self) -> str:
        lines = [f"{'':<32}{'predicted':>14}{'measured':>14}{'':>9}"]
        for phase, stage, predicted, measured in self.rows:
            name = f"{phase} {stage} {self.names[stage]}"
            lines.append(_line(name, predicted, measured, (phase, stage) in self.passing))
        return "\n".join(lines + [_line("peak", self.predicted_peak, self.measured_peak)])


def _line(name: str, predicted: int, measured: int, passes: bool = False) -> str:
    error = f"{'-':>9}"
    if measured:
        percent = round(100 * (predicted / measured - 1), 1)
        error = f"{percent:+8.1f}%" if percent else f"{'0.0':>8}%"
    if passes:
        error = f"{'passes':>9}"
    return f"{name[:31]:<32}{predicted:>14}{measured:>14}{error}"


def _predicted(plan: Json, frame: int) -> dict[tuple[str, int], int]:
    """The most that each stage needs in each phase, beyond the frame."""
    if not plan.get("timeline"):
        raise PlanError("the plan has no timeline to compare with")
    needs: dict[tuple[str, int], int] = {}
    for _, needed, phase, stage in plan["timeline"]:
        if stage is not None:
            needs[phase, stage] = max(needs.get((phase, stage), 0), needed - frame)
    return needs


def verify(chain: Json, plan: Json, measured: Watched) -> Verdict:
    """Predicted against measured, a stage and phase a line: a Verdict.

    chain of measure(), plan of plan(), measured of watch(). The optimizer's step, in which no
    stage runs, is no part of it.
    """
    needs = _predicted(plan, frame_bytes(chain))
    names = [stage.get("name", "") for stage in chain["stages"]
             for _ in range(stage.get("repeat", 1))] + ["loss"] * ("loss" in chain)
    seen = measured["stages"]
    keys = sorted(needs.keys() | seen.keys(), key=lambda key: (PHASES.index(key[0]), key[1]))
    rows = [(*key, needs.get(key, 0), seen.get(key, 0)) for key in keys]
    passing = {("forward", stage) for item in plan["items"] if "ckpt" in item
               for stage in range(item["ckpt"][0], item["ckpt"][1] + 1)}
    return Verdict(names, rows, passing, max(needs.values()), measured["peak"])
