# SPDX-License-Identifier: Apache-2.0
"""One real step of a planned model with every byte counted."""
from __future__ import annotations

from ..plan._carry import Silent
from ..plan._live import meter_for, tensors_of
from ..plan._stage import cut_loose, run_backward, untouched
from ..plan._types import Loss, Tree
from ..plan._verify import Watched, Watcher
from ._call import arguments_of, loss_of
from ._steps import Steps


class _Labels(Watcher):
    """Tells a meter which stage runs, sections as well."""

    def enter(self, stage: int) -> None:
        self.meter.set_label(("forward", stage))


def _run(steps: Steps, example: Tree, loss: Loss | None, labels: _Labels) -> int:
    """Forward and backward; what is held between the two."""
    args, kwargs = arguments_of(example)
    meter, last = labels.meter, len(steps.layout.names) - 1
    with meter:
        labels.enter(0)
        output = steps.model(*args, **kwargs)
        value = loss_of(output, loss)
        held: int = meter.live
        ends = cut_loose(output if value is None else value)
        meter.set_label(("backward", last))
        run_backward(*ends)
        meter.set_label(None)
        return held


def watch_step(steps: Steps, example: Tree, loss: Loss | None) -> Watched:
    """Return what drystone.plan.watch() does, of a model's own step."""
    args, kwargs = arguments_of(example)
    meter = meter_for((example, list(steps.model.parameters())))
    labels = _Labels(meter)
    with untouched([steps.model]):
        steps.model(*args, **kwargs)  # what is made once and kept is no part of a step
    try:
        steps.labels = steps.carrier.watcher = labels
        with untouched([steps.model], tensors_of(example)):
            held = _run(steps, example, loss, labels)
    finally:
        steps.labels, steps.carrier.watcher = None, Silent()
    return {"peak": meter.peak, "held": held, "stages": dict(meter.peaks)}
