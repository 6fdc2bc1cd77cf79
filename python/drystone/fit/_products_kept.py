# SPDX-License-Identifier: Apache-2.0
"""Layers keep matrix products, convolutions and attention, and recompute the rest.

PyTorch's selective checkpoint, for each layer that `checkpoint` leaves alone. Numbers stay the same
(_twice.py says for which models). What is kept is what `work` counts, so that work stays the same.
What is recomputed, as norms and activation functions, is quick on a GPU, but each operation of a
layer passes through Python: tens of microseconds each, on the CPU.
"""
from __future__ import annotations

from typing import Any

from torch.utils import checkpoint

from ._run import Run
from ._steps import load_formulas

NAME, NUMBERS, HELPS = "products_kept", "same", "backward"
TEXT = "recompute all but products in {} layers"
PATCH = ("from torch.utils.checkpoint import *\n"
         "# in the model's forward(), for each layer; `products` lists operations, as\n"
         "# torch.ops.aten.addmm.default:\n"
         "# - hidden = layer(hidden, mask)\n"
         "hidden = checkpoint(layer, hidden, mask, use_reentrant=False,\n"
         "                    context_fn=lambda: create_selective_checkpoint_contexts(products))\n")
UNSEEN = "no model with layers, or none of its layers, was called in training with gradients"


def begin(run: Run, value: Any) -> None:
    if not hasattr(checkpoint, "create_selective_checkpoint_contexts"):
        run.refuse(NAME, "this PyTorch has no selective checkpoint")
        return

    def take() -> None:
        layers = run.twice.layers[int(run.changes.get("checkpoint", 0)):]
        text = TEXT.format(len(layers))
        if value is None:
            run.twice.look(NAME)
            run.offer(NAME, [True], text)
        elif layers:
            run.twice.compute(NAME, layers, lambda: run.apply(NAME, value, text), _make_contexts)
        else:
            run.apply(NAME, value, "checkpoint has all layers")

    run.twice.subscribe(NAME, take)


def _make_contexts() -> tuple[Any, Any]:
    formulas = load_formulas()

    def choose(context: Any, operation: Any, *_: Any, **__: Any) -> Any:
        is_product = getattr(operation, "_overloadpacket", None) in formulas
        policy = checkpoint.CheckpointPolicy
        return policy.MUST_SAVE if is_product else policy.PREFER_RECOMPUTE

    made: tuple[Any, Any] = checkpoint.create_selective_checkpoint_contexts(choose)
    return made
