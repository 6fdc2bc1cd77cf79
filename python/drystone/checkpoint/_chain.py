# SPDX-License-Identifier: Apache-2.0
"""A recorded step as a chain: a section is a stage that never runs twice, a layer is measured.

Layers between two sections are measured one after the other, as drystone.plan.measure() does.
What a section holds is there until its backward is over. What the model returns is held by the
program to the end of the backward, so that the first section is charged for it, not the last.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..plan._live import bytes_of, tensors_of
from ..plan._measure import FORMAT, MeasureOptions, measure_all, microseconds
from ..plan._types import Json, Stage, Tree
from ._call import Bound, one_or_all

if TYPE_CHECKING:
    import torch

    from ..plan._measure import Runner, Timer
    from ._record import Recording


class Layout:
    """Which stages of the chain are layers: `stage_of[call]`, and the names of all stages."""

    def __init__(self, recording: Recording) -> None:
        self.stage_of: list[int] = []
        self.section_at: dict[int, int] = {}
        self.names: list[str] = []
        for index, call in enumerate(recording.calls):
            if index == 0 or call.is_loose:
                self.section_at[index] = len(self.names)
                self.names.append("before the layers" if index == 0 else
                                  f"between {recording.calls[index - 1].name} and {call.name}")
            self.stage_of.append(len(self.names))
            self.names.append(call.name)
        self.section_at[len(recording.calls)] = len(self.names)
        self.names.append("after the layers" + ", loss" * recording.has_loss)


def _section_stage(recording: Recording, index: int, name: str) -> Json:
    """The stage of section `index`; a chain charges x to the stage that returns it."""
    section, calls = recording.sections[index], recording.calls
    before = calls[index - 1] if index else None
    is_last = index == len(calls)
    x, x_gradient = (before.output_bytes, before.gradient_bytes) if before else (0, 0)
    out = 0 if is_last else calls[index].fresh_bytes
    held = section.end - section.begin - out + x
    held += recording.returned_bytes * ((not before) - is_last)
    keeps_input = bool(before) and (recording.keeps_last or not is_last)
    more = section.back_peak - (section.back_begin or 0) - x_gradient - section.gradients
    return {"name": name, "fwd": microseconds(section.seconds),
            "bwd": microseconds(section.back_seconds), "out": out,
            "grad_out": 0 if is_last else out,
            "saved": max(held, x if keeps_input else 0), "saved_has_input": keeps_input,
            "saved_has_output": False, "fwd_tmp": max(0, section.peak - section.end),
            "bwd_tmp": max(0, more), "grads": max(0, section.gradients), "recomputable": False}


def _charge_first(stages: list[Json]) -> None:
    """The model returns what its last layer does: the first section is charged for it."""
    layer, last = stages[-2:]
    if "options" in layer or "operations" in layer:
        return  # charged twice, which is too much and never too little
    out = layer["out"]
    if layer["saved_has_output"]:
        layer.update(saved=layer["saved"] - out, saved_has_output=False)
    layer["out"] = 0
    last["saved_has_input"] = False


def _segments(recording: Recording) -> list[tuple[int, int]]:
    """Pairs of first call and the one after the last, with nothing in between."""
    starts = [i for i, call in enumerate(recording.calls) if i == 0 or call.is_loose]
    return list(zip(starts, starts[1:] + [len(recording.calls)]))


def _layer_stages(recording: Recording, make_runner: Callable[[Stage], Runner], clock: Timer,
                  kinds: MeasureOptions) -> tuple[list[Json], int]:
    """(Stages of all calls, bytes that they keep from step to step)."""
    stages, kept = [], 0
    for first, end in _segments(recording):
        calls = recording.calls[first:end]
        runners = [make_runner(Bound(call.layer, call.slots, call.args, call.kwargs, False))
                   for call in calls]
        measured, more = measure_all(runners, one_or_all(calls[0].x),
                                     [call.name for call in calls], False, kinds, clock)
        stages += measured
        kept += more
    return stages, kept


def chain_of(recording: Recording, example: Tree, make_runner: Callable[[Stage], Runner],
             clock: Timer, states: tuple[int, int], grads: str,
             operations: bool) -> tuple[Json, Layout]:
    """Return (the chain, its Layout).

    make_runner  of a stage: see Runner of _measure.py
    states       (bytes of the optimizer's states, bytes that its step takes beyond them)
    """
    layout = Layout(recording)
    layers, kept = _layer_stages(recording, make_runner, clock,
                                 MeasureOptions(None, operations, None, 0))
    stages = []
    for index in range(len(recording.calls) + 1):
        if index in layout.section_at:
            name = layout.names[layout.section_at[index]]
            stages.append(_section_stage(recording, index, name))
        stages += layers[index:index + 1]
    if recording.returns_last:
        _charge_first(stages)
    if grads == "static":
        for stage in stages:
            stage.pop("grads", None)
    wanted = bytes_of([t for t in tensors_of(example) if t.requires_grad])
    return {"format": FORMAT, "convention": "autograd",
            "persistent": _persistent(recording.model, kept, states, grads),
            "input": {"bytes": bytes_of(example), "grad": wanted}, "stages": stages}, layout


def _persistent(model: torch.nn.Module, kept: int, states: tuple[int, int], grads: str) -> Json:
    weights = list(model.parameters())
    return {"params": bytes_of(weights),
            "grads": {"bytes": bytes_of([w for w in weights if w.requires_grad]), "alloc": grads},
            "optimizer": states[0], "step_transient": states[1],
            "buffers": bytes_of(list(model.buffers())) + kept}
