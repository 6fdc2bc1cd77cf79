# SPDX-License-Identifier: Apache-2.0
"""PyTorch's memory in a page that `drystone live` and other processes read."""
from __future__ import annotations

import atexit
import os
import sys
import threading
import time

from .._errors import ArgumentError, Error, first_line
from .._live import HOST, Figures, LivePage
from ._enable import enabled
from ._figures import device_figures, device_uuid, host_detail, host_figures
from ._rank import rank_of
from ._requests import Requests
from ._walk import details, segments

INTERVAL, DETAIL_REST, SNAPSHOTS = 0.5, 200, 4
_REST_MIN = 5.0  # seconds: a walk holds the interpreter
_EXIT_MAX = 30.0  # seconds that an exit waits for a snapshot
_FORK_MAX = 2.0  # and that a fork waits for an update

# Variables of Kubernetes and Slurm that say who a program is, and their names among labels.
_LABELS = {"POD_NAME": "pod", "POD_NAMESPACE": "namespace", "NODE_NAME": "node",
           "JOB_COMPLETION_INDEX": "job_completion_index", "SLURM_JOB_ID": "slurm_job_id",
           "SLURM_PROCID": "slurm_proc"}
_LABELS_MAX = 255  # bytes

_lock = threading.Lock()
_busy = threading.Lock()  # held by the thread while it updates
_running: Publisher | None = None


def publish(interval: float = INTERVAL, detail_rest: int = DETAIL_REST,
            folder: str | None = None, labels: dict[str, str] | None = None,
            snapshots: int = SNAPSHOTS) -> Publisher:
    """Show this process's memory on all GPUs in a page, until its end or stop().

    interval     seconds between two updates of figures
    detail_rest  a walk over all blocks is made again when so many times its own duration has
                 passed, at least 5 s: it holds the interpreter
    folder       of the page, in memory; None: /dev/shm
    labels       more of them than $POD_NAME, $POD_NAMESPACE, $NODE_NAME, $JOB_COMPLETION_INDEX,
                 $SLURM_JOB_ID and $SLURM_PROCID give; "" takes one of those away
    snapshots    that readers of the page may request in all

    CUDA is not initialized by this. A process has one page: a second call returns the first
    page's publisher. The child of a fork has none. Errors: Error.
    """
    return _start(Publisher(interval, detail_rest, folder, labels, snapshots), waits=False)


def publish_when_used(folder: str | None) -> None:
    """Make the page once the program uses CUDA; what fails then is said on standard error."""
    import torch
    if torch.backends.cuda.is_built():
        _start(Publisher(INTERVAL, DETAIL_REST, folder, None, SNAPSHOTS), waits=True)


class Publisher:
    """A page and the thread that writes it.

    file, folder  of the page; file None: the program has not used CUDA yet
    """

    def __init__(self, interval: float, detail_rest: int, folder: str | None,
                 labels: dict[str, str] | None, snapshots: int) -> None:
        if not 0.01 <= interval <= 3600:
            raise ArgumentError(f"interval: 0.01 to 3600 seconds, not {interval!r}")
        if detail_rest < 1 or snapshots < 0:
            raise ArgumentError("detail_rest is at least 1, snapshots at least 0")
        import torch
        self._torch = torch
        self._interval, self._rest = interval, detail_rest
        self._labels = _labels_of(labels or {})
        self.folder = folder
        self._page: LivePage | None = None
        self._sources: dict[int, int] = {}
        self._requests = Requests(snapshots)
        self._due = 0.0
        self._has_told = False
        self._ending = threading.Event()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()

    @property
    def file(self) -> str | None:
        return self._page.file if self._page else None

    def stop(self) -> None:
        """End the thread and remove the page. Once more, and in the child of a fork, is nothing."""
        global _running
        if os.getpid() != self._process:
            return
        with _lock:
            thread, self._thread = self._thread, None
            if _running is self:
                _running = None
        if thread is None:
            return
        self._ending.set()
        thread.join(_EXIT_MAX)
        if self._page and thread.is_alive():
            self._page.abandon()
        elif self._page:
            self._page.close()
        self._page = None

    # --- the thread -----------------------------------------------------------------------------

    def _open(self) -> None:
        rank, world = rank_of()
        self._page = LivePage(self.folder, _program_name(), self._labels, rank, world)
        self.folder = self._page.folder

    def _begin(self, waits: bool) -> None:
        if not waits:
            self._open()
        self._thread = threading.Thread(target=self._run, name="drystone-publish", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while True:
            with _busy:
                try:
                    self._update()
                except Exception as why:  # the program goes on
                    self._tell(why)
            if self._ending.wait(self._interval):
                return

    def _tell(self, why: Exception) -> None:
        if not self._has_told:
            self._has_told = True
            print(f"drystone: the memory of this process is not all published: {first_line(why)}",
                  file=sys.stderr)

    def _update(self) -> None:
        is_used = self._torch.cuda.is_initialized()
        if self._page is None and is_used:
            self._open()
        page = self._page
        if page is None:
            return
        request = page.request()
        if request is not None:
            number, path = request
            page.answer(number, *self._requests.serve(self._torch, path))
        if is_used:
            self._show(page)

    def _show(self, page: LivePage) -> None:
        known = len(self._sources)
        host = host_figures(self._torch)
        if host:
            page.put(self._source(page, HOST), host)
        try:
            reserved = self._show_devices(page)
        except RuntimeError as why:  # an allocator that counts nothing
            self._tell(why)
            reserved = {}
        if time.monotonic() >= self._due or len(self._sources) > known:
            self._show_details(page, host, reserved)

    def _show_devices(self, page: LivePage) -> dict[int, int]:
        """Return the reserved bytes of those that the program has used."""
        reserved = {}
        for device in range(self._torch.cuda.device_count()):
            figures = device_figures(self._torch, device)
            if figures:
                page.put(self._source(page, device), figures)
                reserved[device] = figures.reserved
        return reserved

    def _show_details(self, page: LivePage, host: Figures | None, reserved: dict[int, int]) -> None:
        begun = time.monotonic()
        self._due = begun + _REST_MIN  # also if a walk fails
        if host:
            page.put_detail(self._sources[HOST], host_detail(host))
        if reserved:
            self._walk(page, reserved)
        ended = time.monotonic()
        self._due = ended + max(_REST_MIN, (ended - begun) * self._rest)

    def _walk(self, page: LivePage, reserved: dict[int, int]) -> None:
        if self._torch.cuda.get_allocator_backend() == "cudaMallocAsync":
            return  # it tells nothing of its blocks
        for device, detail in details(self._torch, segments(self._torch), enabled(),
                                      reserved).items():
            if device in reserved:
                page.put_detail(self._sources[device], detail)

    def _source(self, page: LivePage, device: int) -> int:
        """Return the source's number; it is added when the device is first used."""
        number = self._sources.get(device)
        if number is None:
            if device == HOST:
                number = page.add_pinned("pinned")
            else:
                name = enabled() or self._torch.cuda.get_allocator_backend()
                number = page.add_other(name, device)
                page.set_uuid(number, device_uuid(self._torch, device))
            self._sources[device] = number
        return number


# --- one of a process ---------------------------------------------------------------------------

def _start(made: Publisher, waits: bool) -> Publisher:
    global _running
    with _lock:
        if _running is None:
            made._begin(waits)
            _running = made
        return _running


def _stop() -> None:
    if _running is not None:
        _running.stop()


class _Fork:
    """A fork between two updates: else the child would have locks of the thread's for ever.

    The thread may wait for what the forking one has, so the fork goes on soon.
    """

    def __init__(self) -> None:
        self._of_thread = threading.local()

    def before(self) -> None:
        self._of_thread.holds = _busy.acquire(timeout=_FORK_MAX)

    def in_parent(self) -> None:
        if self._of_thread.holds:
            _busy.release()

    def in_child(self) -> None:
        """The page and the thread are the parent's."""
        global _lock, _busy, _running
        _lock, _busy = threading.Lock(), threading.Lock()
        _running = None


_fork = _Fork()
os.register_at_fork(before=_fork.before, after_in_parent=_fork.in_parent,
                    after_in_child=_fork.in_child)
atexit.register(_stop)


# --- who the program is -------------------------------------------------------------------------

def _program_name() -> str:
    """"train.py"; "": what the system says."""
    name = os.path.basename(sys.argv[0]) if getattr(sys, "argv", None) else ""
    return "" if name in ("-c", "-m", "-") else name


def _is_plain(text: str) -> bool:
    return not any(sign in text for sign in ",=\n\0")


def _labels_of(given: dict[str, str]) -> str:
    """"pod=train-0,namespace=ml": those that were given first, so that they are never cut off."""
    for name, value in given.items():
        if not name or not _is_plain(f"{name}{value}"):
            raise Error(f"the label {name!r}: a name and a value without , = and new lines")
    found = {name: os.environ.get(variable, "") for variable, name in _LABELS.items()}
    text = ""
    for name, value in {**given, **{n: v for n, v in found.items() if n not in given}}.items():
        pair = f"{',' if text else ''}{name}={value}"
        if value and _is_plain(value) and len((text + pair).encode()) <= _LABELS_MAX:
            text += pair
    return text
