# SPDX-License-Identifier: Apache-2.0
"""Functions of PyTorch's that Drystone follows.

PyTorch calls functions of torch._C by name, each time, so a new one there is called by whoever
calls PyTorch's.
"""
import functools
from typing import Any, Callable


def after(owner: Any, name: str, follow: Callable[..., None]) -> None:
    """Have follow() called with the same arguments once owner.name() has returned.

    Nothing happens where this release of PyTorch has no such function.
    """
    former = getattr(owner, name, None)
    if former is None:
        return

    @functools.wraps(former)
    def both(*args: Any) -> Any:
        result = former(*args)
        follow(*args)
        return result

    setattr(owner, name, both)
