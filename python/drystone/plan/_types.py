# SPDX-License-Identifier: Apache-2.0
"""Types that several modules name."""
from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

Json = dict[str, Any]  # a chain, a stage of it, a plan: see drystone-chain(5)
Tree = Any  # a tensor, or tuples, lists and dicts of trees, as PyTorch's pytree has it
Stage = Callable[..., Tree]  # a module or a function
Loss = Callable[[Tree], Tree]
Context = AbstractContextManager[Any]
Contexts = tuple[Context, Context]  # of a checkpoint: of its first run, of its second
Policy = dict[str, list[int]]  # of selective checkpointing: which calls of which operations
