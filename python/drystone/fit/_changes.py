# SPDX-License-Identifier: Apache-2.0
"""The changes there are, by name, in the order of their worth: what costs least comes first.

The module of a change is _NAME.py. It has

    NUMBERS   what becomes of the program's numbers: "same" (to rounding), "rows" (the same if a
              loss is a mean over rows, without statistics of a batch), "other"
    HELPS     where memory gets less: "backward", "step", "evaluation", "any"
    TEXT      what it does, for a person; {} is the value
    PATCH     lines of Python that a person writes instead; {} is the value
    UNSEEN    why it was neither made nor refused
    begin(run, value)  makes the change; value None: only looks whether it can help
"""
from __future__ import annotations

import importlib
from typing import Any

NAMES = ("allocator", "paged", "products_kept", "checkpoint", "micro_batches", "loss_in_chunks",
         "foreach", "grads_to_none", "evaluation_without_graph", "losses_detached",
         "states_sharded", "model_sharded", "states_on_host", "offload_saved", "compile_budget",
         "autocast", "states_8bit", "weights_bf16")
LEVERS = ("checkpoint", "micro_batches")  # a person asks why one of them is not offered


def load_change(name: str) -> Any:
    return importlib.import_module("._" + name, __package__)
