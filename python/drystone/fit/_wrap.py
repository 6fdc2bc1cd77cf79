# SPDX-License-Identifier: Apache-2.0
"""Functions of PyTorch's that ours stand before."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

Former = Callable[..., Any]


def wrap(owner: Any, name: str, instead: Callable[..., Any]) -> None:
    """Have instead(former, *args, **kwargs) called where owner.name(*args, **kwargs) was."""
    former = getattr(owner, name)

    @functools.wraps(former)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return instead(former, *args, **kwargs)

    setattr(owner, name, wrapped)
