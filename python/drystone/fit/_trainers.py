# SPDX-License-Identifier: Apache-2.0
"""Trainers that accumulate gradients by an argument of their own, for pieces of batches.

transformers   per_device_train_batch_size divided, gradient_accumulation_steps times the pieces
Lightning      batch_size of DataLoaders divided, accumulate_grad_batches times the pieces
"""
from __future__ import annotations

import sys
from typing import Any

from torch.utils.data import DataLoader

from ._run import Run
from ._wrap import Former, wrap


class Trainers:
    """pieces has count, 1 where nobody splits, and has_trainer, which is set here."""

    def __init__(self, run: Run, name: str, pieces: Any) -> None:
        self.run, self.name, self.pieces = run, name, pieces
        self.sizes: set[int] = set()  # sizes of Lightning's loaders before they were divided
        self.divided: set[int] = set()  # and behind: Lightning makes loaders again

    def watch(self) -> None:
        for module in ("transformers.training_args", "lightning.pytorch.trainer.trainer",
                       "pytorch_lightning.trainer.trainer"):
            take = self.wrap_arguments if module.startswith("t") else self.wrap_lightning
            self.run.watch(module, self.run.guard(lambda take=take, module=module:
                                                  take(sys.modules[module]), self.name))

    def wrap_arguments(self, module: Any) -> None:
        wrap(module.TrainingArguments, "__post_init__", self.take_arguments)

    def wrap_lightning(self, module: Any) -> None:
        wrap(module.Trainer, "__init__", self.take_trainer)
        wrap(DataLoader, "__init__", self.take_loader)

    def divide(self, rows: int) -> int | None:
        """Return the rows of a piece; None: nobody splits, or they cannot be split."""
        count = self.pieces.count
        if count > 1 and rows % count:
            self.run.refuse(self.name, f"a batch of {rows} is not a multiple of {count}")
        return None if count == 1 or rows % count else rows // count

    def offer(self, sizes: set[int], text: str) -> None:
        values = [2 ** i for i in range(1, 8) if sizes and not any(n % 2 ** i for n in sizes)]
        if values and self.pieces.count == 1:
            self.run.offer(self.name, values, text)

    def take_arguments(self, former: Former, arguments: Any) -> Any:
        self.pieces.has_trainer = True
        rows = arguments.per_device_train_batch_size
        self.offer({rows}, "per_device_train_batch_size divided by {}, "
                   "gradient_accumulation_steps times {}")
        piece = self.divide(rows)
        if piece is not None:
            arguments.per_device_train_batch_size = piece
            arguments.gradient_accumulation_steps *= self.pieces.count
            self.run.apply(self.name, piece, "per_device_train_batch_size {}, gradient_accumulation"
                           f"_steps {arguments.gradient_accumulation_steps}".format(piece))
        return former(arguments)

    def take_trainer(self, former: Former, trainer: Any, *args: Any, **named: Any) -> Any:
        self.pieces.has_trainer = True
        self.offer_lightning()
        if self.pieces.count > 1:
            steps = self.pieces.count * (named.get("accumulate_grad_batches") or 1)
            named["accumulate_grad_batches"] = steps
            self.run.apply(self.name, steps, f"loaders' batch_size divided by {self.pieces.count}, "
                           f"accumulate_grad_batches {steps}")
        return former(trainer, *args, **named)

    def take_loader(self, former: Former, loader: Any, dataset: Any, batch_size: int | None = 1,
                    *args: Any, **named: Any) -> Any:
        if batch_size is not None and batch_size > 1 and batch_size not in self.divided:
            self.sizes.add(batch_size)
            self.offer_lightning()
            batch_size = self.divide(batch_size) or batch_size
            self.divided.add(batch_size if self.pieces.count > 1 else 0)
        return former(loader, dataset, batch_size, *args, **named)

    def offer_lightning(self) -> None:
        if self.pieces.has_trainer:
            self.offer(self.sizes, "loaders' batch_size divided by {}, "
                       "accumulate_grad_batches times {}")
