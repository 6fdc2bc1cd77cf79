# SPDX-License-Identifier: Apache-2.0
"""Layers keep only their inputs; what they made is recomputed in the backward pass.

Value: how many of the model's layers, the first ones, whose activations live longest. Numbers stay
the same (_twice.py says for which models). A checkpointed layer's forward pass is computed twice:
at most a third more work for all layers.
"""
from __future__ import annotations

from typing import Any

from ._run import Run

NAME, NUMBERS, HELPS = "checkpoint", "same", "backward"
PARTS = 64  # the most values that are offered
TEXT = "checkpoint {} layers"
PATCH = ("# in the model's forward(), for its first {} layers:\n"
         "# - hidden = layer(hidden, mask)\n"
         "hidden = torch.utils.checkpoint.checkpoint(layer, hidden, mask, use_reentrant=False)\n")
UNSEEN = "no model with layers, or none of its layers, was called in training with gradients"


def begin(run: Run, value: Any) -> None:
    def take() -> None:
        layers = run.twice.layers
        count = len(layers)
        if value is None:
            run.twice.look(NAME)
            values = sorted({-(-count * part // PARTS) for part in range(1, PARTS + 1)})
            run.offer(NAME, values, f"checkpoint {{}} of {count} layers")
        elif not 0 < int(value) <= count:
            run.refuse(NAME, f"the model has {count} layers, not {value}")
        else:
            text = f"checkpoint {value} of {count} layers"
            run.twice.compute(NAME, layers[:int(value)], lambda: run.apply(NAME, value, text))

    run.twice.subscribe(NAME, take)
