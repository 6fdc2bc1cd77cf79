# SPDX-License-Identifier: Apache-2.0
"""Cross-entropy by rows in chunks, which keeps the logits only.

PyTorch keeps the log-softmax beside the logits, and the backward pass makes two more tensors of
their size. Here each chunk's log-softmax is computed again in the backward pass, by PyTorch's own
functions, so that all options are theirs. Numbers stay the same but for the order of sums. The work
is that of a second softmax. Calls of torch.nn.functional.cross_entropy, and so of CrossEntropyLoss
and of transformers' losses, are taken if the logits are LEAST or more and targets are indices.
"""
from __future__ import annotations

from typing import Any

import torch
from torch.autograd.function import once_differentiable
from torch.nn import functional

from ._run import Run
from ._wrap import Former, wrap

NAME, NUMBERS, HELPS = "loss_in_chunks", "same", "backward"
TEXT = "cross-entropy in chunks of rows"
PATCH = ("loss = sum(torch.utils.checkpoint.checkpoint(\n"
         '    functools.partial(F.cross_entropy, reduction="sum"), part, wanted,\n'
         "    use_reentrant=False)\n"
         "    for part, wanted in zip(logits.split(1024), labels.split(1024)))\n"
         "loss = loss / (labels != -100).sum()\n")
UNSEEN = "no cross-entropy of 16 MiB of logits, with indices as targets, was computed"
LEAST = 16 << 20  # bytes of logits
CHUNK = 2 << 20  # elements of a chunk


def begin(run: Run, value: Any) -> None:
    def instead(former: Former, input: Any, target: Any, weight: Any = None,
                size_average: Any = None, ignore_index: int = -100, reduce: Any = None,
                reduction: str = "mean", label_smoothing: float = 0.0) -> Any:
        is_ours = size_average is None and reduce is None and _is_large(input, target, weight)
        if is_ours and value is None:
            run.offer(NAME, [True])
        if not is_ours or not value:
            return former(input, target, weight, size_average, ignore_index, reduce, reduction,
                          label_smoothing)
        run.apply(NAME, value)
        losses = _Chunks.apply(input, target, weight, _Loss(former, ignore_index, label_smoothing,
                                                            input.device.type))
        return _reduce(losses, target, weight, ignore_index, reduction)

    wrap(functional, "cross_entropy", instead)


def _is_large(logits: Any, target: Any, weight: Any) -> bool:
    return isinstance(logits, torch.Tensor) and logits.requires_grad and logits.dim() >= 2 and \
        torch.is_grad_enabled() and not torch.compiler.is_compiling() and \
        logits.numel() * logits.element_size() >= LEAST and \
        not target.is_floating_point() and not (weight is not None and weight.requires_grad)


def _reduce(losses: torch.Tensor, target: torch.Tensor, weight: Any, ignore_index: int,
            reduction: str) -> torch.Tensor:
    if reduction == "none":
        return losses
    total = losses.sum(dtype=torch.promote_types(losses.dtype, torch.float32))
    if reduction == "mean":
        counts = target != ignore_index
        total = total / (counts.sum() if weight is None else
                         (weight[target.where(counts, torch.zeros_like(target))] * counts).sum())
    return total.to(losses.dtype)


class _Loss:
    """PyTorch's loss of some rows, with the options and the autocast of one call."""

    def __init__(self, former: Former, ignore_index: int, smoothing: float, device: str) -> None:
        self.former, self.device = former, device
        self.options = {"ignore_index": ignore_index, "label_smoothing": smoothing}
        try:
            self.casts = torch.is_autocast_enabled(device)
        except TypeError:  # releases before 2.4
            self.casts = torch.is_autocast_cpu_enabled() if device == "cpu" else \
                torch.is_autocast_enabled()

    def of(self, rows: torch.Tensor, target: torch.Tensor, weight: Any) -> torch.Tensor:
        with torch.autocast(self.device, enabled=self.casts):
            loss: torch.Tensor = self.former(rows, target, weight, reduction="none",
                                             **self.options)
        return loss


class _Chunks(torch.autograd.Function):
    """Losses of all rows, without a reduction."""

    @staticmethod
    def forward(ctx: Any, logits: torch.Tensor, target: torch.Tensor, weight: Any, loss: _Loss
                ) -> torch.Tensor:
        ctx.save_for_backward(logits, target, weight)
        ctx.loss = loss
        return torch.cat([loss.of(rows, wanted, weight) for rows, wanted in
                          zip(_cut(logits, logits), _cut(target, logits))])

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]
    def backward(ctx: Any, grad: torch.Tensor) -> Any:
        logits, target, weight = ctx.saved_tensors
        result = torch.empty_like(logits)
        parts = zip(*(_cut(each, logits) for each in (logits, target, grad, result)))
        for rows, wanted, of_rows, out in parts:
            rows = rows.detach().requires_grad_()
            with torch.enable_grad():
                losses = ctx.loss.of(rows, wanted, weight)
            out.copy_(torch.autograd.grad(losses, rows, of_rows)[0])
        return result, None, None, None


def _cut(tensor: torch.Tensor, logits: torch.Tensor) -> Any:
    return tensor.split(max(1, CHUNK * logits.shape[0] // logits.numel()))
