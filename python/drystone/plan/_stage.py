# SPDX-License-Identifier: Apache-2.0
"""A stage of a chain, whatever is callable, and what PyTorch asks for to run it again."""
from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils._pytree import tree_map_only

from ._live import tensors_of
from ._types import Stage, Tree


def call(stage: Stage, x: Tree) -> Tree:
    """A tuple is handed on as several arguments."""
    return stage(*x) if isinstance(x, tuple) else stage(x)


def weights_of(stage: Stage) -> list[torch.Tensor]:
    """What is there whether it runs or not."""
    if not isinstance(stage, torch.nn.Module):
        return []
    return [*stage.parameters(), *stage.buffers()]


def cut(tree: Tree) -> Tree:
    """The same tensors at the beginning of a graph of their own."""
    return tree_map_only(torch.Tensor, lambda t: t.detach().requires_grad_(t.requires_grad),
                         tree)


def _edge(tensor: torch.Tensor) -> torch.Tensor | torch.autograd.graph.GradientEdge:
    """Where a backward can begin without the tensor itself; older releases want that."""
    if tensor.grad_fn is None or not hasattr(torch.autograd.graph, "GradientEdge"):
        return tensor
    return torch.autograd.graph.get_gradient_edge(tensor)


def cut_loose(outputs: Tree) -> tuple[list[Any], list[torch.Tensor]]:
    """What run_backward() wants, which does not keep outputs alive that autograd does not."""
    wanted = [t for t in tensors_of(outputs) if t.requires_grad]
    return [_edge(t) for t in wanted], [torch.ones_like(t) for t in wanted]


def run_backward(edges: Sequence[Any], seeds: Sequence[torch.Tensor]) -> None:
    """With gradients of ones."""
    if edges:
        torch.autograd.backward(edges, seeds)


def _norms(stages: Iterable[Stage]) -> list[_BatchNorm]:
    return [module for stage in stages if isinstance(stage, torch.nn.Module)
            for module in stage.modules()
            if isinstance(module, _BatchNorm) and module.track_running_stats]


@contextlib.contextmanager
def frozen_statistics(stages: Iterable[Stage]) -> Iterator[None]:
    """Running statistics count a batch once: a second forward leaves them as they are.

    A momentum of 0 does that and saves the same tensors, which the checkpoint insists on.
    """
    kept = [(norm, norm.momentum, norm.num_batches_tracked) for norm in _norms(stages)]
    for norm, _, count in kept:
        norm.momentum = 0.0
        norm.num_batches_tracked = None if count is None else count.clone()
    try:
        yield
    finally:
        for norm, momentum, count in kept:
            norm.momentum = momentum
            norm.num_batches_tracked = count


@contextlib.contextmanager
def untouched(stages: Iterable[Stage], inputs: Iterable[torch.Tensor] = ()) -> Iterator[None]:
    """Buffers, gradients and random numbers are afterwards what they were before."""
    modules = [stage for stage in stages if isinstance(stage, torch.nn.Module)]
    buffers = [(b, b.detach().clone()) for m in modules for b in m.buffers()]
    leaves = [tensor for tensor in inputs if tensor.is_leaf]
    gradients = [(p, p.grad) for p in [q for m in modules for q in m.parameters()] + leaves]
    for parameter, _ in gradients:
        parameter.grad = None
    devices = {p.device.index for p, _ in gradients if p.device.type == "cuda"}
    try:
        with torch.random.fork_rng(sorted(devices)):
            yield
    finally:
        for parameter, gradient in gradients:
            parameter.grad = gradient
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
