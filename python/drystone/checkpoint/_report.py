# SPDX-License-Identifier: Apache-2.0
"""What a plan promises, for people."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..plan._types import Json
from ._size import write_size

if TYPE_CHECKING:
    from ._chain import Layout


def _text_of(item: Json, names: Sequence[str]) -> str:
    kind = "ckpt" if "ckpt" in item else "opt"
    first, last = item[kind]
    text = names[first] if first == last else f"{names[first]} to {names[last]}"
    return f"{text} ({item['id']})" if kind == "opt" else text


class Report:
    """The promise of a plan.

    peak_bytes          the most that is alive in a step, whatever it is for
    budget_bytes        what it had to fit
    always_bytes        of the peak: weights, states of the optimizer, buffers, the input
    time_added          of a step's time, as measured: 0.2 is a fifth more
    recomputed          names of layers that are recomputed, a range in one text
    is_loss_outside     the model returned no loss and none was given: it is not in the promise
    """

    def __init__(self, chain: Json, plan: Json, layout: Layout) -> None:
        predicted, persistent = plan["predicted"], chain["persistent"]
        self.peak_bytes: int = predicted["peak_bytes"]
        self.peak_at = f"{predicted['peak_phase']} of {layout.names[predicted['peak_stage']]}" \
            if predicted.get("peak_stage") is not None else predicted["peak_phase"]
        self.budget_bytes = plan["budget_bytes"]
        self.always_bytes = (persistent["params"] + persistent["optimizer"] +
                             persistent["buffers"] + chain["input"]["bytes"])
        self.optimizer_bytes = persistent["optimizer"]
        self.time_added = predicted["overhead"]
        self.recomputed = [_text_of(item, layout.names) for item in plan["items"]
                           if "save" not in item]
        self.layer_count = len(layout.stage_of)
        self.recomputed_count = predicted["recomputed_count"]
        self.is_loss_outside = not layout.names[-1].endswith("loss")

    def __str__(self) -> str:
        lines = [f"peak       {write_size(self.peak_bytes)} of {write_size(self.budget_bytes)}, "
                 f"in the {self.peak_at}",
                 f"always     {write_size(self.always_bytes)}, of it "
                 f"{write_size(self.optimizer_bytes)} states of an optimizer",
                 f"time       {self.time_added:+.1%}",
                 f"recompute  {', '.join(self.recomputed) or 'nothing'}"]
        if self.is_loss_outside:
            lines.append("note       the model returns no loss and none is given: what a loss "
                         "takes is not in the peak")
        return "\n".join(lines)
