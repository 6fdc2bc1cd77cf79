# SPDX-License-Identifier: Apache-2.0
"""PyTorch's allocator settings in the environment, before PyTorch reads them."""
from __future__ import annotations

import os

VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


def read_settings() -> list[str]:
    """Return the settings that PyTorch goes by, "NAME:VALUE" each, but for lists in brackets."""
    text = next((os.environ[name] for name in VARIABLES if os.environ.get(name)), "")
    return [part.strip() for part in text.split(",") if part.strip()]


def join_settings(conf: str) -> None:
    """Add settings to each variable that is set, or to the one that all releases read."""
    keys = {setting.split(":")[0].strip() for setting in conf.split(",")}
    for name in [name for name in VARIABLES if os.environ.get(name)] or VARIABLES[1:]:
        kept = [part for part in os.environ.get(name, "").split(",")
                if part.strip() and part.split(":")[0].strip() not in keys]
        os.environ[name] = ",".join([*kept, conf])
