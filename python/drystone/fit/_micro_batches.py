# SPDX-License-Identifier: Apache-2.0
"""A step takes its batch in pieces, whose gradients add up to those of the batch.

Value: how many pieces. A DataLoader's iterator yields each training batch in pieces, along the
first dimension of its tensors. The backward pass weighs a loss by its piece's share of the rows.
zero_grad acts at the first piece; optimizers, clipping, GradScaler and schedulers act at the last.
So the loop turns more often: what it prints and counts is of pieces. The work is the same, in
smaller kernels.

Numbers stay the same if the loss is a mean over rows, and no layer takes statistics of the batch. A
mean over tokens differs where rows have other numbers of tokens that count; a loss of pairs of rows
(contrastive) is another one. A loss that is a sum is refused where it shows.

Not for programs that accumulate gradients, step more than once a batch, or touch gradients by hand.
Trainers of transformers and Lightning get their own arguments instead (_trainers.py).
"""
from __future__ import annotations

import sys
import weakref
from typing import Any

import torch
from torch.optim.optimizer import Optimizer
from torch.utils.data import DataLoader

from ._calls import trains
from ._pieces import rows_of, split
from ._run import Run
from ._trainers import Trainers
from ._wrap import Former, wrap

NAME, NUMBERS, HELPS = "micro_batches", "rows", "backward"
TEXT = "each batch in {} pieces, which the loop counts as batches"
PATCH = ("# in the loop over the loader, for each of {} pieces of the batch:\n"
         "(compute_loss(piece) / {}).backward()\n"
         "# then once: clip, optimizer.step(), scheduler.step(), optimizer.zero_grad()\n")
UNSEEN = "no DataLoader fed a training step"
OWN = "the program accumulates gradients by itself: give its own argument to --vary"
BY_HAND = "the program alters gradients between its backward pass and its step"
ONE_ROW = "a batch has one row"
SUM = "the loss is a sum: pieces of it cannot be weighed"


def begin(run: Run, value: Any) -> None:
    if value is not None and int(value) < 2:
        run.refuse(NAME, f"a batch is split in two pieces or more, not in {value}")
        return
    pieces = _Pieces(run, 1 if value is None else int(value))
    pieces.stand_before()
    Trainers(run, NAME, pieces).watch()
    run.watch("accelerate.data_loader", run.guard(pieces.wrap_accelerate, NAME))
    run.calls.subscribe(NAME, pieces.on_call)


class _Pieces:
    """What the program did with the piece that it has.

    count is 1 where nobody splits: then all is observed, and nothing held back.
    """

    def __init__(self, run: Run, count: int) -> None:
        self.run, self.count = run, count
        self.optimizers: weakref.WeakSet[Any] = weakref.WeakSet()
        self.is_training, self.is_switching, self.has_trainer = True, False, False
        self.source: Any = None  # a weak reference to the iterator of the piece
        self.backwards = self.steps = self.fed = self.depth = 0
        self.index, self.last, self.share = 0, 0, 1.0
        self.weights: list[Any] = []  # weak references to some weights of what trains
        self.marks: list[tuple[Any, int]] = []  # weights, and the version of their gradients
        self.has_statistics = False
        self.rows: int | None = None

    # --- what is wrapped ----------------------------------------------------------------------

    def stand_before(self) -> None:
        wrap(DataLoader, "__iter__", self.iterate)
        wrap(torch.nn.Module, "train", self.train)
        wrap(torch.autograd, "backward", self.backward)
        wrap(Optimizer, "__init__", self.make_optimizer)
        wrap(Optimizer, "zero_grad", self.zero_grad)
        wrap(torch.nn.Module, "zero_grad", self.zero_grad)
        wrap(Optimizer, "_patch_step_function", self.hook_step)
        scalers = [getattr(getattr(torch, "amp", None), "GradScaler", None),
                   torch.cuda.amp.GradScaler]
        scaler = next(each for each in scalers if each)
        for name in ("step", "update", "unscale_"):
            wrap(scaler, name, self.hold)
        clip = torch.nn.utils.clip_grad
        for name in ("clip_grad_norm_", "clip_grad_value_"):
            wrap(clip, name, self.clip)
            setattr(torch.nn.utils, name, getattr(clip, name))
        self.hold_schedulers()

    def hold_schedulers(self) -> None:
        schedulers = torch.optim.lr_scheduler
        base = getattr(schedulers, "LRScheduler", None) or schedulers._LRScheduler
        for kind in {base, *(one for one in vars(schedulers).values() if isinstance(one, type))}:
            if "step" in vars(kind):
                wrap(kind, "step", self.schedule)

    def iterate(self, former: Former, loader: Any) -> Any:
        return _Iterator(self, former(loader))

    def wrap_accelerate(self) -> None:
        """Split what its loaders yield, since they read ahead."""
        wrap(sys.modules["accelerate.data_loader"].DataLoaderShard, "__iter__", self.iterate)

    def train(self, former: Former, module: Any, mode: bool = True) -> Any:
        """Note whether what is optimized trains; other modules, as a teacher, tell nothing."""
        if self.optimizers and not self.is_switching:
            self.is_switching = True
            try:
                optimized = {id(one) for each in self.optimizers for group in each.param_groups
                             for one in group["params"]}
                if any(id(one) in optimized for one in module.parameters()):
                    self.is_training = mode
                return former(module, mode)
            finally:
                self.is_switching = False
        return former(module, mode)

    def make_optimizer(self, former: Former, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        result = former(optimizer, *args, **kwargs)
        self.optimizers.add(optimizer)
        return result

    def hook_step(self, former: Former, optimizer: Any) -> Any:
        """Stand before the step of an optimizer's class, as PyTorch's own wrapper does."""
        kind = type(optimizer)
        is_new = not getattr(kind.step, "hooked", None)
        former(optimizer)
        if is_new:
            wrap(kind, "step", self.step)
        return None

    # --- at each piece ------------------------------------------------------------------------

    def is_held(self) -> bool:
        """Tell whether the gradients of more pieces are to come."""
        return self.is_inside() and self.index < self.last

    def is_inside(self) -> bool:
        return self.source is not None and self.source() is not None and \
            NAME not in self.run.refused

    def hold(self, former: Former, *args: Any, **kwargs: Any) -> Any:
        """Do nothing but at the last piece."""
        self.steps += former.__name__ == "step"
        result = None if self.is_held() else former(*args, **kwargs)
        self.mark()
        return result

    def schedule(self, former: Former, *args: Any, **kwargs: Any) -> Any:
        """Let a scheduler count batches; its first step is that of its construction."""
        if self.is_held() and getattr(args[0], "_step_count", 1) > 0:
            return None
        return former(*args, **kwargs)

    def clip(self, former: Former, parameters: Any, limit: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the norm of a part of the gradients, and leave them as they are."""
        if self.is_held():
            limit = float("inf")
        result = former(parameters, limit, *args, **kwargs)
        self.mark()
        return result

    def step(self, former: Former, optimizer: Any, closure: Any = None, **kwargs: Any) -> Any:
        if closure is not None and isinstance(optimizer, torch.optim.LBFGS):
            self.run.refuse(NAME, "LBFGS looks at the loss more than once a step")
        if self.is_held() and closure is not None:
            with torch.enable_grad():
                result = closure()
            self.see_step()
            return result
        if closure is not None:
            result = former(optimizer, closure, **kwargs)
            self.see_step()
            return result
        self.see_step()
        return None if self.is_held() else former(optimizer, **kwargs)

    def see_step(self) -> None:
        if self.is_inside() and self.marks_moved():
            self.run.refuse(NAME, BY_HAND)
        self.steps += 1
        if not self.is_inside() and self.backwards and not self.has_trainer:
            self.run.refuse(NAME, UNSEEN)
        if self.run.looks and self.is_inside() and self.backwards and self.rows:
            values = [2 ** i for i in range(1, 8) if 2 ** i <= self.rows]
            if values:
                self.run.offer(NAME, values)
            elif NAME not in self.run.offers:
                self.run.refuse(NAME, ONE_ROW)

    def zero_grad(self, former: Former, *args: Any, **kwargs: Any) -> Any:
        """Clear gradients before the first backward pass of a batch, or after its step."""
        is_first = self.index == 0 and not self.backwards
        if self.is_inside() and self.last and not is_first and (self.is_held() or not self.steps):
            return None
        self.marks = []
        return former(*args, **kwargs)

    def backward(self, former: Former, tensors: Any, grad_tensors: Any = None, *args: Any,
                 **kwargs: Any) -> Any:
        if self.is_inside():
            if self.backwards and self.steps:
                self.run.refuse(NAME, "the program steps more than once a batch")
            elif self.marks_moved():
                self.run.refuse(NAME, BY_HAND)
            self.see_loss(tensors)
        if self.is_inside() and self.share < 1:
            grad_tensors = self.weigh(tensors, grad_tensors)
        self.backwards += 1
        result = former(tensors, grad_tensors, *args, **kwargs)
        self.mark()
        return result

    def weigh(self, tensors: Any, grads: Any) -> Any:
        """Return gradients of the losses, times the share of the piece."""
        is_one = isinstance(tensors, torch.Tensor)
        tensors = [tensors] if is_one else list(tensors)
        given = [grads] if isinstance(grads, torch.Tensor) else list(grads or [])
        given += [None] * (len(tensors) - len(given))
        made = [None if one is None and tensor.numel() != 1 else
                torch.full_like(tensor, self.share) if one is None else one * self.share
                for tensor, one in zip(tensors, given)]
        return made[0] if is_one else made

    def see_loss(self, tensors: Any) -> None:
        for tensor in [tensors] if isinstance(tensors, torch.Tensor) else tensors:
            node = tensor.grad_fn
            if type(node).__name__.startswith("SumBackward") or \
                    getattr(node, "_saved_reduction", None) == 2:
                self.run.refuse(NAME, SUM)

    # --- gradients that the program alters by itself ------------------------------------------

    def mark(self) -> None:
        """Note the gradients of some weights as a backward pass left them."""
        self.marks = [(weakref.ref(weight), weight.grad._version) for weight in self.some_weights()
                      if weight.grad is not None] if self.is_inside() else []

    def marks_moved(self) -> bool:
        weights = [(reference(), version) for reference, version in self.marks]
        return any(weight is not None and (weight.grad is None or weight.grad._version != version)
                   for weight, version in weights)

    def some_weights(self) -> list[torch.Tensor]:
        return [one for one in (reference() for reference in self.weights) if one is not None]

    # --- batches ------------------------------------------------------------------------------

    def on_call(self, module: torch.nn.Module) -> None:
        if not trains(module):
            return
        weights = [one for one in module.parameters() if one.requires_grad]
        self.weights = [weakref.ref(one) for one in (weights[0], weights[-1])]
        if any(isinstance(each, torch.nn.modules.batchnorm._BatchNorm) and each.training
               for each in module.modules()):
            self.has_statistics = True

    def wants(self) -> bool:
        """Tell whether a batch that is fetched now is for training."""
        return bool(self.optimizers) and self.is_training and not self.has_trainer and \
            not self.depth and torch.is_grad_enabled() and NAME not in self.run.refused

    def start(self, source: Any, index: int, last: int, share: float) -> None:
        """Give a piece to the program, which is done with the one before."""
        if self.is_inside():
            self.judge()
        self.source = weakref.ref(source)
        self.index, self.last, self.share = index, last, share
        self.backwards = self.steps = 0

    def judge(self) -> None:
        """Refuse to go on if the piece before was not trained on as a batch of a step."""
        if self.backwards and not self.steps:
            self.run.refuse(NAME, OWN)
        elif self.is_held() and not self.backwards:
            self.run.refuse(NAME, "batches are read ahead of their step, or left out")

    def stop(self) -> None:
        if self.is_inside() and self.depth < 2:
            self.judge()
        self.leave(self.depth - 1)

    def leave(self, depth: int) -> None:
        """Forget the piece, but for one that a loader around this one gave."""
        if not depth:
            self.source = None

    def split(self, batch: Any) -> list[tuple[Any, float]]:
        """Return the pieces of a batch; one: it is not split."""
        self.rows = rows_of(batch)
        if self.rows is None:
            self.run.refuse(NAME, "the tensors of a batch have not equally many rows")
        elif self.count > 1 and self.rows < 2 and not self.fed:
            self.run.refuse(NAME, ONE_ROW)
        elif self.count > 1:
            self.fed += 1
            text = TEXT + "; batch statistics are of pieces" if self.has_statistics else TEXT
            self.run.apply(NAME, self.count, text.format(min(self.count, self.rows)))
            return split(batch, self.rows, self.count)
        return [(batch, 1.0)]


class _Iterator:
    """An iterator of a DataLoader, which gives batches in pieces."""

    def __init__(self, pieces: _Pieces, inner: Any) -> None:
        self.pieces, self.inner = pieces, inner
        self.left: list[tuple[Any, float]] = []
        self.count = 0

    def __iter__(self) -> _Iterator:
        return self

    def __next__(self) -> Any:
        if not self.left:
            self.pieces.depth += 1  # a loader inside of this one gives whole batches
            try:
                batch = next(self.inner)
            except StopIteration:
                self.pieces.stop()
                raise
            finally:
                self.pieces.depth -= 1
            if not self.pieces.wants():
                self.pieces.leave(self.pieces.depth)
                return batch
            self.left = self.pieces.split(batch)
            self.count = len(self.left)
        piece, share = self.left.pop(0)
        last = self.count - 1
        self.pieces.start(self, last - len(self.left), last, share)
        return piece

    def __len__(self) -> int:
        return len(self.inner)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)
