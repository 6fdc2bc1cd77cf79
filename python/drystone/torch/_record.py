# SPDX-License-Identifier: Apache-2.0
"""A snapshot and a verdict at the moment memory runs out, with any allocator."""
from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable

from .._command import find_command
from .._errors import Error
from ._inductor import without_import
from ._rank import rank_of

ENTRIES = 200_000  # of the history, a device: what a step of a large model makes a few times


def record(on_oom: str | os.PathLike[str] = "oom-{rank}.pickle", *, entries: int = ENTRIES,
           forward_lines: bool = False) -> None:
    """Keep a history, and when memory runs out, write a snapshot and print the verdict.

    on_oom         the snapshot's name; {rank} is the rank, or 0, and {pid} the process
    entries        of the history, the newest, for each device
    forward_lines  let memory of the backward pass belong to a line of the forward pass

    The backward pass runs outside Python, so its memory has no line otherwise. For forward_lines,
    torch.autograd.set_detect_anomaly(True, check_nan=False) stays on: each operation of the forward
    pass formats its stack, which takes the host 3 to 8 microseconds a frame, 0.1 to 0.3
    milliseconds in a deep model. It has no effect in releases of PyTorch without forward_frames.

    Works with PyTorch's own allocator since 2.1, and changes nothing that is allocated. The
    snapshot opens in every command of drystone and at pytorch.org/memory_viz. A second failure
    writes a second file (-2 is put before its ending), and from the ninth on none.
    """
    on_out_of_memory(on_oom, entries)
    if forward_lines:
        import torch
        torch.autograd.set_detect_anomaly(True, check_nan=False)


def on_out_of_memory(name: str | os.PathLike[str], entries: int = ENTRIES) -> None:
    """Switch the history on, and attach the writer of snapshots."""
    import torch
    if not torch.backends.cuda.is_built():
        raise Error(f"PyTorch {torch.__version__} is built without CUDA: no device memory to watch")
    writer = Writer(name, _write)
    torch.cuda.memory._record_memory_history(max_entries=entries, stacks="python")
    torch._C._cuda_attach_out_of_memory_observer(writer)


def check_name(name: str | os.PathLike[str]) -> None:
    """Error if `name` is none for a snapshot: said before anything is changed."""
    _name_of(os.fspath(name), 1)


class Writer:
    """Called in the thread whose request failed, before the error is raised.

    name   of the file, with {rank} and {pid}
    write  writes the snapshot: write(path, device)
    """

    MOST = 8

    def __init__(self, name: str | os.PathLike[str], write: Callable[[str, int], None]) -> None:
        check_name(name)
        self.name = os.fspath(name)
        self.write = write
        self.count = 0
        self.lock = threading.Lock()

    def __call__(self, device: int, size: int = 0, total: int = 0, free: int = 0) -> None:
        with self.lock:
            self.count += 1
            count = self.count
        if count > self.MOST:
            return
        try:
            path = _name_of(self.name, count)
            self.write(path, device)
        except Exception as why:  # the program's own error is what matters
            print(f"drystone: no snapshot of the out-of-memory: {why}", file=sys.stderr)
            return
        _tell(path)


def _name_of(name: str, count: int) -> str:
    try:
        path = name.format(rank=max(rank_of()[0], 0), pid=os.getpid())
    except (KeyError, IndexError, ValueError) as why:
        raise Error(f"on_oom {name!r}: only {{rank}} and {{pid}} are known ({why})") from None
    stem, ending = os.path.splitext(path)
    return path if count == 1 else f"{stem}-{count}{ending}"


def _write(path: str, _device: int) -> None:
    import torch
    with without_import(torch):
        snapshot = torch.cuda.memory._snapshot()
    with open(path, "wb") as file:
        pickle.dump(snapshot, file)


def _tell(path: str) -> None:
    """The verdict, on standard error; without the command, how to get it."""
    try:
        said = subprocess.run([find_command(), "explain", path], capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=120, check=False).stdout
    except (Error, OSError, subprocess.SubprocessError):
        said = ""
    print(f"drystone: out of memory, snapshot in {path}", file=sys.stderr)
    print(said or f"drystone explain {path} says why", file=sys.stderr, flush=True)
