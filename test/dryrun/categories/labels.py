# SPDX-License-Identifier: Apache-2.0
"""What a program's tensors are, by object identity, at the moments that it marks.

A program is a function with the decorator @program. It calls labels.mark() where its memory is
compared: a block with a size that no other has is allocated there, and tells the moment in the
trace. Saved for backward is what autograd's hooks were given and still hold. A storage has the
first label of LABELS that fits: an input that is also saved is an input.
"""
import json
import os
import pathlib
import signal
import sys
import weakref

import torch
import torch._dynamo  # once, not in each process

LABELS = ("weights", "gradients", "optimizer", "kv-cache", "inputs", "activations")
MARK_BYTES = 333_333  # and one more for each mark
PROGRAMS = []


class Kept:
    """A tensor that autograd saved: it lives as long as autograd holds it."""

    def __init__(self, tensor):
        self.tensor = tensor


class Labels:
    def __init__(self, late):
        self.late, self.kept, self.moments = late, weakref.WeakSet(), []

    def pack(self, tensor):
        kept = Kept(tensor)
        self.kept.add(kept)
        return kept

    def record(self):
        """Begin the recording here, of a program that is late."""
        if self.late:
            torch.cuda.memory._record_memory_history(clear_history=True)

    def mark(self, model=None, optimizer=None, inputs=(), cache=(), saved=()):
        """Note the label of each storage that is alive; `saved` is what hooks cannot see."""
        parameters = list(model.parameters()) if model else []
        states = optimizer.state.values() if optimizer else ()
        tensors = {
            "weights": parameters + (list(model.buffers()) if model else []),
            "gradients": [p.grad for p in parameters if p.grad is not None],
            "optimizer": [t for state in states for t in state.values() if torch.is_tensor(t)],
            "kv-cache": list(cache), "inputs": list(inputs),
            "activations": [kept.tensor for kept in self.kept] + list(saved)}
        storages = {}
        for label in LABELS:
            for tensor in tensors[label]:
                if tensor.is_cuda and tensor.untyped_storage().nbytes():
                    storages.setdefault(tensor.untyped_storage().data_ptr(), label)
        torch.empty(MARK_BYTES + len(self.moments), dtype=torch.uint8, device="cuda")
        self.moments.append({str(address): label for address, label in storages.items()})


def program(late=False):
    """A program of the battery; `late`: its recording begins where it says."""
    def add(function):
        PROGRAMS.append((function, late))
        return function
    return add


def run(function, late, folder):
    """Run a program: its snapshot and its labels go to `folder`."""
    labels = Labels(late)
    torch.cuda.memory._record_memory_history()
    with torch.autograd.graph.saved_tensors_hooks(labels.pack, lambda kept: kept.tensor):
        function(labels)
    torch.cuda.memory._dump_snapshot(str(folder / f"{function.__name__}.pickle"))
    (folder / f"{function.__name__}.json").write_text(json.dumps(labels.moments))


def main():
    """Run each program in a process of its own, which has torch already and leaves no report."""
    for function, late in PROGRAMS:
        child = os.fork()
        if child == 0:
            run(function, late, pathlib.Path(sys.argv[1]))
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(child, 0)
    torch.zeros(1, device="cuda")
