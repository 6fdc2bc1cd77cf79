# SPDX-License-Identifier: Apache-2.0
"""Batches, arguments and results: tensors in tuples, lists, dicts and their kin."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch


def leaves_of(tree: Any) -> Iterator[Any]:
    """Return what is in a tree. PyTorch's own pytree takes a BatchEncoding for a leaf."""
    if isinstance(tree, Mapping):
        for each in tree.values():
            yield from leaves_of(each)
    elif isinstance(tree, (list, tuple)):
        for each in tree:
            yield from leaves_of(each)
    else:
        yield tree


def tensors_of(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in leaves_of(tree) if isinstance(leaf, torch.Tensor)]


def map_tree(tree: Any, function: Callable[[Any], Any], cut: Callable[[Any], Any]) -> Any:
    """Return a tree of the same kind: function(leaf) for leaves, cut(list) for lists of leaves."""
    if isinstance(tree, Mapping):
        items = {key: map_tree(value, function, cut) for key, value in tree.items()}
        try:
            return type(tree)(items)  # type: ignore[call-arg]
        except TypeError:
            return items
    if isinstance(tree, (list, tuple)):
        if not tensors_of(tree):
            return cut(tree)
        parts = [map_tree(value, function, cut) for value in tree]
        return type(tree)(*parts) if hasattr(tree, "_fields") else type(tree)(parts)
    return function(tree)
