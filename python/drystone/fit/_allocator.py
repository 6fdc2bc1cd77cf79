# SPDX-License-Identifier: Apache-2.0
"""Settings of PyTorch's allocator: segments that grow leave no holes behind that nothing fits.

The settings are joined with those the user has, in the environment, before PyTorch reads them.
They cost nothing but a little time in the first steps. Numbers stay the same. A program with
another allocator than PyTorch's native one has no use for them.
"""
from __future__ import annotations

from typing import Any

from ._run import Run
from ._settings import read_settings

NUMBERS, HELPS = "same", "any"
TEXT = "allocator with {}"
PATCH = ('import os\n'
         'os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "{}"  # before torch is imported\n')
UNSEEN = "the settings came too late"
GROWING = "expandable_segments:True"


def begin(run: Run, value: Any) -> None:
    settings = read_settings()
    if any(setting.startswith("backend:") and not setting.endswith("native")
           for setting in settings):
        run.refuse("allocator", "the program has another allocator than PyTorch's native one")
    elif value is not None:
        run.apply("allocator", value)
    elif GROWING in settings:
        run.refuse("allocator", "the program has it already")
    else:
        run.offer("allocator", [GROWING])
