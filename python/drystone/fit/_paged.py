# SPDX-License-Identifier: Apache-2.0
"""Drystone's allocator stands in for PyTorch's, placement paged: free memory is in no pieces.

drystone.torch.enable() makes it, before CUDA is used. Numbers stay the same. It costs time where
memory is mapped anew, in the first steps above all. It is offered where a shim for the release of
PyTorch is at hand, whose building takes a compiler and a minute. Settings of PyTorch's allocator,
as `allocator` makes them, have no effect on it.
"""
from __future__ import annotations

import os
from typing import Any

import torch

from .._errors import Error, first_line
from ._run import Run

NAME, NUMBERS, HELPS = "paged", "same", "any"
TEXT = "Drystone's allocator, placement paged"
PATCH = ('import drystone.torch\n'
         'drystone.torch.enable("paged")  # behind the import of torch, before CUDA is used\n')
UNSEEN = "there is no shim for this PyTorch yet: drystone.torch.enable() builds one"


def begin(run: Run, value: Any) -> None:
    from ..torch import _shim, enable  # loads what other changes do not need
    if value is None:
        if not os.environ.get("DRYSTONE_ALLOCATOR") and _shim.is_there(torch):
            run.offer(NAME, [True])
        return
    try:
        enable("paged", seam="native")
        run.apply(NAME, value)
    except Error as why:
        run.refuse(NAME, first_line(why))
